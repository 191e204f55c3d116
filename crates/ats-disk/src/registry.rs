//! The sequence number that is published, and the snapshots that are alive.
//!
//! A writer may drop a version of a key only if no snapshot reads it. So readers that take a snapshot are entered
//! here, under a short lock, at the last published sequence number.
//!
//! **R1** A snapshot is entered at the number that is published at that moment, under the lock. **R2** A group of
//! writes is applied either all under the lock (a group of one record, which is short), or it has looked at the
//! snapshots under the lock before it applies anything, and keeps besides what is read at the number that was
//! published then. So a snapshot that is entered while the group is applied finds what it reads: by R1 its number is
//! either one the group has seen, or the one that was published when the group began.

use crate::error::Error;
use crate::record_count::RecordCount;
use ats_sync::SeqlockNumber;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) struct Registry {
    live: Mutex<Vec<u64>>,
    /// The sequence number of the last write that readers without a snapshot see.
    visible: AtomicU64,
    /// The number of records at that write, or [`RecordCount::UNKNOWN`].
    records: SeqlockNumber,
}

impl Registry {
    pub(crate) fn new(visible: u64) -> Self {
        Registry {
            live: Mutex::default(),
            visible: AtomicU64::new(visible),
            records: SeqlockNumber::new(RecordCount::UNKNOWN),
        }
    }

    /// The last published sequence number.
    pub(crate) fn visible(&self) -> u64 {
        // Acquire: what was applied before it was published is seen.
        self.visible.load(Ordering::Acquire)
    }

    /// Publishes all up to this number, and how many records there are then. `apply` makes changes that readers may see
    /// before they are published. The caller holds `writing`.
    pub(crate) fn publish(&self, visible: u64, records: &RecordCount, apply: impl FnOnce()) {
        if records.published() == RecordCount::UNKNOWN {
            // It may be unknown earlier than need be, so that no thread that asks for it waits for `apply`.
            self.records.publish(RecordCount::UNKNOWN, || {});
        }
        self.records.publish(records.published(), || {
            apply();
            self.visible.store(visible, Ordering::Release);
        });
    }

    /// Publishes how many records there are, which were there before. The caller holds `writing`.
    pub(crate) fn publish_count(&self, records: &RecordCount) {
        self.records.publish(records.published(), || {});
    }

    /// The number of records, if that is known.
    ///
    /// # Errors
    /// [`Error::WouldWait`] for a thread that must not wait, if the system has stopped one that publishes.
    pub(crate) fn records(&self) -> Result<Option<usize>, Error> {
        match self.records.read() {
            None => Err(Error::WouldWait),
            Some(RecordCount::UNKNOWN) => Ok(None),
            Some(records) => Ok(Some(usize::try_from(records).unwrap_or(0))),
        }
    }

    /// Enters a snapshot: its number.
    pub(crate) fn enter(&self) -> u64 {
        let mut live = self.live.lock();
        let visible = self.visible();
        // Numbers are published in ascending order, so the list is ascending.
        live.push(visible);
        visible
    }

    /// Takes a snapshot off the list.
    pub(crate) fn leave(&self, number: u64) {
        let mut live = self.live.lock();
        if let Ok(index) = live.binary_search(&number) {
            live.remove(index);
        }
    }

    /// The numbers of all snapshots, ascending, maybe several times, as long as the guard lives.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.live.lock()
    }
}
