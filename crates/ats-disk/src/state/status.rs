//! The status of an open store: the work that it may still do.

use crate::error::Error;
use crate::fork_detection;
use parking_lot::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The work that a store may still do, and the last error of its background work.
pub(crate) struct Status {
    /// See [`fork_detection`].
    fork_count: u64,
    is_opened_read_only: bool,
    /// The reason why nothing is written any more.
    read_only: OnceLock<String>,
    is_closing: AtomicBool,
    background_error: Mutex<Option<Error>>,
}

impl Status {
    pub(super) fn new(is_opened_read_only: bool) -> Self {
        Status {
            fork_count: fork_detection::fork_count(),
            is_opened_read_only,
            read_only: if is_opened_read_only {
                OnceLock::from(String::from("it was opened for reading"))
            } else {
                OnceLock::new()
            },
            is_closing: AtomicBool::new(false),
            background_error: Mutex::default(),
        }
    }

    /// # Errors
    /// [`Error::ReadOnly`] after a failure that has left the state of the disk unknown.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        if self.is_forked() {
            let why = "this process is a copy, by fork, of the one that opened it";
            return Err(Error::ReadOnly(why.into()));
        }
        match self.read_only.get() {
            None => Ok(()),
            Some(why) => Err(Error::ReadOnly(why.clone())),
        }
    }

    /// Lets nothing be written any more because of this error, which it returns.
    pub(crate) fn make_read_only(&self, error: Error) -> Error {
        let why = match &error {
            Error::ReadOnly(why) => why.clone(),
            error => error.to_string(),
        };
        let _first = self.read_only.set(why);
        error
    }

    /// Returns `true` if the store was opened for reading: then it has no threads, and writes
    /// nothing.
    pub(crate) fn is_opened_read_only(&self) -> bool {
        self.is_opened_read_only
    }

    /// Returns `true` if this is a copy of the store in another process.
    pub(crate) fn is_forked(&self) -> bool {
        fork_detection::is_forked_since(self.fork_count)
    }

    /// Says that the store is being closed.
    pub(crate) fn begin_closing(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the store is being closed.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// # Errors
    /// [`Error::ReadOnly`] while the store is being closed, which no writer may keep from its end.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.is_closing() {
            Err(Error::ReadOnly("it is being closed".into()))
        } else {
            Ok(())
        }
    }

    /// Notes an error of the background work.
    pub(crate) fn note_background_error(&self, error: Error) {
        *self.background_error.lock() = Some(error);
    }

    /// Returns the last error of the background work.
    pub(crate) fn background_error(&self) -> Option<Error> {
        self.background_error.lock().clone()
    }
}
