//! The rate at which a thread tries to advance the epoch.
//!
//! An attempt interrupts all processors that run a thread of the program. The cost depends on the
//! machine, on the number of running threads, and most on a hypervisor, which takes part in each
//! interrupt: from a quarter of a microsecond to five. So a thread measures its attempts. If they
//! take more than a small part of its time, it waits for more retirements before the next one; if
//! they take hardly any, for fewer, because memory that is freed soon is still in the cache when it
//! is reused.

use crate::model::IS_EXPLORED;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Smallest number of retirements between two attempts to advance the epoch.
pub(super) const LEAST_ITEMS: u32 = 128;
/// Largest number of retirements between two attempts. The limit of bytes in [`slot`](super::slot)
/// applies, too, so that a few huge objects are not hoarded.
pub(super) const MOST_ITEMS: u32 = 2048;
/// Attempts become rarer if they take more than one part in this many of the time.
const DEAR: u32 = 64;
/// Attempts become more frequent if they take less than one part in this many of the time.
const CHEAP: u32 = 1024;

/// The attempts of one thread to advance the epoch.
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

    /// Returns the number of retirements between two attempts.
    #[inline]
    pub(super) fn items(&self) -> u32 {
        self.items.get()
    }

    /// Makes an attempt, and learns from its cost.
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

/// Returns the number of retirements before the next attempt. The last one came after `items`
/// retirements, `since` after the one before, and took `took`.
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

    /// Returns the number at which a thread settles that retires an object every `each`
    /// nanoseconds, where an attempt takes `took`.
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
        // An attempt may be expensive for a thread that is busy with other work.
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
