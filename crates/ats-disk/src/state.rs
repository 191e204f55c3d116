//! The state that the parts of an open store share.

pub(crate) mod back_pressure;
pub(crate) mod expiry;
pub(crate) mod group;
pub(crate) mod memory;
pub(crate) mod obsolete;
pub(crate) mod schedule;
pub(crate) mod snapshot_list;
mod status;
pub(crate) mod tombstone_gaps;
mod version;
pub(crate) mod write_state;

pub(crate) use status::Status;
pub(crate) use version::{Sealed, StoredRun, Version, VersionSet};

use crate::directory::{DirectoryLock, StoreDirectory};
use crate::error::Error;
use crate::fs::{Directory, FileSystem, Sharing};
use crate::lifetime::{self, Lifetimes};
use crate::options::Options;
use crate::stats::Stats;
use back_pressure::BackPressure;
use expiry::SnapshotExpiry;
use memory::Share;
use obsolete::Obsolete;
use parking_lot::Mutex;
use schedule::Schedule;
use snapshot_list::SnapshotList;
use std::iter;
use std::sync::Arc;
use tombstone_gaps::TombstoneGaps;
use write_state::WriteState;

/// The state that the parts of an open store share: its files and options, the published version,
/// and its status. The parts stand above it: [`read`](crate::read), [`files`](crate::files),
/// [`write`](mod@crate::write), [`flush`](crate::flush), [`compaction`](crate::compaction), and the
/// [`background`](crate::background).
///
/// Locks are taken in this order, each while those before it may be held: `write_state`, that of
/// the manifest, that of the version; the lock of the list of snapshots, that of the queue and that
/// of the gaps are taken last. That of the manifest is held while files are synced, so no writer
/// takes it.
pub(crate) struct State {
    pub(crate) options: Options,
    /// The clock of a store whose records expire.
    pub(crate) lifetimes: Option<Lifetimes>,
    pub(crate) file_system: Arc<dyn FileSystem>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) store: u128,
    /// Nothing if memtables have memory of their own.
    pub(crate) share: Option<Arc<Share>>,
    pub(crate) versions: VersionSet,
    pub(crate) snapshots: SnapshotList,
    pub(crate) gaps: TombstoneGaps,
    pub(crate) write_state: Mutex<WriteState>,
    pub(crate) obsolete: Obsolete,
    pub(crate) expiry: SnapshotExpiry,
    pub(crate) back_pressure: BackPressure,
    pub(crate) stats: Stats,
    pub(crate) background: Schedule,
    pub(crate) status: Status,
    /// Until it is dropped no other store opens the directory.
    pub(crate) directory_lock: DirectoryLock,
}

impl State {
    /// Makes the shared state of a store with this identifier.
    pub(crate) fn new(
        store: u128,
        directory: StoreDirectory,
        options: Options,
        version: Version,
        write_state: WriteState,
        lifetimes: Option<Lifetimes>,
    ) -> Self {
        State {
            lifetimes,
            directory: directory.directory,
            store,
            share: options.memtable_bytes.is_none().then(Share::join),
            versions: VersionSet::new(version),
            snapshots: SnapshotList::new(write_state.last_seq),
            gaps: TombstoneGaps::default(),
            write_state: Mutex::new(write_state),
            obsolete: Obsolete::default(),
            expiry: SnapshotExpiry::default(),
            back_pressure: BackPressure::new(Arc::clone(&directory.file_system)),
            stats: Stats::default(),
            background: Schedule::default(),
            status: Status::new(directory.sharing == Sharing::Shared),
            directory_lock: DirectoryLock::new(directory.lock),
            file_system: directory.file_system,
            options,
        }
    }

    /// Returns the moment of a reader that has its version: the time, if records expire, and 0
    /// otherwise.
    #[inline]
    pub(crate) fn moment(&self) -> u64 {
        self.lifetimes.as_ref().map_or(0, Lifetimes::now)
    }

    /// Returns the content of a value as it is in files; `None` if it has expired at this moment.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it has no deadline, and should have one.
    #[inline]
    pub(crate) fn content<'v>(
        &self,
        value: &'v [u8],
        moment: u64,
    ) -> Result<Option<&'v [u8]>, Error> {
        match &self.lifetimes {
            None => Ok(Some(value)),
            Some(_) if lifetime::is_over(value, moment) => Ok(None),
            Some(_) => lifetime::content(value).map(Some),
        }
    }

    /// Lets another store open the directory, as soon as nothing of this one works there.
    pub(crate) fn release_directory(&self) {
        self.directory_lock
            .release(&*self.file_system, self.status.is_forked());
    }

    /// Returns the back-pressure on writes: that of the store, and that of all stores that share
    /// memory.
    pub(crate) fn back_pressures(&self) -> impl Iterator<Item = &BackPressure> {
        let shared = self.share.as_ref().map(|_| memory::back_pressure());
        iter::once(&self.back_pressure).chain(shared)
    }

    /// Adapts the delay of writes to the version. A store without threads would gain nothing by
    /// waiting.
    pub(crate) fn update_back_pressure(&self) {
        if self.options.background {
            let sealed = self.versions.current().sealed.len();
            self.back_pressure
                .set(sealed.saturating_sub(1), self.debt());
        }
    }

    /// Returns the bytes of memory with which a memtable is full, where there is no lack of room.
    pub(crate) fn full_memtable_bytes(&self) -> usize {
        let own = self.options.memtable_bytes;
        own.unwrap_or_else(memory::memtable_bytes)
    }

    /// Tells how large the memtables are, if the store shares memory.
    pub(crate) fn tell_memory(&self, version: &Version) {
        if let Some(share) = &self.share {
            share.tell(version.memtables().map(|memtable| memtable.bytes()).sum());
        }
    }

    /// Returns the bytes of the runs beyond those that they should have: see
    /// [`back_pressure::debt`].
    pub(crate) fn debt(&self) -> usize {
        back_pressure::debt(self.versions.current().runs.len(), self.options.fan_in)
    }

    /// Removes the files that are not read any more. Returns `true` if there were any.
    pub(crate) fn remove_obsolete(&self) -> bool {
        self.obsolete.remove(&*self.directory, &self.stats)
    }
}
