//! Directories for tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own, which is removed in the end. It is in memory where the system offers
/// that.
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// Makes the path of a directory that is not there yet.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ats-disk-test-{}-{number}", std::process::id());
        let memory = Path::new("/dev/shm");
        Directory(if memory.is_dir() {
            memory.join(name)
        } else {
            std::env::temp_dir().join(name)
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _missing = std::fs::remove_dir_all(&self.0);
    }
}
