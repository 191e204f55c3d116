//! Batches that are written as one.

use crate::batch::{Batch, Numbered};
use crate::error::Error;
use crate::ids::Seq;
use crate::record_count::CountChange;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// More bytes than this are not copied into a group: a batch that is larger is a group of its own.
pub(crate) const GROUP_BYTES: usize = 1 << 20;

/// The group that is being gathered.
#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) gathering: Option<Arc<Group>>,
    /// A group that no writer waits for any more, for its memory.
    pub(crate) reusable: Option<Arc<Group>>,
}

/// Batches that are written as one.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) batches: Mutex<Batches>,
    pub(crate) outcome: Mutex<Option<Result<(), Error>>>,
    pub(crate) done: Condvar,
}

#[derive(Default)]
pub(crate) struct Batches {
    pub(crate) bytes: Vec<u8>,
    /// The end of each batch in `bytes`, and its number of changes.
    pub(crate) ends: Vec<(usize, u32)>,
    /// Keys that end with the number of their change, of all batches.
    pub(crate) numbered: Vec<Numbered>,
    /// Their change of the number of records.
    pub(crate) count_change: CountChange,
    pub(crate) sync: bool,
    /// `true` if nothing else is done but to delete.
    pub(crate) only_deletes: bool,
}

impl Batches {
    pub(crate) fn add(&mut self, batch: &Batch, sync: bool) {
        let is_first = self.ends.is_empty();
        self.count_change = if is_first {
            batch.count_change()
        } else {
            self.count_change.then(batch.count_change())
        };
        self.only_deletes = batch.only_deletes() && (is_first || self.only_deletes);
        if !batch.numbered_keys().is_empty() {
            let (start, before) = (self.bytes.len(), self.changes() as u32);
            let numbered = batch.numbered_keys().iter().map(|numbered| Numbered {
                at: start + numbered.at,
                change: before + numbered.change,
            });
            self.numbered.extend(numbered);
        }
        self.bytes.extend_from_slice(batch.encoding());
        self.ends.push((self.bytes.len(), batch.len() as u32));
        self.sync |= sync;
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(GROUP_BYTES);
        self.ends.clear();
        self.numbered.clear();
        self.sync = false;
    }

    /// Returns the number of changes.
    pub(crate) fn changes(&self) -> u64 {
        self.ends
            .iter()
            .map(|(_, changes)| u64::from(*changes))
            .sum()
    }

    /// Writes into keys the numbers of their changes, of which the first has this one.
    pub(crate) fn number(&mut self, first_seq: Seq) {
        for numbered in &self.numbered {
            numbered.write(&mut self.bytes, first_seq);
        }
    }

    /// Returns the batches with the numbers of their changes.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&[u8], u32)> {
        let mut start = 0;
        self.ends.iter().map(move |(end, changes)| {
            let batch = &self.bytes[start..*end];
            start = *end;
            (batch, *changes)
        })
    }
}
