//! The bell by which threads wake the [`collector`](super::collector) of their domain, whose
//! invariants K2 and K3 are about it.

use crate::shim::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;
use std::thread::Thread;

/// The collector works, or is about to look at everything.
pub(super) const AWAKE: u32 = 0;
/// It rests until the next survey; only work of another kind wakes it.
pub(super) const NAPPING: u32 = 1;
/// It sleeps until there is garbage.
pub(super) const ASLEEP: u32 = 2;

/// The bell by which threads wake the collector of their domain.
pub(super) struct Bell {
    pub(super) state: AtomicU32,
    /// The thread of the collector, once there is one.
    pub(super) collector: OnceLock<Thread>,
}

impl Bell {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU32::new(AWAKE),
            collector: OnceLock::new(),
        }
    }

    /// Wakes the collector if it sleeps without limit. Comes after a push into an empty bag and a light
    /// fence (K2).
    #[inline]
    pub(super) fn ring_for_garbage(&self) {
        if self.state.load(Ordering::Relaxed) == ASLEEP {
            self.ring();
        }
    }

    /// Wakes the collector if it rests.
    pub(super) fn ring_for_work(&self) {
        if self.state.load(Ordering::Relaxed) != AWAKE {
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        // One ring is enough.
        if self.state.swap(AWAKE, Ordering::Relaxed) != AWAKE
            && let Some(collector) = self.collector.get()
        {
            collector.unpark();
        }
    }
}
