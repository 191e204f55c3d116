//! The reserve: room on the disk that is given back when the disk is full, so that deletes are
//! taken, and free more.
//!
//! A delete takes room before it gives some: a record in the journal, a run with the delete, and a
//! copy of the remaining records of each file with deleted ones. So a store keeps an empty file of
//! that size. When the disk is full the file is removed. From then on, until it can be made again,
//! the store is *short*: only writes that only delete are taken, memtables go to runs early, and
//! instead of large runs being compacted, files are [purged](crate::compaction) one at a time.
//!
//! The reserve is as large as the memtables, which have to be written once more, or as the largest
//! file of a run, whichever is more. It grows as these do, by an eighth or so, and it stays when
//! the store is closed, as large as the largest file is then. A file system that cannot make room
//! ahead has none.

use crate::error::{Error, is_full};
use crate::fs::{Directory, remove_if_there};
use crate::ids::FileNumber;
use crate::state::State;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The name of the file.
pub(crate) const NAME: &str = "reserve";
/// The smallest reserve, which manifests and the heads of files need, too.
const LEAST_BYTES: u64 = 64 << 10;
/// A compaction for which there was no room is tried again after this long.
const FULL_COMPACTION_PAUSE: Duration = Duration::from_secs(60);
/// Divisor of the reserve that gives the size of a full memtable while the store is short.
const SHORT_MEMTABLE_PART: u64 = 4;

/// Returns the size of a reserve for so many bytes: a bit more, so that it need not grow with each
/// write.
fn size_for(bytes: u64) -> u64 {
    let step = bytes.next_power_of_two() / 8;
    bytes.next_multiple_of(step.max(LEAST_BYTES))
}

/// See the [module](self).
pub(crate) struct Reserve {
    state: Arc<State>,
    /// The size of the file, as far as this opening has seen to it.
    bytes: AtomicU64,
    /// Bytes of the largest file of the runs.
    largest_file: AtomicU64,
    /// `true` if the room was given back.
    is_short: AtomicBool,
    /// Bytes of the smallest compaction for which there was no room, and when such compactions are
    /// tried again.
    full_compaction: Mutex<Option<(u64, Duration)>>,
    /// Held by the thread that makes room.
    pub(crate) making: Mutex<()>,
    /// Time from which on a memtable that is not full may be sealed again.
    pub(crate) next_seal: Mutex<Duration>,
    /// Held while the file changes. The files of runs that were purged since a memtable was written
    /// to a run.
    purged: Mutex<BTreeSet<FileNumber>>,
}

impl Reserve {
    pub(crate) fn new(state: Arc<State>) -> Self {
        Reserve {
            state,
            bytes: AtomicU64::new(0),
            largest_file: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
            full_compaction: Mutex::default(),
            making: Mutex::default(),
            next_seal: Mutex::default(),
            purged: Mutex::default(),
        }
    }

    /// Returns `true` if the room was given back, and could not be made again.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Returns `true` if there was no room for a compaction that is tried again later.
    pub(crate) fn has_full_compaction(&self) -> bool {
        self.full_compaction.lock().is_some()
    }

    /// Makes the reserve as large as this, unless it is.
    ///
    /// # Errors
    /// Those of the system, also if there is no room: then the store is not short of it yet, but
    /// the write that needs a larger reserve should not be made.
    #[inline]
    fn cover(&self, directory: &dyn Directory, bytes: u64) -> io::Result<()> {
        if self.covers(bytes) {
            Ok(())
        } else {
            self.grow(directory, bytes)
        }
    }

    /// Returns `true` if the reserve is as large as this.
    #[inline]
    fn covers(&self, bytes: u64) -> bool {
        self.bytes.load(Ordering::Relaxed) >= bytes
    }

    #[cold]
    fn grow(&self, directory: &dyn Directory, bytes: u64) -> io::Result<()> {
        let _changing = self.purged.lock();
        if self.covers(bytes) {
            return Ok(());
        }
        let file = match directory.open(NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => directory.create(NAME),
            opened => opened,
        }?;
        let mut size = size_for(bytes.max(1));
        match file.reserve(size) {
            // A smaller reserve, just as large as needed, may fit.
            Err(error) if is_full(error.kind()) && bytes < size => {
                size = bytes;
                file.reserve(size)?;
            }
            reserved => reserved?,
        }
        self.bytes.store(size, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the reserve smaller, if so many bytes need less.
    fn shrink(&self, directory: &dyn Directory, bytes: u64) -> io::Result<()> {
        let _changing = self.purged.lock();
        let size = size_for(bytes.max(1));
        if self.bytes.load(Ordering::Relaxed) > size {
            directory.open(NAME)?.set_len(size)?;
            self.bytes.store(size, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Removes the file. Returns `true` if that has given room: it has not if there was none.
    pub(crate) fn give_back(&self, directory: &dyn Directory) -> bool {
        let mut purged = self.purged.lock();
        if self.is_short.swap(true, Ordering::Relaxed) {
            return false;
        }
        purged.clear();
        directory.remove(NAME).is_ok()
    }

    /// Tries to make the reserve again after it was given back. Returns `true` if the store is not
    /// short any more.
    pub(crate) fn take_again(&self, directory: &dyn Directory, bytes: u64) -> bool {
        if !self.is_short() {
            return true;
        }
        self.bytes.store(0, Ordering::Relaxed);
        let taken = self.cover(directory, bytes).is_ok();
        if taken {
            self.is_short.store(false, Ordering::Relaxed);
        } else {
            // A part of it may be there.
            drop(remove_if_there(directory, NAME));
        }
        taken
    }

    /// Marks a file of a run as purged. Returns `true` if it was not.
    pub(crate) fn mark_purged(&self, number: FileNumber) -> bool {
        self.purged.lock().insert(number)
    }

    /// Lets all files be purged again: there are new deletes.
    pub(crate) fn forget_purged(&self) {
        self.purged.lock().clear();
    }

    /// Notes that there was no room for a compaction of runs with so many bytes, which is not tried
    /// again at once; and gives the reserve back, so that files are purged.
    pub(crate) fn on_full_compaction(&self, bytes: u64) {
        let until = self.state.file_system.now() + FULL_COMPACTION_PAUSE;
        *self.full_compaction.lock() = Some((bytes, until));
        self.give_back(&*self.state.directory);
    }

    /// Returns `true` if there may be room for a compaction of runs with so many bytes.
    pub(crate) fn may_compact(&self, bytes: u64) -> bool {
        let mut full_compaction = self.full_compaction.lock();
        if full_compaction.is_some_and(|(_, until)| self.state.file_system.now() >= until) {
            *full_compaction = None;
        }
        full_compaction.is_none_or(|(full, _)| bytes < full)
    }

    /// Returns the bytes that the reserve must have when this many are written to the active
    /// memtable.
    pub(crate) fn needed_bytes(&self, writes: usize) -> u64 {
        let version = self.state.versions.current();
        let memtables: usize = version.memtables().map(|memtable| memtable.bytes()).sum();
        let largest = self.largest_file.load(Ordering::Relaxed);
        ((memtables + writes) as u64 + LEAST_BYTES / 2).max(largest)
    }

    /// Notes the size of the largest file of the runs, which are others now.
    pub(crate) fn note_largest_file(&self) {
        let version = self.state.versions.current();
        let files = version.runs.iter().flat_map(|run| &run.meta.files);
        let largest = files.map(|file| file.bytes).max().unwrap_or(0);
        self.largest_file.store(largest, Ordering::Relaxed);
    }

    /// Makes the reserve as small as it may be when all is in runs. A failure only leaves it
    /// larger.
    pub(crate) fn shrink_to_runs(&self) {
        if !self.is_short() {
            let bytes = self.needed_bytes(0);
            let _ = self.shrink(&*self.state.directory, bytes);
        }
    }

    /// Ensures a reserve for a write of so many bytes. While the store is short, the reserve is not
    /// made again here: the work that makes room needs the room that is left.
    ///
    /// # Errors
    /// [`Error::Io`] of a full disk, if there is none and the write does not only delete.
    pub(crate) fn cover_write(&self, bytes: usize, only_deletes: bool) -> Result<(), Error> {
        if self.is_short() {
            return if only_deletes {
                Ok(())
            } else {
                let error = io::Error::from(io::ErrorKind::StorageFull);
                Err(Error::io(
                    &error,
                    "the disk is full, and takes deletes only",
                ))
            };
        }
        let needed = self.needed_bytes(bytes);
        match self.cover(&*self.state.directory, needed) {
            Err(error) if only_deletes && is_full(error.kind()) => Ok(()),
            covered => covered.map_err(|error| Error::io(&error, "making the reserve larger")),
        }
    }

    /// Returns `true` if there is a reserve for a write of so many bytes, so that it waits for
    /// nothing.
    pub(crate) fn is_write_covered(&self, bytes: usize) -> bool {
        !self.is_short() && self.covers(self.needed_bytes(bytes))
    }

    /// Does something that gives room in the end. If there is no room for it, it is tried once more
    /// without the reserve.
    pub(crate) fn with_reserve<T>(
        &self,
        mut work: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        match work() {
            Err(error)
                if error.is_full()
                    && self.state.status.check_writable().is_ok()
                    && self.give_back(&*self.state.directory) =>
            {
                work()
            }
            done => done,
        }
    }

    /// Returns the bytes with which a memtable is full.
    pub(crate) fn memtable_limit(&self) -> usize {
        if self.is_short() {
            let part = self.bytes.load(Ordering::Relaxed) / SHORT_MEMTABLE_PART;
            let part = usize::try_from(part.max(LEAST_BYTES / 2)).unwrap_or(usize::MAX);
            self.state.full_memtable_bytes().min(part)
        } else {
            self.state.full_memtable_bytes()
        }
    }
}
