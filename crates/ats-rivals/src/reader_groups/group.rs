//! A counter of readers, and the writer that waits until they have left.
//!
//! The invariants (READER_GROUPS-1 and so on) are those of [`reader_groups`](super).

use super::sleep::{sleep, spin, wake_one};
use ats_sync::shim::atomic::{AtomicU32, Ordering};

/// The bit that says that the writer may be asleep until the last reader leaves.
const AWAITED: u32 = 1 << 31;
/// More readers are refused. Only guards that are forgotten come near.
const LIMIT: u32 = 1 << 30;

/// The number of readers of one group that there are, or may be about to be.
#[derive(Debug)]
pub(super) struct Group(AtomicU32);

impl Group {
    pub(super) fn new() -> Self {
        Group(AtomicU32::new(0))
    }

    /// Counts a reader in, whether it may read or not.
    ///
    /// # Panics
    /// If there are 2^30 of them.
    #[inline]
    pub(super) fn arrive(&self) {
        // Acquires the gate that the last writer, if it has passed this group, has shut or opened
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
        // The writer may go on directly after this, so only the address is used from here on.
        if self.0.fetch_sub(1, Ordering::Release) == AWAITED + 1 {
            wake_one(word);
        }
    }

    /// Passes the group as the writer that has shut the gate. Returns `true` if there was no reader
    /// at this moment; readers that arrive later find the gate shut (READER_GROUPS-3).
    #[inline]
    pub(super) fn pass(&self) -> bool {
        // A read-modify-write and not a load, so that a reader which arrives later acquires what
        // was written before.
        self.0.fetch_add(0, Ordering::AcqRel) == 0
    }

    /// Waits until there is no reader for a moment. To be called by the writer that has passed the
    /// group.
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

    /// Counts so many readers in that will never leave.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn add_forgotten(&self, readers: u32) {
        self.0.fetch_add(readers, Ordering::Relaxed);
    }
}
