//! What the engine needs of a file system, and of a clock.
//!
//! [`FileSystem`] and [`File`] are everything through which the engine touches the world. [`RealFs`] is the file
//! system of the machine; the tests of this crate bring one that loses, tears and reorders what was not synced.
//!
//! What an implementation promises:
//!
//! - What was written to a file survives the machine once [`File::sync`] has returned.
//! - A name that was created, renamed or removed survives the machine once [`FileSystem::sync_dir`] of its directory
//!   has returned. A rename is atomic: at any time the new name leads to the old file or to the new one.
//! - Until then, any part of it may survive, in any order.
//! - What was written survives the end of the process without a sync.

mod real;

pub use real::RealFs;

use std::any::Any;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Directories, and the time.
pub trait FileSystem: Send + Sync + 'static {
    /// Makes a directory, and those above it, where they are missing. Their names are synced.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// The names of the files in a directory, in any order.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// Makes a file.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists), and what the system says.
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Opens a file that is there, for reading and writing; if it may not be written, for reading.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound), and what the system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Gives a file another name in the same directory, in place of the file that has this name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. It can be read as long as it is open.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// What the system says. `EMFILE` and `ENFILE` say that the directory could not even be opened, so that it may be
    /// tried again; after other errors it is unknown which names are durable.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;

    /// Locks a file, which is made if it is missing, until what is returned is dropped or the process ends.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if it is locked, by this process or another.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>>;

    /// The time since some moment. It does not go back.
    fn now(&self) -> Duration;

    /// Lets the thread sleep for this long.
    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// An open file.
#[expect(
    clippy::len_without_is_empty,
    reason = "whether a file is empty is asked nowhere"
)]
pub trait File: Send + Sync {
    /// Fills `buffer` with what is at `offset`. How many bytes there were; fewer than wanted only at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// As [`read_at`](File::read_at), if the system has all of it in memory. `None` if the thread would have to wait for
    /// a device, or that cannot be known.
    ///
    /// # Errors
    /// As those of [`read_at`](File::read_at).
    fn read_at_once(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let _unknown = (buffer, offset);
        Ok(None)
    }

    /// Writes all of `bytes` at `offset`, behind the end also. After an error, any part may be written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes the content and the length durable.
    fn sync(&self) -> io::Result<()>;

    /// How many bytes there are.
    fn len(&self) -> io::Result<u64>;

    /// Cuts the file, or makes it longer with zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Makes room for the first `bytes` bytes on the disk, so that writing them needs no more of it. Where the file is
    /// shorter it becomes longer with zeros. A file system that cannot do that does nothing.
    fn reserve(&self, bytes: u64) -> io::Result<()>;

    /// A hint that this piece of the file will be read soon. It waits for nothing.
    fn will_read(&self, _offset: u64, _bytes: u64) {}
}

/// Whether this error says that there are too many open files: then nothing was done.
pub(crate) fn is_too_many_files(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let codes = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}
