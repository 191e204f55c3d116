//! The sequence number that is published, and the snapshots that are alive.
//!
//! A writer may drop a version of a key only if no snapshot reads it. So readers that take a
//! snapshot are entered here, under a short lock, at the last published sequence number.
//!
//! **SNAPSHOT_LIST-1** A snapshot is entered at the number that is published at that moment, under
//! the lock. **SNAPSHOT_LIST-2** A group of writes is applied either all under the lock (a group of
//! one record, which is short), or it has looked at the snapshots under the lock before it applies
//! anything, and besides keeps the versions that are readable at the number that was published
//! then. So a snapshot that is entered while the group is applied finds its versions: by
//! SNAPSHOT_LIST-1 its number is either one the group has seen, or the one that was published when
//! the group began.

use crate::error::Error;
use crate::ids::Seq;
use crate::record_count::RecordCount;
use ats_sync::SeqlockNumber;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};

/// The published sequence number, and those of live snapshots.
pub(crate) struct SnapshotList {
    live: Mutex<Vec<Seq>>,
    /// The sequence number of the last write that readers without a snapshot see.
    visible: AtomicU64,
    /// The number of records at that write, or [`RecordCount::UNKNOWN`].
    count: SeqlockNumber,
}

impl SnapshotList {
    pub(crate) fn new(visible: Seq) -> Self {
        SnapshotList {
            live: Mutex::default(),
            visible: AtomicU64::new(visible.get()),
            count: SeqlockNumber::new(RecordCount::UNKNOWN),
        }
    }

    /// Returns the last published sequence number.
    pub(crate) fn visible(&self) -> Seq {
        // Acquire: changes that were applied before the number was published are seen.
        Seq::new(self.visible.load(Ordering::Acquire))
    }

    /// Publishes all up to this number, and how many records there are then. `apply` makes changes
    /// that readers may see before they are published. The caller holds `write_state`.
    pub(crate) fn publish(&self, visible: Seq, count: &RecordCount, apply: impl FnOnce()) {
        if count.published_value() == RecordCount::UNKNOWN {
            // The count becomes unknown earlier than need be, so that no thread that asks for it
            // waits for `apply`.
            self.count.publish(RecordCount::UNKNOWN, || {});
        }
        self.count.publish(count.published_value(), || {
            apply();
            self.visible.store(visible.get(), Ordering::Release);
        });
    }

    /// Publishes how many records there are, which were there before. The caller holds
    /// `write_state`.
    pub(crate) fn publish_count(&self, count: &RecordCount) {
        self.count.publish(count.published_value(), || {});
    }

    /// Returns the number of records, if that is known.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if the system has stopped a thread that publishes, for long.
    pub(crate) fn count(&self) -> Result<Option<usize>, Error> {
        match self.count.read() {
            None => Err(Error::WouldBlock),
            Some(RecordCount::UNKNOWN) => Ok(None),
            Some(records) => Ok(Some(usize::try_from(records).unwrap_or(0))),
        }
    }

    /// Enters a snapshot: its number.
    pub(crate) fn add(&self) -> Seq {
        let mut live = self.live.lock();
        let visible = self.visible();
        // Numbers are published in ascending order, so the list is ascending.
        live.push(visible);
        visible
    }

    /// Takes a snapshot off the list.
    pub(crate) fn remove(&self, number: Seq) {
        let mut live = self.live.lock();
        if let Ok(index) = live.binary_search(&number) {
            live.remove(index);
        }
    }

    /// Returns the numbers of all snapshots, ascending, maybe several times, as long as the guard
    /// lives.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Seq>> {
        self.live.lock()
    }
}
