//! The lock of a directory, kept until nothing works in it any more.
//!
//! A store can be closed while other threads compact runs of it, or write memtables to runs. These
//! threads notice that before long. But until then they make files in the directory and remove
//! files from it, of which another store, that opened it meanwhile, knew nothing. So each of them
//! has a guard of the lock, too, and closing waits for them.

use crate::error::Error;
use crate::fs::FileSystem;
use parking_lot::Mutex;
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// Interval at which closing looks for threads that have a guard.
const LOOK: Duration = Duration::from_millis(1);

thread_local! {
    /// Number of guards of this thread.
    static GUARDS: Cell<usize> = const { Cell::new(0) };
}

/// Until it is dropped no other store opens the directory.
type Lock = Arc<dyn Any + Send + Sync>;

/// The lock of a directory, until it is released.
pub(crate) struct DirectoryLock {
    lock: Mutex<Option<Lock>>,
}

/// Guard that keeps other stores from opening the directory.
pub(crate) struct DirectoryGuard {
    _lock: Lock,
}

impl Drop for DirectoryGuard {
    fn drop(&mut self) {
        GUARDS.set(GUARDS.get() - 1);
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
    pub(crate) fn acquire(&self) -> Result<DirectoryGuard, Error> {
        let lock = self.lock.lock().clone();
        let closed = || Error::ReadOnly("it was closed".into());
        let guard = DirectoryGuard {
            _lock: lock.ok_or_else(closed)?,
        };
        GUARDS.set(GUARDS.get() + 1);
        Ok(guard)
    }

    /// Lets another store open the directory, when nothing of this one works there any more.
    /// Nothing is written after this. A thread that has a guard itself does not wait: then
    /// it is free when that is done. Nor does one of a copy of the process, which has none of the
    /// threads that have one.
    pub(crate) fn release(&self, file_system: &dyn FileSystem, is_forked: bool) {
        let Some(lock) = self.lock.lock().take() else {
            return;
        };
        let guarded = Arc::downgrade(&lock);
        drop(lock);
        while guarded.strong_count() > 0 && GUARDS.get() == 0 && !is_forked {
            file_system.sleep(LOOK);
        }
    }
}
