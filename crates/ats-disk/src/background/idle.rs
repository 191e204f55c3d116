//! Times without writes, in which more is put in order than writes would let be done.

use parking_lot::Mutex;
use std::time::Duration;

/// The time without writes after which a store idles.
pub(crate) const IDLE_AFTER: Duration = Duration::from_secs(1);
/// A store that idles for this long closes the files to which it writes; after [`IDLE_AFTER`] where
/// descriptors are scarce.
pub(crate) const CLOSE_AFTER: Duration = Duration::from_secs(10);

/// Since when there were no writes.
#[derive(Default)]
pub(crate) struct IdleTimer {
    /// The number of groups of batches when it was last looked, and the moment since which there
    /// are as many.
    seen: Mutex<(u64, Duration)>,
}

impl IdleTimer {
    /// Returns the time for which there were no writes, as far as is known from the last looks.
    /// `groups` is the number of groups of batches up to `now`.
    pub(crate) fn measure(&self, groups: u64, now: Duration) -> Duration {
        let mut seen = self.seen.lock();
        let (known, since) = *seen;
        if known != groups || since == Duration::ZERO {
            *seen = (groups, now);
            return Duration::ZERO;
        }
        now.saturating_sub(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_begins_with_the_first_look_after_the_last_write() {
        let timer = IdleTimer::default();
        let is_on = |groups, ms| timer.measure(groups, Duration::from_millis(ms)) >= IDLE_AFTER;
        assert!(!is_on(0, 500));
        assert!(!is_on(0, 1499) && is_on(0, 1500) && is_on(0, 9000));
        assert!(!is_on(3, 9100) && !is_on(3, 10_000) && is_on(3, 10_100));
        // A clock that was set back makes it longer.
        assert!(!is_on(3, 9000) && is_on(3, 10_100));
    }
}
