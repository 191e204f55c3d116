//! Times without writes, in which more is put in order than writes would let be done.

use parking_lot::Mutex;
use std::time::Duration;

/// The time without writes after which there is a lull.
pub(crate) const LULL: Duration = Duration::from_secs(1);
/// After a lull of this length a store closes the files to which it writes; after [`LULL`] where
/// descriptors are scarce.
pub(crate) const REST: Duration = Duration::from_secs(10);

/// Since when there were no writes.
#[derive(Default)]
pub(crate) struct Lull {
    /// The number of groups of batches when it was last looked, and the moment since which there
    /// are as many.
    seen: Mutex<(u64, Duration)>,
}

impl Lull {
    /// The time for which there were no writes, as far as is known from the last looks. `groups` is
    /// the number of groups of batches up to `now`.
    pub(crate) fn lasted(&self, groups: u64, now: Duration) -> Duration {
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
    fn a_lull_begins_with_the_first_look_after_the_last_write() {
        let lull = Lull::default();
        let is_on = |groups, ms| lull.lasted(groups, Duration::from_millis(ms)) >= LULL;
        assert!(!is_on(0, 500));
        assert!(!is_on(0, 1499) && is_on(0, 1500) && is_on(0, 9000));
        assert!(!is_on(3, 9100) && !is_on(3, 10_000) && is_on(3, 10_100));
        // A clock that was set back makes it longer.
        assert!(!is_on(3, 9000) && is_on(3, 10_100));
    }
}
