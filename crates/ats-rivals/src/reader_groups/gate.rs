//! The gate, which is open while readers may enter.
//!
//! The invariants (READER_GROUPS-1 and so on) are those of [`reader_groups`](super).

use super::sleep::{sleep, wake_all};
use ats_sync::shim::atomic::{AtomicU32, Ordering};

const OPEN: u32 = 0;
const SHUT: u32 = 1;
/// The gate is shut, and readers may be asleep.
const ASLEEP: u32 = 2;

#[derive(Debug)]
pub(super) struct Gate(AtomicU32);

impl Gate {
    pub(super) fn new() -> Self {
        Gate(AtomicU32::new(OPEN))
    }

    /// Returns `true` if readers may pass. Acquires the writes of the writer that has opened the
    /// gate.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire) == OPEN
    }

    /// Shuts the gate, which is open. The caller holds the queue, and then publishes this through
    /// the groups (READER_GROUPS-3).
    pub(super) fn shut(&self) {
        // A plain store suffices: other threads change the word only while the gate is shut.
        self.0.store(SHUT, Ordering::Relaxed);
    }

    /// Opens the gate, and wakes the readers that sleep. The caller holds the queue.
    pub(super) fn open(&self) {
        if self.0.swap(OPEN, Ordering::Release) == ASLEEP {
            wake_all(&raw const self.0);
        }
    }

    /// Sleeps while the gate is shut. May return early.
    pub(super) fn sleep_if_shut(&self) {
        let asleep = self
            .0
            .compare_exchange(SHUT, ASLEEP, Ordering::Relaxed, Ordering::Relaxed);
        if asleep != Err(OPEN) {
            sleep(&self.0, ASLEEP);
        }
    }
}
