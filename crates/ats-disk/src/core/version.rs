//! The state that readers read: memtables and runs, exchanged as one.
//!
//! **S1** A state holds each change once: the memtables and runs of a state are of disjoint intervals of sequence
//! numbers, and together of all that was written. A memtable and the run that was made of it are never in the same
//! state. **S2** A memtable gets writes only while it is the active one of the current state; the state changes before
//! the first write to another one. So a reader that has loaded the state, and then the published sequence
//! number, finds all that had been published before it began. What it does not find was written to a memtable that
//! came later, and so did all that was written after that.

use crate::files::manifest::RunMeta;
use crate::memtable::{Memtable, Retention, Write};
use crate::run_file::Run;
use crate::write::BatchItem;
use ats_store::MergeOperator;
use std::sync::Arc;

/// Memtables and runs.
pub(crate) struct State {
    /// The memtable that is written to.
    pub(crate) active: Arc<Memtable>,
    /// The memtables that wait for being written to runs, from the newest to the oldest.
    pub(crate) sealed: Vec<Arc<Sealed>>,
    /// From the newest to the oldest.
    pub(crate) runs: Vec<Arc<StoredRun>>,
}

/// A memtable that gets no more writes.
pub(crate) struct Sealed {
    pub(crate) memtable: Arc<Memtable>,
    /// The sequence numbers of its changes.
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    /// The first journal that is needed once it is in a run.
    pub(crate) next_journal: u64,
}

/// A run and what the manifest says of it.
pub(crate) struct StoredRun {
    pub(crate) meta: RunMeta,
    pub(crate) run: Arc<Run>,
}

impl State {
    /// Makes a change in the active memtable. How often the operator has refused to merge.
    pub(crate) fn apply_item(
        &self,
        seq: u64,
        item: BatchItem<'_>,
        retention: &Retention<'_>,
        operator: Option<&dyn MergeOperator>,
    ) -> usize {
        match item {
            BatchItem::Write { kind, key, value } => {
                let write = Write {
                    kind,
                    key,
                    value,
                    seq,
                };
                self.active.apply(write, retention, operator)
            }
            BatchItem::DeleteRange(key_range) => {
                self.active.delete_range(key_range, seq);
                0
            }
        }
    }

    /// The same with other runs.
    pub(crate) fn with_runs(&self, runs: Vec<Arc<StoredRun>>) -> Self {
        State {
            active: Arc::clone(&self.active),
            sealed: self.sealed.clone(),
            runs,
        }
    }

    /// From the newest to the oldest.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        let sealed = self.sealed.iter().map(|sealed| &sealed.memtable);
        std::iter::once(&self.active).chain(sealed)
    }
}
