//! Times without writes, in which more is put in order than writes would let be done.

use parking_lot::Mutex;
use std::time::Duration;

/// When there were no writes for this long, there is a lull.
pub(crate) const LULL: Duration = Duration::from_secs(1);

/// Since when there were no writes.
#[derive(Default)]
pub(crate) struct Lull {
    /// How many groups of batches there were when it was last looked, and when they began to be as many.
    seen: Mutex<(u64, Duration)>,
}

impl Lull {
    /// Whether there were no writes for long, as far as is known from the last looks. `groups` is how many groups of
    /// batches there were up to `now`.
    pub(crate) fn is_on(&self, groups: u64, now: Duration) -> bool {
        let mut seen = self.seen.lock();
        let (known, since) = *seen;
        if known != groups || since == Duration::ZERO {
            *seen = (groups, now);
            return false;
        }
        now.saturating_sub(since) >= LULL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lull_begins_with_the_first_look_after_the_last_write() {
        let lull = Lull::default();
        let is_on = |groups, ms| lull.is_on(groups, Duration::from_millis(ms));
        assert!(!is_on(0, 500));
        assert!(!is_on(0, 1499) && is_on(0, 1500) && is_on(0, 9000));
        assert!(!is_on(3, 9100) && !is_on(3, 10_000) && is_on(3, 10_100));
        // A clock that was set back makes it longer.
        assert!(!is_on(3, 9000) && is_on(3, 10_100));
    }
}
