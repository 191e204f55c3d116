//! The batches that run beyond one guard, so that a thread can wait for those that have begun.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time for which batches may not begin after somebody was found waiting for those that run. A
/// waiter that is there still has asked again by then.
const LET_PASS: Duration = Duration::from_millis(100);

/// The long batches of a store that run.
#[derive(Default)]
pub(super) struct LongBatches(Mutex<Numbers>);

#[derive(Default)]
struct Numbers {
    /// The number of the next one.
    next: u64,
    running: BTreeSet<u64>,
    /// `true` if none may begin any more.
    is_closed: bool,
    /// The time before which none may begin.
    not_before: Option<Instant>,
}

impl LongBatches {
    fn lock(&self) -> MutexGuard<'_, Numbers> {
        // Valid at every moment, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins one, and returns its number; `None` if it has to be tried again later, in the store
    /// that the table has then.
    pub(super) fn begin(&self) -> Option<u64> {
        let mut numbers = self.lock();
        let is_too_early = |time| Instant::now() < time;
        if numbers.is_closed || numbers.not_before.is_some_and(is_too_early) {
            return None;
        }
        let number = numbers.next;
        numbers.next += 1;
        numbers.running.insert(number);
        Some(number)
    }

    /// Ends the one with this number.
    pub(super) fn end(&self, number: u64) {
        self.lock().running.remove(&number);
    }

    /// Lets none begin any more, if none runs. Returns `false` if one does; then none begins for a
    /// while, so that it is worth while to try again.
    pub(super) fn close(&self) -> bool {
        let mut numbers = self.lock();
        numbers.is_closed |= numbers.running.is_empty();
        numbers.not_before = Instant::now().checked_add(LET_PASS);
        numbers.is_closed
    }

    /// Lets batches begin again.
    pub(super) fn open(&self) {
        let mut numbers = self.lock();
        (numbers.is_closed, numbers.not_before) = (false, None);
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
