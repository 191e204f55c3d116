//! Open files that are closed again when there are too many.
//!
//! A store of many files, and a process of many stores, would need more descriptors than there are.
//! So a file that is only read is opened by its name when it is read, and stays open as long as it
//! is among those that were read lately. One that was closed is opened again, in the directory in
//! which it was. The file to close is chosen as by CLOCK: they stand in a row, the first is asked
//! if it was read since it was asked last, and then goes to the end.
//!
//! Most files of many small stores are read when they are opened, once or twice more, and then from
//! the cache. So a file that was read a few times only waits before the row, where there are few
//! slots. The reads of a file are counted as long as its store is open: a file that is read more
//! often is opened a few times at most before it is in the row.
//!
//! - **OPEN_FILES-1** A file in the row, or before it, is open, unless it was dropped; a file that
//!   is open is there once, but in a copy of the process, which does not touch the row.
//! - **OPEN_FILES-2** A read that has found the file open keeps it open until it ends.
//!
//! LevelDB has the same as its table cache.

use super::{Directory, File};
use crate::fork_detection;
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use std::collections::VecDeque;
use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Divisor of the descriptors that stores do not need otherwise; the quotient is for files that are
/// only read.
const SHARE: u64 = 4;
/// Bounds of the number of files that are only read.
const LEAST: u64 = 8;
const MOST: u64 = 16 << 10;
/// Number of files that are kept before the row.
const HARDLY_READ: usize = 16;
/// A file of which more calls were made stands in the row. A run file that is opened and of which
/// one record is read gets six.
const FEW_READS: u8 = 6;

/// The most files that are open; 0 if that follows from the limit of the process.
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// The files that are open.
static ROW: Mutex<Row> = Mutex::new(Row {
    hardly_read: VecDeque::new(),
    often_read: VecDeque::new(),
});

/// Number of files and directories that are open, in the row and otherwise.
static ALL_OPEN: AtomicUsize = AtomicUsize::new(0);
/// Number of files in the row that are open.
static ROW_OPEN: AtomicUsize = AtomicUsize::new(0);

/// Something open, which is counted as long as it lives.
pub(super) struct Counted<T> {
    open: T,
    count: &'static AtomicUsize,
}

impl<T> Counted<T> {
    /// Counts an open file or directory.
    pub(super) fn new(open: T) -> Self {
        Counted::by(&ALL_OPEN, open)
    }

    fn by(count: &'static AtomicUsize, open: T) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Counted { open, count }
    }
}

impl<T> Deref for Counted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.open
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the descriptors that the process may have, and those that stores need without the row.
fn descriptors() -> (u64, u64) {
    let all = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let row = ROW_OPEN.load(Ordering::Relaxed);
    let used = ALL_OPEN.load(Ordering::Relaxed).saturating_sub(row);
    (all, used as u64)
}

/// Returns `true` if the files that stores have open, without files that are only read, take more
/// than a quarter of the descriptors that the process may have. Files that are not in use should be
/// closed soon then.
pub(crate) fn is_scarce() -> bool {
    let (all, used) = descriptors();
    used > all / SHARE
}

/// Sets the most files that are only read and stay open, in all stores of the process. Unless this
/// is called, it is a quarter of the descriptors that the process may have and that stores do not
/// need otherwise, and 16,384 at most. At least one stays open. Files that are read at that moment
/// count no more. Of files that were read a few times only, 16 stay open at most.
pub fn set_open_files(most: usize) {
    LIMIT.store(most.max(1), Ordering::Relaxed);
    ROW.lock().close_beyond(HARDLY_READ, most.max(1));
}

/// Returns the number of files that are open to be read, in all stores of the process.
#[must_use]
pub fn open_files() -> usize {
    ROW_OPEN.load(Ordering::Relaxed)
}

/// Closes a quarter of the files that are open, at least one. Returns `true` if there were any.
pub(super) fn close_some() -> bool {
    let mut row = ROW.lock();
    row.forget_dropped();
    let left = row.len() - row.len().div_ceil(4);
    row.close_beyond(HARDLY_READ, left) > 0
}

/// Returns the most files in the row.
fn limit() -> usize {
    match LIMIT.load(Ordering::Relaxed) {
        0 => {
            let (all, used) = descriptors();
            (all.saturating_sub(used) / SHARE).clamp(LEAST, MOST) as usize
        }
        limit => limit,
    }
}

/// The open files, each from the one that is asked next on.
struct Row {
    /// Files before the row, which had been read a few times only when they were opened.
    hardly_read: VecDeque<Weak<Slot>>,
    often_read: VecDeque<Weak<Slot>>,
}

impl Row {
    fn len(&self) -> usize {
        self.hardly_read.len() + self.often_read.len()
    }

    fn forget_dropped(&mut self) {
        for files in [&mut self.hardly_read, &mut self.often_read] {
            files.retain(|slot| slot.strong_count() > 0);
        }
    }

    fn push(&mut self, slot: &Arc<Slot>) {
        let files = if slot.is_hardly_read() {
            &mut self.hardly_read
        } else {
            &mut self.often_read
        };
        files.push_back(Arc::downgrade(slot));
    }

    /// Closes files until there are no more than `most`, and no more than `hardly_read` before the
    /// row. Returns how many were closed.
    fn close_beyond(&mut self, hardly_read: usize, most: usize) -> usize {
        let mut closed = 0;
        while (self.hardly_read.len() > hardly_read || self.len() > most)
            && let Some(first) = self.hardly_read.pop_front()
        {
            match first.upgrade() {
                Some(slot) if slot.is_hardly_read() => closed += slot.close(),
                Some(_) => self.often_read.push_back(first),
                None => {}
            }
        }
        // After one round all have been asked.
        let mut to_ask = self.often_read.len();
        while self.len() > most
            && let Some(first) = self.often_read.pop_front()
        {
            let Some(slot) = first.upgrade() else {
                continue;
            };
            if to_ask > 0 && slot.was_read.swap(false, Ordering::Relaxed) {
                to_ask -= 1;
                self.often_read.push_back(first);
            } else {
                closed += slot.close();
            }
        }
        closed
    }
}

/// A file that is open only while it is read often.
pub(super) struct ReadFile(Arc<Slot>);

/// An open file in the row.
type RowFile = Counted<Box<dyn File>>;

struct Slot {
    directory: Arc<dyn Directory>,
    name: String,
    file: ArcSwapOption<RowFile>,
    was_read: AtomicBool,
    /// Number of calls, as far as it matters.
    reads: AtomicU8,
    /// Held while the file is opened.
    opening: Mutex<()>,
    /// See [`fork_detection`].
    fork_count: u64,
}

impl Slot {
    fn is_hardly_read(&self) -> bool {
        self.reads.load(Ordering::Relaxed) <= FEW_READS
    }

    /// Notes a read. One of several at once may be missed.
    fn note_read(&self) {
        let reads = self.reads.load(Ordering::Relaxed);
        if reads <= FEW_READS {
            self.reads.store(reads + 1, Ordering::Relaxed);
        }
        if !self.was_read.load(Ordering::Relaxed) {
            self.was_read.store(true, Ordering::Relaxed);
        }
    }

    /// Closes the file. Returns the number of files that are closed by that.
    fn close(&self) -> usize {
        self.file.store(None);
        1
    }
}

impl ReadFile {
    /// Opens a file.
    ///
    /// # Errors
    /// The errors of [`Directory::open`].
    pub(super) fn open(directory: Arc<dyn Directory>, name: &str) -> io::Result<Self> {
        let slot = Slot {
            directory,
            name: name.to_owned(),
            file: ArcSwapOption::empty(),
            was_read: AtomicBool::new(false),
            reads: AtomicU8::new(0),
            opening: Mutex::default(),
            fork_count: fork_detection::fork_count(),
        };
        let file = ReadFile(Arc::new(slot));
        file.file()?;
        Ok(file)
    }

    /// Returns the file, which is opened if it is not open.
    fn file(&self) -> io::Result<Arc<RowFile>> {
        let slot = &*self.0;
        let open = || {
            let opened = slot.directory.open(&slot.name);
            opened.map(|file| Arc::new(Counted::by(&ROW_OPEN, file)))
        };
        if fork_detection::is_forked_since(slot.fork_count) {
            // A thread of the other process may have held the locks.
            let file = open()?;
            slot.file.store(Some(Arc::clone(&file)));
            return Ok(file);
        }
        let _opening = slot.opening.lock();
        if let Some(file) = slot.file.load_full() {
            return Ok(file);
        }
        let file = open()?;
        let mut row = ROW.lock();
        row.close_beyond(HARDLY_READ - 1, limit().saturating_sub(1));
        row.push(&self.0);
        slot.file.store(Some(Arc::clone(&file)));
        Ok(file)
    }

    /// Calls `work` with the file if it is open.
    fn if_open<R>(&self, work: impl FnOnce(&dyn File) -> R) -> Option<R> {
        let slot = &*self.0;
        let file = slot.file.load();
        let file = file.as_ref()?;
        slot.note_read();
        Some(work(&****file))
    }

    /// Calls `work` with the file.
    fn with<R>(&self, mut work: impl FnMut(&dyn File) -> io::Result<R>) -> io::Result<R> {
        match self.if_open(&mut work) {
            Some(worked) => worked,
            None => {
                self.0.note_read();
                work(&***self.file()?)
            }
        }
    }
}

impl File for ReadFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|file| file.read_at(buffer, offset))
    }

    /// A file that is not open is not read at once: to open it can take long.
    fn read_at_once(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.if_open(|file| file.read_at_once(buffer, offset))
            .unwrap_or(Ok(None))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(|file| file.write_at(bytes, offset))
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|file| file.sync())
    }

    fn len(&self) -> io::Result<u64> {
        self.with(|file| file.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.with(|file| file.set_len(bytes))
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        self.with(|file| file.reserve(bytes))
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        self.if_open(|file| file.will_read(offset, bytes));
    }
}
