//! Wake-ups of a domain's [`collector`](super::collector) by other threads; see its invariants
//! COLLECTOR-2 and COLLECTOR-3.

use crate::shim::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;
use std::thread::Thread;

/// State of a collector that works, or is about to read all bags.
pub(super) const AWAKE: u32 = 0;
/// State of a collector that rests until the next survey; only other work wakes it.
pub(super) const NAPPING: u32 = 1;
/// State of a collector that sleeps until there is garbage.
pub(super) const ASLEEP: u32 = 2;

/// The state of a domain's collector, and the means to wake it.
pub(super) struct WakeUp {
    pub(super) state: AtomicU32,
    /// The thread of the collector, if there is one.
    pub(super) collector: OnceLock<Thread>,
}

impl WakeUp {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU32::new(AWAKE),
            collector: OnceLock::new(),
        }
    }

    /// Wakes the collector if it sleeps without limit. Called after a push into an empty bag and a
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
