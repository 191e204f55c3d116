//! The barrier that readers raise before writers when they have waited for long.
//!
//! The invariants (READER_GROUPS-1 and so on) are those of [`reader_groups`](super).

use super::sleep::{sleep, spin, wake_all};
use ats_sync::shim::atomic::{AtomicU32, Ordering};

pub(super) struct Barrier {
    /// Number of readers that hold the barrier up.
    raised: AtomicU32,
    /// Number of times that the last of them has lowered it; wraps around.
    lowered: AtomicU32,
}

impl Barrier {
    pub(super) fn new() -> Self {
        Barrier {
            raised: AtomicU32::new(0),
            lowered: AtomicU32::new(0),
        }
    }

    /// Raises the barrier for a reader, until the returned value is dropped.
    pub(super) fn raise(&self) -> Raised<'_> {
        self.raised.fetch_add(1, Ordering::Relaxed);
        Raised(self)
    }

    #[inline]
    pub(super) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed) != 0
    }

    /// Waits, if the barrier is up, until it has been lowered once, even if it is up again by then
    /// (READER_GROUPS-5).
    #[inline]
    pub(super) fn wait(&self) {
        if self.is_raised() {
            self.wait_until_lowered();
        }
    }

    #[cold]
    fn wait_until_lowered(&self) {
        // Acquires the last lowering. If `since` is the latest value, a load of `raised` below that
        // finds the barrier up reads a value written after that lowering. So another lowering will
        // follow, and wake this thread.
        let since = self.lowered.load(Ordering::Acquire);
        let is_over = || !self.is_raised() || self.lowered.load(Ordering::Relaxed) != since;
        if spin(is_over) {
            return;
        }
        while !is_over() {
            sleep(&self.lowered, since);
        }
    }
}

/// A barrier that a reader holds up. Dropping this lowers it, if no other reader holds it up.
pub(super) struct Raised<'a>(&'a Barrier);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        let Barrier { raised, lowered } = self.0;
        if raised.fetch_sub(1, Ordering::Relaxed) == 1 {
            lowered.fetch_add(1, Ordering::Release);
            wake_all(lowered);
        }
    }
}
