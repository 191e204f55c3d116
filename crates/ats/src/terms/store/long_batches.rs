//! The batches that run beyond one guard. A thread can wait for the end of the running ones.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Time for which no batch begins after a thread was found waiting for running batches. A thread
/// that still waits then has tried again by the end of this time.
const LET_PASS: Duration = Duration::from_millis(100);

/// The running long batches of a store. They have a block of their own, which a store without any
/// lacks, so that small tables stay small.
#[derive(Default)]
pub(super) struct LongBatches(OnceLock<Box<Mutex<Numbers>>>);

#[derive(Default)]
struct Numbers {
    /// The number of the next batch.
    next: u64,
    /// The numbers of the running batches, ascending. There are about as many as threads.
    running: Vec<u64>,
    /// The number of running batches that also change other stores.
    spanning: usize,
    /// `true` if no batch may begin any more.
    is_closed: bool,
    /// The time before which no batch may begin.
    not_before: Option<Instant>,
}

impl LongBatches {
    fn lock(&self) -> MutexGuard<'_, Numbers> {
        // The numbers are valid at every moment, so a panic elsewhere does not spoil them.
        let numbers = self.0.get_or_init(Box::default);
        numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the numbers, if there was a batch, or a thread that waits for one.
    fn lock_if_any(&self) -> Option<MutexGuard<'_, Numbers>> {
        self.0.get().map(|_| self.lock())
    }

    /// Begins a batch, which `spans` several stores, or not, and returns its number. Returns `None`
    /// if the caller must try again later, in the store that the table has then.
    pub(super) fn begin(&self, spans: bool) -> Option<u64> {
        let mut numbers = self.lock();
        let is_too_early = |time| Instant::now() < time;
        if numbers.is_closed || numbers.not_before.is_some_and(is_too_early) {
            return None;
        }
        let number = numbers.next;
        numbers.next += 1;
        numbers.running.push(number);
        numbers.spanning += usize::from(spans);
        Some(number)
    }

    /// Ends the batch with this number, begun with the same `spans`.
    pub(super) fn end(&self, number: u64, spans: bool) {
        let mut numbers = self.lock();
        numbers.running.retain(|running| *running != number);
        numbers.spanning -= usize::from(spans);
    }

    /// Lets no batch begin any more, if none runs, or with `only_spanning` if none runs that spans
    /// several stores. Returns `false` if one runs; then no batch begins for a while, so that
    /// another attempt can succeed.
    pub(super) fn close(&self, only_spanning: bool) -> bool {
        let mut numbers = self.lock();
        numbers.is_closed |= if only_spanning {
            numbers.spanning == 0
        } else {
            numbers.running.is_empty()
        };
        numbers.not_before = Instant::now().checked_add(LET_PASS);
        numbers.is_closed
    }

    /// Lets batches begin again.
    pub(super) fn open(&self) {
        if let Some(mut numbers) = self.lock_if_any() {
            (numbers.is_closed, numbers.not_before) = (false, None);
        }
    }

    /// Returns the number of batches that have begun.
    pub(super) fn begun(&self) -> u64 {
        self.lock_if_any().map_or(0, |numbers| numbers.next)
    }

    /// Returns `true` if all of the first `number` batches have ended.
    pub(super) fn are_done_before(&self, number: u64) -> bool {
        let is_done =
            |numbers: &Numbers| numbers.running.first().is_none_or(|first| *first >= number);
        self.lock_if_any().is_none_or(|numbers| is_done(&numbers))
    }
}
