//! The state that the parts of an open store share.

mod version;

pub(crate) use version::{Sealed, StoredRun, Version, VersionSet};

use crate::background::Schedule;
use crate::directory::{DirectoryLock, StoreDirectory};
use crate::error::Error;
use crate::files::Obsolete;
use crate::fork_detection;
use crate::fs::{Directory, FileSystem, Sharing};
use crate::memory::{self, Share};
use crate::options::Options;
use crate::read::{SnapshotExpiry, SnapshotList, TombstoneGaps};
use crate::stats::Stats;
use crate::write::{self, BackPressure, WriteState};
use parking_lot::Mutex;
use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The state that the parts of an open store share: the files and options that it is made of, the
/// version that is published, and the reason why nothing may be written, if there is one. The parts
/// stand above it: [`read`](crate::read), [`files`](crate::files), [`write`](mod@crate::write),
/// [`flush`](crate::flush), [`compaction`](crate::compaction), and what works in the
/// [`background`](crate::background).
///
/// Locks are taken in this order, each while those before it may be held: `write_state`, that of the manifest,
/// that of the version; the lock of the list of snapshots, that of the queue and that of the gaps are taken last.
/// That of the manifest is held while files are synced, so no writer takes it.
pub(crate) struct Core {
    pub(crate) options: Options,
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
    /// See [`fork_detection`].
    fork_count: u64,
    /// The reason why nothing is written any more.
    broken: OnceLock<String>,
    /// `true` if the store was opened for reading: then it has no threads, and writes nothing.
    pub(crate) is_read_only: bool,
    /// `true` if the store is being closed.
    pub(crate) closing: AtomicBool,
    /// The last error of a background thread.
    pub(crate) last_error: Mutex<Option<Error>>,
    /// Until it is dropped no other store opens the directory.
    pub(crate) directory_lock: DirectoryLock,
}

/// The parts of a core when the store is opened.
pub(crate) struct Opened {
    pub(crate) options: Options,
    pub(crate) directory: StoreDirectory,
    pub(crate) store: u128,
    pub(crate) version: Version,
    pub(crate) write_state: WriteState,
}

impl Core {
    pub(crate) fn new(opened: Opened) -> Self {
        let Opened {
            options,
            directory,
            store,
            version,
            write_state,
        } = opened;
        let is_read_only = directory.sharing == Sharing::Shared;
        let broken = match is_read_only {
            true => OnceLock::from(String::from("it was opened for reading")),
            false => OnceLock::new(),
        };
        Core {
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
            fork_count: fork_detection::fork_count(),
            broken,
            is_read_only,
            closing: AtomicBool::new(false),
            last_error: Mutex::default(),
            directory_lock: DirectoryLock::new(directory.lock),
            file_system: directory.file_system,
            options,
        }
    }

    /// # Errors
    /// [`Error::ReadOnly`] after a failure that has left unknown what is on disk.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        if self.is_forked() {
            let why = "this process is a copy, by fork, of the one that opened it";
            return Err(Error::ReadOnly(why.into()));
        }
        match self.broken.get() {
            None => Ok(()),
            Some(why) => Err(Error::ReadOnly(why.clone())),
        }
    }

    /// Returns `true` if this is a copy of the store in another process.
    pub(crate) fn is_forked(&self) -> bool {
        fork_detection::is_forked_since(self.fork_count)
    }

    /// Lets another store open the directory, as soon as nothing of this one works there.
    pub(crate) fn release_directory(&self) {
        self.directory_lock
            .release(&*self.file_system, self.is_forked());
    }

    /// # Errors
    /// [`Error::ReadOnly`] while the store is being closed, which no writer may keep from its end.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        match self.closing.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::ReadOnly("it is being closed".into())),
        }
    }

    /// Lets nothing be written any more because of this error, which it returns.
    pub(crate) fn broken(&self, error: Error) -> Error {
        let why = match &error {
            Error::ReadOnly(why) => why.clone(),
            error => error.to_string(),
        };
        let _first = self.broken.set(why);
        error
    }

    /// The back-pressure on writes: that of the store, and that of all stores that share memory.
    pub(crate) fn back_pressures(&self) -> impl Iterator<Item = &BackPressure> {
        let shared = self.share.as_ref().map(|_| memory::back_pressure());
        iter::once(&self.back_pressure).chain(shared)
    }

    /// Adapts the delay of writes to the version. Where nothing works in the background, nothing would
    /// be gained by waiting.
    pub(crate) fn update_back_pressure(&self) {
        if self.options.background {
            let sealed = self.versions.current().sealed.len();
            self.back_pressure
                .set(sealed.saturating_sub(1), self.debt());
        }
    }

    /// The bytes of memory with which a memtable is full, where there is no lack of room.
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

    /// The bytes of the runs beyond those that they should have: see [`write::debt`].
    pub(crate) fn debt(&self) -> usize {
        write::debt(self.versions.current().runs.len(), self.options.fan_in)
    }

    /// Removes the files that are not read any more. Whether there were any.
    pub(crate) fn remove_obsolete(&self) -> bool {
        self.obsolete.remove(&*self.directory, &self.stats)
    }
}
