//! The version that readers read: memtables and runs, exchanged as one.
//!
//! **VERSION-1** A version holds each change once: its memtables and runs are of disjoint intervals
//! of sequence numbers, and together of all that was written. A memtable and the run that was made
//! of it are never in the same version. **VERSION-2** A memtable gets writes only while it is the
//! active one of the current version, which is exchanged before the first write to another one. So
//! a reader that has loaded the version, and then the published sequence number, finds all that had
//! been published before it began. A write that it does not find went to a memtable that came
//! later, and so did all later writes.

use crate::batch::BatchItem;
use crate::ids::{JournalNumber, Seq};
use crate::manifest::RunMeta;
use crate::memtable::{Memtable, Retention, Write};
use crate::run_file::Run;
use arc_swap::{ArcSwap, Guard};
use ats_store::MergeOperator;
use parking_lot::Mutex;
use std::sync::Arc;

/// Memtables and runs.
pub(crate) struct Version {
    /// The memtable that is written to.
    pub(crate) active: Arc<Memtable>,
    /// The memtables that wait for being written to runs, from the newest to the oldest.
    pub(crate) sealed: Vec<Arc<Sealed>>,
    /// The runs, from the newest to the oldest.
    pub(crate) runs: Vec<Arc<StoredRun>>,
}

/// A memtable that gets no more writes.
pub(crate) struct Sealed {
    pub(crate) memtable: Arc<Memtable>,
    /// The sequence numbers of its changes.
    pub(crate) first_seq: Seq,
    pub(crate) last_seq: Seq,
    /// The first journal that is needed once it is in a run.
    pub(crate) next_journal: JournalNumber,
}

/// A run and its description in the manifest.
pub(crate) struct StoredRun {
    pub(crate) meta: RunMeta,
    pub(crate) run: Arc<Run>,
}

/// The current version of a store.
pub(crate) struct VersionSet {
    current: ArcSwap<Version>,
    /// Held while it is exchanged.
    exchanging: Mutex<()>,
}

impl VersionSet {
    pub(crate) fn new(version: Version) -> Self {
        VersionSet {
            current: ArcSwap::from_pointee(version),
            exchanging: Mutex::default(),
        }
    }

    /// Returns the current version, for a short time.
    #[inline]
    pub(crate) fn current(&self) -> Guard<Arc<Version>> {
        self.current.load()
    }

    /// Returns the current version, for as long as the caller wants.
    pub(crate) fn current_arc(&self) -> Arc<Version> {
        self.current.load_full()
    }

    /// Exchanges the current version for the one that `make` makes of it. Returns the old one.
    pub(crate) fn exchange(&self, make: impl FnOnce(&Version) -> Version) -> Arc<Version> {
        let _exchanging = self.exchanging.lock();
        let old = self.current_arc();
        self.current.store(Arc::new(make(&old)));
        old
    }
}

impl Version {
    /// Makes a change in the active memtable. Returns the number of merges that the operator has
    /// refused.
    pub(crate) fn apply_item(
        &self,
        seq: Seq,
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

    /// Makes the same with other runs.
    pub(crate) fn with_runs(&self, runs: Vec<Arc<StoredRun>>) -> Self {
        Version {
            active: Arc::clone(&self.active),
            sealed: self.sealed.clone(),
            runs,
        }
    }

    /// Returns the memtables, from the newest to the oldest.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        let sealed = self.sealed.iter().map(|sealed| &sealed.memtable);
        std::iter::once(&self.active).chain(sealed)
    }
}
