//! Back-pressure: writers are slowed down before memory or runs become too many.
//!
//! Memtables that wait for being written, and runs that wait for being compacted, are debt. When
//! there is some, writes are let through at a rate that falls as the debt grows, starting from the
//! rate at which memtables were written to runs. A writer sleeps for its share, outside of all
//! locks, and at most for [`LONGEST`]: so a write is never stopped, only delayed, and many small
//! delays replace a long one.

use crate::fs::FileSystem;
use crate::stats::Stats;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest time for which one write is delayed.
const LONGEST: Duration = Duration::from_millis(40);
/// Shorter delays are saved up: to sleep costs more than they are.
const SHORTEST: Duration = Duration::from_micros(200);
/// The rate that is assumed before any memtable was written, in bytes a second.
const FIRST_RATE: u64 = 64 << 20;
/// The rate is not lowered below this, in bytes a second.
const LEAST_RATE: u64 = 1 << 20;

/// The delay of writes while there is debt.
pub(crate) struct BackPressure {
    file_system: Arc<dyn FileSystem>,
    /// Nanoseconds for each 1024 bytes of writes; 0 is no delay.
    delay: AtomicU64,
    /// The time, in nanoseconds, from which on the next write may go on.
    next: AtomicU64,
    /// Bytes a second at which memtables were written to runs, smoothed.
    rate: AtomicU64,
}

impl BackPressure {
    pub(crate) fn new(file_system: Arc<dyn FileSystem>) -> Self {
        BackPressure {
            file_system,
            delay: AtomicU64::new(0),
            next: AtomicU64::new(0),
            rate: AtomicU64::new(FIRST_RATE),
        }
    }

    /// Delays a write of so many bytes, if there is debt.
    #[inline]
    pub(crate) fn wait(&self, bytes: usize, stats: &Stats) {
        let delay = self.delay.load(Ordering::Relaxed);
        if delay > 0 {
            self.sleep(delay, bytes, stats);
        }
    }

    #[cold]
    fn sleep(&self, delay: u64, bytes: usize, stats: &Stats) {
        let (wait, _) = self.share(delay, bytes, |_| true);
        if wait >= SHORTEST {
            stats.on_stall(wait);
            self.file_system.sleep(wait);
        }
    }

    /// Returns `true` if a write of this many bytes may go on at once.
    pub(crate) fn lets_through(&self, bytes: usize) -> bool {
        let delay = self.delay.load(Ordering::Relaxed);
        delay == 0 || self.share(delay, bytes, |wait| wait < SHORTEST).1
    }

    /// The time by which a write of this many bytes is delayed. If that is acceptable, those behind
    /// it are delayed by its share.
    fn share(
        &self,
        delay: u64,
        bytes: usize,
        is_acceptable: impl Fn(Duration) -> bool,
    ) -> (Duration, bool) {
        let now = self.file_system.now().as_nanos() as u64;
        let share = (bytes as u64).saturating_mul(delay) >> 10;
        let longest = LONGEST.as_nanos() as u64;
        let mut wait = Duration::ZERO;
        let accepted = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                // A delay beyond the longest time is forgiven.
                let mine = next.clamp(now, now + longest);
                wait = Duration::from_nanos(mine - now);
                is_acceptable(wait).then_some(mine + share)
            });
        (wait, accepted.is_ok())
    }

    /// Notes how fast a memtable was written.
    pub(crate) fn on_flush(&self, bytes: usize, took: Duration) {
        let seconds = took.as_secs_f64().max(0.001);
        let rate = (bytes as f64 / seconds) as u64;
        let old = self.rate.load(Ordering::Relaxed);
        self.rate
            .store((old / 4 * 3 + rate / 4).max(LEAST_RATE), Ordering::Relaxed);
    }

    /// Sets the delay by the debt: how many memtables wait beyond one, and how many runs there are
    /// too many.
    pub(crate) fn set(&self, memtables: usize, runs: usize) {
        let debt = 2 * memtables + runs;
        let delay = match debt {
            0 => 0,
            _ => {
                let rate = self.rate.load(Ordering::Relaxed);
                // 4/5 of the rate at first, a third of it less for each step.
                let rate = (0..debt.min(24)).fold(rate / 5 * 6, |rate, _| rate / 3 * 2);
                (1024 * 1_000_000_000) / rate.max(LEAST_RATE)
            }
        };
        self.delay.store(delay, Ordering::Relaxed);
    }
}

/// Returns the number of runs that are not too many.
pub(crate) fn most_runs(fan_in: usize) -> usize {
    fan_in.saturating_mul(3)
}

/// Returns the number of runs beyond those that are not too many.
pub(crate) fn debt(runs: usize, fan_in: usize) -> usize {
    runs.saturating_sub(most_runs(fan_in.max(2)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::RealFs;

    #[test]
    fn memtables_that_are_never_written_delay_a_write_for_a_bounded_time() {
        let back_pressure = BackPressure::new(Arc::new(RealFs));
        back_pressure.set(1_000, 1_000);
        let delay = back_pressure.delay.load(Ordering::Relaxed);
        let wait = || back_pressure.share(delay, 1 << 30, |_| true).0;
        assert!((0..100).all(|_| wait() <= LONGEST));
        assert!(wait() > SHORTEST, "there is debt");
        back_pressure.set(0, 0);
        assert!(back_pressure.lets_through(1 << 30));
    }
}
