//! The gate that readers find open or shut.
//!
//! The invariants (READER_GROUPS-1 and so on) are those of [`reader_groups`](super).

use super::sleep::{sleep, wake_all};
use ats_sync::shim::atomic::{AtomicU32, Ordering};

const OPEN: u32 = 0;
const SHUT: u32 = 1;
/// Shut, and readers may be asleep.
const ASLEEP: u32 = 2;

#[derive(Debug)]
pub(super) struct Gate(AtomicU32);

impl Gate {
    pub(super) fn new() -> Self {
        Gate(AtomicU32::new(OPEN))
    }

    /// Returns `true` if readers may pass. Acquires what the writer that has opened the gate has
    /// written.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire) == OPEN
    }

    /// Shuts the gate. To be called by the holder of the queue, if the gate is open. Groups publish
    /// it (READER_GROUPS-3).
    pub(super) fn shut(&self) {
        // A store: threads that sleep only change a gate that is shut.
        self.0.store(SHUT, Ordering::Relaxed);
    }

    /// Opens the gate, and wakes the readers that sleep before it. To be called by the holder of
    /// the queue.
    pub(super) fn open(&self) {
        if self.0.swap(OPEN, Ordering::Release) == ASLEEP {
            wake_all(&raw const self.0);
        }
    }

    /// Sleeps if the gate is shut, until it is opened. May return early for no reason.
    pub(super) fn sleep_if_shut(&self) {
        let asleep = self
            .0
            .compare_exchange(SHUT, ASLEEP, Ordering::Relaxed, Ordering::Relaxed);
        if asleep != Err(OPEN) {
            sleep(&self.0, ASLEEP);
        }
    }
}
