//! Long work of callers keeps the directory locked until it is done.
//!
//! A store can be closed while other threads merge runs of it, or write memtables to runs. These threads notice that before
//! long. But until then they make files in the directory and remove files from it, of which another store, that opened it
//! meanwhile, knew nothing. So each of them holds the lock of the directory, too, and closing waits for them.

use crate::error::Error;
use crate::fs::FileSystem;
use parking_lot::Mutex;
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether the directory is held.
const LOOK: Duration = Duration::from_millis(1);

thread_local! {
    /// How many holds this thread has.
    static HOLDS: Cell<usize> = const { Cell::new(0) };
}

/// Until it is dropped no other store opens the directory.
type Lock = Arc<dyn Any + Send + Sync>;

/// The lock of a directory, until it is released.
pub(crate) struct DirectoryLock {
    lock: Mutex<Option<Lock>>,
}

/// While this lives, no other store opens the directory.
pub(crate) struct Hold {
    _lock: Lock,
}

impl Drop for Hold {
    fn drop(&mut self) {
        HOLDS.set(HOLDS.get() - 1);
    }
}

impl DirectoryLock {
    pub(crate) fn new(lock: Box<dyn Any + Send + Sync>) -> Self {
        DirectoryLock {
            lock: Mutex::new(Some(lock.into())),
        }
    }

    /// Keeps the directory locked.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] if it is not locked any more.
    pub(crate) fn hold(&self) -> Result<Hold, Error> {
        let lock = self.lock.lock().clone();
        let closed = || Error::ReadOnly("it was closed".into());
        let hold = Hold {
            _lock: lock.ok_or_else(closed)?,
        };
        HOLDS.set(HOLDS.get() + 1);
        Ok(hold)
    }

    /// Lets another store open the directory, when nothing of this one works there any more. Nothing is written after
    /// this. A thread that holds the directory itself does not wait: then it is free when that is done. Nor does one of a
    /// copy of the process, which has none of the threads that held it.
    pub(crate) fn release(&self, file_system: &dyn FileSystem, is_copy: bool) {
        let Some(lock) = self.lock.lock().take() else {
            return;
        };
        let held = Arc::downgrade(&lock);
        drop(lock);
        while held.strong_count() > 0 && HOLDS.get() == 0 && !is_copy {
            file_system.sleep(LOOK);
        }
    }
}
