//! Files that no run has any more, but that readers may still read.
//!
//! A file is removed when no state that names it is left. That is found out by looking, not by the reader that lets go
//! of it last: removing a file can take long.

use crate::core::{Core, file_name};
use crate::file::RunFile;
use parking_lot::Mutex;
use std::io;
use std::sync::{Arc, Weak};

#[derive(Default)]
pub(crate) struct Doomed(Mutex<Vec<DoomedFile>>);

struct DoomedFile {
    file: Weak<RunFile>,
    number: u64,
    bytes: u64,
}

impl Doomed {
    /// Adds a file that the manifest has forgotten.
    pub(crate) fn add(&self, file: &Arc<RunFile>) {
        self.0.lock().push(DoomedFile {
            file: Arc::downgrade(file),
            number: file.meta().number,
            bytes: file.meta().bytes,
        });
    }

    /// How many files there are, and their bytes.
    pub(crate) fn pinned(&self) -> (usize, u64) {
        let files = self.0.lock();
        (files.len(), files.iter().map(|file| file.bytes).sum())
    }

    /// Whether a file could be removed.
    pub(crate) fn is_due(&self) -> bool {
        self.0
            .lock()
            .iter()
            .any(|file| file.file.strong_count() == 0)
    }
}

impl Core {
    /// Removes the files that are not read any more. What the system does not remove is tried again.
    pub(crate) fn remove_doomed(&self) -> bool {
        let mut due = Vec::new();
        self.doomed.0.lock().retain(|file| {
            let is_due = file.file.strong_count() == 0;
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
