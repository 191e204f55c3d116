//! A number that changes in the same moment as what readers see elsewhere.
//!
//! A structure publishes what it holds by one store, which readers load without a lock. Beside that
//! it has a number about what it holds: how many records there are. The two are two words, so there
//! is a moment between their stores, in which a thread could see the one and not the other. A
//! [`SeqlockNumber`] closes it: a thread that asks for the number in that moment waits for its end.
//!
//! It is a sequence lock (for instance Boehm, *Can seqlocks get along with programming language
//! memory models?*, MSPC 2012) around both stores, of which only the readers of the number know.
//!
//! Good for: numbers of structures whose writers publish one after the other, as those do that
//! write a journal. A reader of the number writes nothing, and a writer pays for plain stores. Bad
//! at: writers that publish at the same time, for which there is [`census`](crate::census).
//!
//! # Invariants
//! - SEQLOCK-1. One thread publishes at a time, after the one before.
//! - SEQLOCK-2. `turns` is odd exactly while the number and what goes with it may be of different
//!   moments.

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::backoff::Backoff;
use crate::shim::atomic::{AtomicI64, AtomicU64, Ordering, fence};

/// See the [module](self).
#[derive(Debug)]
pub struct SeqlockNumber {
    turns: AtomicU64,
    number: AtomicI64,
}

impl SeqlockNumber {
    /// With this number.
    pub fn new(number: i64) -> Self {
        Self {
            turns: AtomicU64::new(0),
            number: AtomicI64::new(number),
        }
    }

    /// Calls `publish`, and lets the number be this one from the same moment on. `publish` ends
    /// with, or consists of, the stores by which readers see what is new, with release. It should
    /// be short, since threads that ask for the number wait for it, and must not panic, or they
    /// would wait for ever.
    ///
    /// The caller is the only one that publishes (SEQLOCK-1). It waits for no thread.
    #[inline]
    pub fn publish(&self, number: i64, publish: impl FnOnce()) {
        if number == self.number.load(Ordering::Relaxed) {
            return publish();
        }
        let turn = self.turns.load(Ordering::Relaxed);
        self.turns.store(turn + 1, Ordering::Relaxed);
        // A thread that sees the new number, or by an acquiring load what was published, sees that
        // turn.
        fence(Ordering::Release);
        self.number.store(number, Ordering::Relaxed);
        publish();
        // Release: with the number comes what was published.
        self.turns.store(turn + 2, Ordering::Release);
    }

    /// The number as of one moment between the begin and the end of the call, in the order of all
    /// that was published and seen. `None` if the calling thread [must not
    /// wait](crate::lock::set_may_wait) for the thread that publishes, which the system has
    /// stopped.
    ///
    /// O(1). Waits for a thread that is publishing another number.
    #[inline]
    pub fn read(&self) -> Option<i64> {
        let mut backoff = Backoff::new();
        loop {
            let before = self.turns.load(Ordering::Acquire);
            let number = self.number.load(Ordering::Relaxed);
            // A number of a turn that has begun since then makes the begin of that turn visible.
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
