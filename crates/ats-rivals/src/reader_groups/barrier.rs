//! The barrier that readers which wait for long put up before writers.
//!
//! The invariants (READER_GROUPS-1 and so on) are those of [`reader_groups`](super).

use super::sleep::{sleep, spin, wake_all};
use ats_sync::shim::atomic::{AtomicU32, Ordering};

pub(super) struct Barrier {
    /// The number of readers that have put it up.
    raised: AtomicU32,
    /// The number of times that the last of them has let it down; wraps around.
    lowered: AtomicU32,
}

impl Barrier {
    pub(super) fn new() -> Self {
        Barrier {
            raised: AtomicU32::new(0),
            lowered: AtomicU32::new(0),
        }
    }

    /// Puts the barrier up for a reader, until what is returned is dropped.
    pub(super) fn raise(&self) -> Raised<'_> {
        self.raised.fetch_add(1, Ordering::Relaxed);
        Raised(self)
    }

    #[inline]
    pub(super) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed) != 0
    }

    /// If the barrier is up, waits until it has been let down once, be it up again or not
    /// (READER_GROUPS-5).
    #[inline]
    pub(super) fn wait(&self) {
        if self.is_raised() {
            self.wait_until_lowered();
        }
    }

    #[cold]
    fn wait_until_lowered(&self) {
        // If this has the last lowering, the loads of `raised` below see what was before it: so
        // there is another lowering to come whenever they say that the barrier is up.
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

/// A barrier that a reader has put up.
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
