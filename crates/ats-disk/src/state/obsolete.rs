//! Obsolete files, memtables and journals: no longer needed, but maybe still used by other threads.
//!
//! A file is removed, a memtable freed, and a journal closed when no other thread has it. That is
//! found out by looking, not by the reader or writer that lets go of it last: each of them can take
//! long.

use crate::fs::{Directory, File};
use crate::ids::FileNumber;
use crate::memtable::Memtable;
use crate::run_file::{RunFile, file_name};
use crate::stats::Stats;
use parking_lot::Mutex;
use std::io;
use std::sync::{Arc, Weak};

/// Files, memtables and journals that are obsolete.
#[derive(Default)]
pub(crate) struct Obsolete {
    files: Mutex<Vec<ObsoleteFile>>,
    memtables: Mutex<Vec<Arc<Memtable>>>,
    journals: Mutex<Vec<Arc<dyn File>>>,
}

struct ObsoleteFile {
    file: Weak<RunFile>,
    number: FileNumber,
    bytes: u64,
}

impl ObsoleteFile {
    fn is_due(&self) -> bool {
        self.file.strong_count() == 0
    }
}

/// Returns `true` if this is the last reference: then there will not be more.
fn is_last<T: ?Sized>(reference: &Arc<T>) -> bool {
    Arc::strong_count(reference) == 1
}

/// Drops those that no other thread has.
fn reclaim<T: ?Sized>(all: &Mutex<Vec<Arc<T>>>) {
    let mut all = all.lock();
    let free: Vec<_> = all.extract_if(.., |one| is_last(one)).collect();
    // Freeing takes long, so it is done without the lock.
    drop(all);
    drop(free);
}

impl Obsolete {
    /// Adds a file that the manifest has forgotten.
    pub(crate) fn add(&self, file: &Arc<RunFile>) {
        self.files.lock().push(ObsoleteFile {
            file: Arc::downgrade(file),
            number: file.meta().number,
            bytes: file.meta().bytes,
        });
    }

    /// Adds a memtable that is in a run.
    pub(crate) fn add_memtable(&self, memtable: &Arc<Memtable>) {
        self.memtables.lock().push(Arc::clone(memtable));
    }

    /// Returns the number of files, and their bytes.
    pub(crate) fn pinned_files(&self) -> (usize, u64) {
        let files = self.files.lock();
        (files.len(), files.iter().map(|file| file.bytes).sum())
    }

    /// Returns the bytes of memory of the memtables.
    pub(crate) fn pinned_memory(&self) -> usize {
        let memtables = self.memtables.lock();
        memtables.iter().map(|memtable| memtable.bytes()).sum()
    }

    /// Returns `true` if there are files.
    pub(crate) fn has_files(&self) -> bool {
        !self.files.lock().is_empty()
    }

    /// Returns `true` if a file could be removed, or a memtable freed.
    pub(crate) fn is_due(&self) -> bool {
        let mut is_due = self.memtables.lock().iter().any(is_last);
        is_due |= self.files.lock().iter().any(ObsoleteFile::is_due);
        is_due
    }

    /// Adds journals that are removed.
    pub(crate) fn add_journals(&self, journals: Vec<Arc<dyn File>>) {
        self.journals.lock().extend(journals);
    }

    /// Returns `true` if there are memtables or journals that other threads may still have.
    pub(crate) fn has_pinned(&self) -> bool {
        !self.memtables.lock().is_empty() || !self.journals.lock().is_empty()
    }

    /// Frees the memtables and closes the journals that no other thread has.
    pub(crate) fn reclaim(&self) {
        reclaim(&self.memtables);
        reclaim(&self.journals);
    }

    /// Removes the files that are not read any more. Files that the system does not remove are
    /// tried again.
    pub(crate) fn remove(&self, directory: &dyn Directory, stats: &Stats) -> bool {
        let mut due = Vec::new();
        self.files.lock().retain(|file| {
            let is_due = file.is_due();
            if is_due {
                due.push(file.number);
            }
            !is_due
        });
        for number in &due {
            match directory.remove(&file_name(*number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    // The next opening removes files that belong to no run.
                    stats.on_failed_removal();
                }
                _ => {}
            }
        }
        !due.is_empty()
    }
}
