//! The wake-up of the [`collector`](super::collector) of a domain by threads that work in it, whose
//! invariants COLLECTOR-2 and COLLECTOR-3 are about it.

use crate::shim::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;
use std::thread::Thread;

/// The collector works, or is about to look at everything.
pub(super) const AWAKE: u32 = 0;
/// It rests until the next survey; only work of another kind wakes it.
pub(super) const NAPPING: u32 = 1;
/// It sleeps until there is garbage.
pub(super) const ASLEEP: u32 = 2;

/// The state of the collector of a domain, and the way to wake it.
pub(super) struct WakeUp {
    pub(super) state: AtomicU32,
    /// The thread of the collector, once there is one.
    pub(super) collector: OnceLock<Thread>,
}

impl WakeUp {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU32::new(AWAKE),
            collector: OnceLock::new(),
        }
    }

    /// Wakes the collector if it sleeps without limit. Comes after a push into an empty bag and a
    /// light fence (COLLECTOR-2).
    #[inline]
    pub(super) fn wake_for_garbage(&self) {
        if self.state.load(Ordering::Relaxed) == ASLEEP {
            self.wake();
        }
    }

    /// Wakes the collector if it rests.
    pub(super) fn wake_for_work(&self) {
        if self.state.load(Ordering::Relaxed) != AWAKE {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // One wake-up is enough.
        if self.state.swap(AWAKE, Ordering::Relaxed) != AWAKE
            && let Some(collector) = self.collector.get()
        {
            collector.unpark();
        }
    }
}
