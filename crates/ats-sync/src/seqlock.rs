//! A number that changes at the same moment as published data.
//!
//! A structure publishes its contents by one store, and readers load that word without a lock.
//! Beside it, the structure has a number about its contents: the number of records. The two are
//! separate words, so between their stores a thread could see one and not the other. A
//! [`SeqlockNumber`] closes this gap: a thread that reads the number in between waits.
//!
//! It is a sequence lock (for instance Boehm, *Can seqlocks get along with programming language
//! memory models?*, MSPC 2012) around both stores, which only the readers of the number check.
//!
//! Good for: numbers of structures whose writers publish one after the other, such as writers of a
//! journal. A reader of the number writes nothing, and a writer pays only plain stores. Bad for:
//! writers that publish at the same time, for which there is [`census`](crate::census).
//!
//! # Invariants
//! - SEQLOCK-1. One thread publishes at a time, after the one before.
//! - SEQLOCK-2. `turns` is odd exactly while the number and the published data may belong to
//!   different moments.

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::backoff::Backoff;
use crate::shim::atomic::{AtomicI64, AtomicU64, Ordering, fence};

/// A number with a sequence lock; see the [module](self).
#[derive(Debug)]
pub struct SeqlockNumber {
    turns: AtomicU64,
    number: AtomicI64,
}

impl SeqlockNumber {
    /// Creates a seqlock with this number.
    pub fn new(number: i64) -> Self {
        Self {
            turns: AtomicU64::new(0),
            number: AtomicI64::new(number),
        }
    }

    /// Calls `publish`, and sets the number at the same moment. `publish` ends with, or consists
    /// of, the release stores that make the new contents visible. It should be short, because
    /// readers of the number wait for it, and must not panic, or they would wait for ever.
    ///
    /// The caller must be the only publisher (SEQLOCK-1). It waits for no thread.
    #[inline]
    pub fn publish(&self, number: i64, publish: impl FnOnce()) {
        if number == self.number.load(Ordering::Relaxed) {
            return publish();
        }
        let turn = self.turns.load(Ordering::Relaxed);
        self.turns.store(turn + 1, Ordering::Relaxed);
        // A thread that sees the new number, or by an acquiring load the new contents, sees this
        // turn.
        fence(Ordering::Release);
        self.number.store(number, Ordering::Relaxed);
        publish();
        // Release: a thread that reads the number sees the new contents.
        self.turns.store(turn + 2, Ordering::Release);
    }

    /// Returns the number at one moment of the call; this is linearizable with the published
    /// contents. Returns `None` if the system has stopped the publishing thread and the calling
    /// thread [must not wait](crate::lock::set_may_wait) for it.
    ///
    /// O(1). Waits while a thread publishes another number.
    #[inline]
    pub fn read(&self) -> Option<i64> {
        let mut backoff = Backoff::new();
        loop {
            let before = self.turns.load(Ordering::Acquire);
            let number = self.number.load(Ordering::Relaxed);
            // A number from a turn that has begun since then makes the begin of that turn visible.
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.turns.load(Ordering::Relaxed) == before {
                return Some(number);
            }
            if !backoff.wait() {
                return None;
            }
        }
    }
}
