//! The engine's view of a file system, and of a clock.
//!
//! [`FileSystem`], [`Directory`] and [`File`] are everything through which the engine touches the
//! world. [`RealFs`] is the file system of the machine; the tests of this crate bring one that
//! loses, tears and reorders data that was not synced.
//!
//! A path is resolved once, by [`FileSystem::open_dir`]. All files of a store are reached through
//! the open directory by their names, so a store stays where it is when its directory is renamed or
//! a link in its path is turned.
//!
//! # Contract of an implementation
//!
//! - Data written to a file survives the machine once [`File::sync`] has returned.
//! - A name that was created, renamed or removed survives the machine once [`Directory::sync`] has
//!   returned. A rename is atomic: at any time the new name leads to the old file or to the new
//!   one.
//! - Until then, any part of it may survive, in any order.
//! - Written data survives the end of the process without a sync.
//! - A call that a signal has interrupted returns [`Interrupted`](io::ErrorKind::Interrupted) and
//!   has lost nothing. The engine makes it again.

mod open_files;
mod real;
mod retry;

pub(crate) use open_files::is_scarce;
pub use open_files::{open_files, set_open_files};
pub use real::RealFs;
pub(crate) use retry::with_retries;

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;
#[cfg(feature = "forcing")]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Directories by their paths, and the time.
pub trait FileSystem: Send + Sync + 'static {
    /// Makes a directory, and those above it, where they are missing. Their names are synced.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Opens a directory, which is neither locked nor changed.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound), [`NotADirectory`](io::ErrorKind::NotADirectory), and
    /// other errors of the system.
    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>>;

    /// Returns the time since some moment. It does not go back.
    fn now(&self) -> Duration;

    /// Returns the time since 1970, as the machine knows it. It may go back.
    fn wall_clock(&self) -> Duration {
        time_of_day()
    }

    /// Lets the thread sleep for this long.
    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Returns the time since 1970, as the machine knows it.
fn time_of_day() -> Duration {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    time.unwrap_or_default()
}

/// Milliseconds by which the time of day is ahead on the file system of the machine.
#[cfg(feature = "forcing")]
static AHEAD_MS: AtomicU64 = AtomicU64::new(0);

/// Puts the time of day ahead, for tests, in all stores of the process that are on the [file
/// system of the machine](RealFs).
#[cfg(feature = "forcing")]
pub fn advance_wall_clock(ms: u64) {
    AHEAD_MS.fetch_add(ms, Ordering::Relaxed);
}

/// Sharing of the lock of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Lock for writing: nobody else has it.
    Exclusive,
    /// Lock for reading: others may read as well.
    Shared,
}

/// An open directory. It stays the same directory when its path leads to another one.
///
/// Names are those of files in this directory, without a separator.
pub trait Directory: Send + Sync {
    /// Locks the directory itself until the returned value is dropped or the process ends.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if another open directory has the lock, of this
    /// process or of another one, and the two cannot share it.
    fn lock(&self, sharing: Sharing) -> io::Result<Box<dyn Any + Send + Sync>>;

    /// Returns the names of the files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a file.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if anything has the name, also a dangling
    /// link; and other errors of the system.
    fn create(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Opens a file for reading and writing; if it may not be written, for reading.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound); [`InvalidData`](io::ErrorKind::InvalidData) if the
    /// name leads to anything but a regular file, such as a directory, a FIFO or a symbolic link;
    /// and other errors of the system.
    fn open(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Opens a file that will only be read. It may be closed while nobody reads it, and be opened
    /// again by its name, which it has as long as this is alive.
    ///
    /// # Errors
    /// The errors of [`open`](Directory::open), of which reading may return each as well.
    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.open(name)
    }

    /// Gives a file another name. It replaces any file that has this name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. It can be read as long as it is open.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Gives a file the same name in another directory as well.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if anything has the name there;
    /// [`Unsupported`](io::ErrorKind::Unsupported) if the two directories are not of the same kind;
    /// and other errors of the system, such as [`CrossesDevices`](io::ErrorKind::CrossesDevices).
    fn link(&self, name: &str, to: &dyn Directory) -> io::Result<()>;

    /// Returns the directory itself, without wrappers, for another one that
    /// [links](Directory::link) a file to it.
    fn as_any(&self) -> &dyn Any;

    /// Makes the names durable.
    fn sync(&self) -> io::Result<()>;
}

/// An open file.
#[expect(
    clippy::len_without_is_empty,
    reason = "whether a file is empty is asked nowhere"
)]
pub trait File: Send + Sync {
    /// Fills `buffer` with the bytes at `offset`. Returns the number of bytes that were read, which
    /// is smaller than wanted only at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Like [`read_at`](File::read_at), but only if the system has all bytes in memory. Returns
    /// `None` if the thread would have to wait for a device, or that cannot be known.
    ///
    /// # Errors
    /// The errors of [`read_at`](File::read_at).
    fn read_at_once(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let _ = (buffer, offset);
        Ok(None)
    }

    /// Writes all of `bytes` at `offset`, behind the end also. After an error, any part may be
    /// written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes the content and the length durable.
    fn sync(&self) -> io::Result<()>;

    /// Returns the number of bytes.
    fn len(&self) -> io::Result<u64>;

    /// Truncates the file, or makes it longer with zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Makes room for the first `bytes` bytes on the disk, so that writing them needs no more of
    /// it. Where the file is shorter it becomes longer with zeros. A file system that cannot do
    /// that does nothing.
    fn reserve(&self, bytes: u64) -> io::Result<()>;

    /// A hint that this piece of the file will be read soon. It waits for nothing.
    fn will_read(&self, _offset: u64, _bytes: u64) {}

    /// A hint that the file will be synced soon. It waits for nothing. Several files that are begun
    /// before the first of them is synced wait for the disk together, where the system can do that.
    fn will_sync(&self) {}

    /// Returns the time since 1970 at which the content was changed last; `None` if nothing keeps
    /// that.
    fn modified(&self) -> io::Result<Option<Duration>> {
        Ok(None)
    }

    /// Sets the time that [`modified`](File::modified) tells, if something keeps that.
    fn set_modified(&self, _time: Duration) -> io::Result<()> {
        Ok(())
    }
}

/// Removes a file if it is there.
pub(crate) fn remove_if_there(directory: &dyn Directory, name: &str) -> io::Result<()> {
    match directory.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
