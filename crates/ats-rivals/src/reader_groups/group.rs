//! The counter of a group of readers, and the wait of a writer until they have left.
//!
//! The invariants (READER_GROUPS-1 and so on) are those of [`reader_groups`](super).

use super::sleep::{sleep, spin, wake_one};
use ats_sync::shim::atomic::{AtomicU32, Ordering};

/// The bit that is set while a writer waits for the last reader to leave, and may be asleep.
const AWAITED: u32 = 1 << 31;
/// Number of readers from which on more are refused. Only forgotten guards can reach it.
const LIMIT: u32 = 1 << 30;

/// Number of readers of a group that hold the lock, or are trying to get it.
#[derive(Debug)]
pub(super) struct Group(AtomicU32);

impl Group {
    pub(super) fn new() -> Self {
        Group(AtomicU32::new(0))
    }

    /// Counts a reader in, which may turn out not to be allowed to read.
    ///
    /// # Panics
    /// If there are 2^30 of them.
    #[inline]
    pub(super) fn arrive(&self) {
        // Acquires the state of the gate as the last writer that has passed this group has left it
        // (READER_GROUPS-3).
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        if before & !AWAITED >= LIMIT {
            self.refuse();
        }
    }

    #[cold]
    fn refuse(&self) {
        self.leave();
        panic!("too many readers of a lock");
    }

    /// Counts a reader out.
    #[inline]
    pub(super) fn leave(&self) {
        let word = &raw const self.0;
        // The writer may go on directly after this and free the group, so only its address is used
        // then.
        if self.0.fetch_sub(1, Ordering::Release) == AWAITED + 1 {
            wake_one(word);
        }
    }

    /// Passes the group as the writer that has shut the gate. Returns `true` if the group had no
    /// reader at this moment. Readers that arrive later find the gate shut (READER_GROUPS-3).
    #[inline]
    pub(super) fn pass(&self) -> bool {
        // Adding 0 is a read-modify-write, unlike a load. So a reader that arrives later acquires
        // all writes made before.
        self.0.fetch_add(0, Ordering::AcqRel) == 0
    }

    /// Waits until the group has no reader at some moment. The caller is the writer that has passed
    /// it.
    #[cold]
    pub(super) fn wait_until_empty(&self) {
        let is_empty = || self.0.load(Ordering::Acquire) == 0;
        if spin(is_empty) {
            return;
        }
        let mut now = self.0.fetch_add(AWAITED, Ordering::AcqRel) + AWAITED;
        while now != AWAITED {
            // The last reader that leaves changes this word, and then wakes us (READER_GROUPS-4).
            sleep(&self.0, now);
            now = self.0.load(Ordering::Acquire);
        }
        self.0.fetch_sub(AWAITED, Ordering::Relaxed);
    }

    /// Counts in readers that will never leave.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn add_forgotten(&self, readers: u32) {
        self.0.fetch_add(readers, Ordering::Relaxed);
    }
}
