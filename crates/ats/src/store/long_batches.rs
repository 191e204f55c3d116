//! The batches that run beyond one guard, so that a thread can wait for those that have begun.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The long batches of a store that run.
#[derive(Default)]
pub(super) struct LongBatches(Mutex<Numbers>);

#[derive(Default)]
struct Numbers {
    /// That of the next one.
    next: u64,
    running: BTreeSet<u64>,
}

/// A batch that runs, until it is dropped.
pub(super) struct Running<'b> {
    batches: &'b LongBatches,
    number: u64,
}

impl LongBatches {
    fn lock(&self) -> MutexGuard<'_, Numbers> {
        // Valid at every moment, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins one.
    pub(super) fn begin(&self) -> Running<'_> {
        let mut numbers = self.lock();
        let number = numbers.next;
        numbers.next += 1;
        numbers.running.insert(number);
        Running {
            batches: self,
            number,
        }
    }

    /// The number of those that have begun.
    pub(super) fn begun(&self) -> u64 {
        self.lock().next
    }

    /// Returns `true` if none of the first so many runs.
    pub(super) fn are_done_before(&self, number: u64) -> bool {
        let numbers = self.lock();
        numbers.running.first().is_none_or(|first| *first >= number)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.batches.lock().running.remove(&self.number);
    }
}
