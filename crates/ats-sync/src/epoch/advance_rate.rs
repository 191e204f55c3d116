//! The rate at which a thread tries to begin the next epoch.
//!
//! An attempt interrupts all processors that run a thread of the program. The cost depends on the
//! machine, on how many threads run, and most on whether there is a hypervisor, which has a part in
//! each interrupt: from a quarter of a microsecond to five. So a thread measures its attempts.
//! While they take more than a small part of its time, it lets more retirements come before the
//! next one; while they take hardly any, fewer, since what is freed soon is still in the cache when
//! it is used again.

use crate::model::IS_EXPLORED;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A thread tries to advance the epoch after it has retired this many objects at least ...
pub(super) const LEAST_ITEMS: u32 = 128;
/// ... and at most this many, or so many bytes as [`slot`](super::slot) says, so that a few huge
/// objects are not hoarded.
pub(super) const MOST_ITEMS: u32 = 2048;
/// Fewer attempts are made if they take more than one in so many parts of the time.
const DEAR: u32 = 64;
/// More attempts are made if they take less than one in so many parts of it.
const CHEAP: u32 = 1024;

/// The attempts of one thread.
pub(super) struct AdvanceRate {
    items: Cell<u32>,
    last: Cell<Option<Instant>>,
}

impl AdvanceRate {
    pub(super) fn new() -> Self {
        AdvanceRate {
            items: Cell::new(LEAST_ITEMS),
            last: Cell::new(None),
        }
    }

    /// The number of objects that are retired between two attempts.
    #[inline]
    pub(super) fn items(&self) -> u32 {
        self.items.get()
    }

    /// Makes an attempt, and learns what it costs.
    pub(super) fn attempt(&self, attempt: impl FnOnce()) {
        if IS_EXPLORED {
            return attempt();
        }
        let begin = Instant::now();
        attempt();
        let took = begin.elapsed();
        if let Some(last) = self.last.replace(Some(begin)) {
            self.items.set(adapt(self.items(), begin - last, took));
        }
    }
}

/// The number of objects that are to be retired before the next attempt, if it was `items` before
/// the last one, which came `since` after the one before, and took `took`.
fn adapt(items: u32, since: Duration, took: Duration) -> u32 {
    let fitting = if took * DEAR > since {
        items * 2
    } else if took * CHEAP < since {
        items / 2
    } else {
        items
    };
    fitting.clamp(LEAST_ITEMS, MOST_ITEMS)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// The number to which a thread comes that retires an object in `each` nanoseconds, where an
    /// attempt takes `took`.
    fn settle(each: u64, took: u64) -> u32 {
        let nanos = Duration::from_nanos;
        (0..50).fold(LEAST_ITEMS, |items, _| {
            adapt(items, nanos(u64::from(items) * each), nanos(took))
        })
    }

    #[test]
    fn dear_attempts_are_made_seldom() {
        assert_eq!(settle(50, 10), LEAST_ITEMS);
        assert_eq!(settle(50, 100), LEAST_ITEMS);
        assert_eq!(settle(50, 500), 1024);
        assert_eq!(settle(50, 5_000), MOST_ITEMS);
        // Of a thread that has other things to do it does not matter what they take.
        assert_eq!(settle(5_000, 5_000), LEAST_ITEMS);
    }

    #[test]
    fn a_thread_that_slows_down_makes_them_more_often_again() {
        let (slow, quick) = (Duration::from_millis(50), Duration::from_micros(1));
        assert_eq!(adapt(MOST_ITEMS, slow, quick), MOST_ITEMS / 2);
        assert_eq!(adapt(LEAST_ITEMS, slow, quick), LEAST_ITEMS);
        let far = Duration::from_secs(1 << 40);
        assert_eq!(adapt(LEAST_ITEMS, far, far), LEAST_ITEMS * 2);
    }
}
