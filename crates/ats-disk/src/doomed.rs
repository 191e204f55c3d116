//! Files that no run has any more, and memtables that are in runs, but that readers may still read.
//!
//! A file is removed, and a memtable freed, when no state that has it is left. That is found out by looking, not by
//! the reader or writer that lets go of it last: removing a file can take long, and so can freeing a memtable.

use crate::core::{Core, file_name};
use crate::file::RunFile;
use crate::memtable::Memtable;
use parking_lot::Mutex;
use std::io;
use std::sync::{Arc, Weak};

#[derive(Default)]
pub(crate) struct Doomed {
    files: Mutex<Vec<DoomedFile>>,
    memtables: Mutex<Vec<Arc<Memtable>>>,
}

struct DoomedFile {
    file: Weak<RunFile>,
    number: u64,
    bytes: u64,
}

impl DoomedFile {
    fn is_due(&self) -> bool {
        self.file.strong_count() == 0
    }
}

/// Whether this is the last reference: no state has another, from which there could be more.
fn is_last(memtable: &Arc<Memtable>) -> bool {
    Arc::strong_count(memtable) == 1
}

impl Doomed {
    /// Adds a file that the manifest has forgotten.
    pub(crate) fn add(&self, file: &Arc<RunFile>) {
        self.files.lock().push(DoomedFile {
            file: Arc::downgrade(file),
            number: file.meta().number,
            bytes: file.meta().bytes,
        });
    }

    /// Adds a memtable that is in a run.
    pub(crate) fn add_memtable(&self, memtable: &Arc<Memtable>) {
        self.memtables.lock().push(Arc::clone(memtable));
    }

    /// How many files there are, and their bytes.
    pub(crate) fn pinned(&self) -> (usize, u64) {
        let files = self.files.lock();
        (files.len(), files.iter().map(|file| file.bytes).sum())
    }

    /// Bytes of memory of the memtables.
    pub(crate) fn pinned_memory(&self) -> usize {
        let memtables = self.memtables.lock();
        memtables.iter().map(|memtable| memtable.bytes()).sum()
    }

    /// Whether a file could be removed, or a memtable freed.
    pub(crate) fn is_due(&self) -> bool {
        let mut is_due = self.memtables.lock().iter().any(is_last);
        is_due |= self.files.lock().iter().any(DoomedFile::is_due);
        is_due
    }

    /// Whether there is a memtable, which may be read.
    pub(crate) fn has_memtables(&self) -> bool {
        !self.memtables.lock().is_empty()
    }

    /// Frees the memtables that are not read any more.
    pub(crate) fn free_memtables(&self) {
        let mut memtables = self.memtables.lock();
        let free: Vec<_> = memtables
            .extract_if(.., |memtable| is_last(memtable))
            .collect();
        // It takes long.
        drop(memtables);
        drop(free);
    }
}

impl Core {
    /// Removes the files that are not read any more. What the system does not remove is tried again.
    pub(crate) fn remove_doomed(&self) -> bool {
        let mut due = Vec::new();
        self.doomed.files.lock().retain(|file| {
            let is_due = file.is_due();
            if is_due {
                due.push(file.number);
            }
            !is_due
        });
        for number in &due {
            let path = self.directory.join(file_name(*number));
            match self.file_system.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    // The next opening removes what belongs to no run.
                    self.stats.on_failed_removal();
                }
                _ => {}
            }
        }
        !due.is_empty()
    }
}
