//! The directory of a store, open and locked.

mod lock;

pub(crate) use lock::DirectoryLock;

use crate::error::Error;
use crate::fs::{Directory, File, FileSystem, Sharing, remove_if_there, with_retries};
use std::any::Any;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// Bytes that are copied at once.
const COPY_BYTES: usize = 1 << 20;

/// The directory of a store, open and locked. No other store opens it for writing while this lives;
/// none opens it at all if it is locked for writing.
///
/// It stays the same directory when its path leads to another one. A description of the records, or
/// other files that belong to a store, can be kept beside those of the store: their names must not
/// begin with `manifest`, `journal-` or `run-`.
pub struct StoreDirectory {
    pub(crate) file_system: Arc<dyn FileSystem>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) sharing: Sharing,
    pub(crate) lock: Box<dyn Any + Send + Sync>,
}

impl StoreDirectory {
    /// Opens and locks a directory. Where a file system has no locks, one that is opened for
    /// reading is not locked.
    ///
    /// # Errors
    /// [`Error::Missing`] if it is not there, [`Error::Locked`], and [`Error::Io`].
    pub fn open(
        file_system: Arc<dyn FileSystem>,
        path: &Path,
        sharing: Sharing,
    ) -> Result<Self, Error> {
        Self::open_retrying(with_retries(file_system), path, sharing)
    }

    /// Opens and locks a directory for writing, which is made, and those above it, where they are
    /// missing.
    ///
    /// # Errors
    /// [`Error::Locked`] and [`Error::Io`].
    pub fn make(file_system: Arc<dyn FileSystem>, path: &Path) -> Result<Self, Error> {
        let file_system = with_retries(file_system);
        file_system
            .create_dir(path)
            .map_err(|error| Error::io(&error, "making the directory"))?;
        Self::open_retrying(file_system, path, Sharing::Exclusive)
    }

    fn open_retrying(
        file_system: Arc<dyn FileSystem>,
        path: &Path,
        sharing: Sharing,
    ) -> Result<Self, Error> {
        let directory = open_dir(&*file_system, path)?;
        let lock: Box<dyn Any + Send + Sync> = match directory.lock(sharing) {
            Ok(lock) => lock,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(Error::Locked),
            // Such a file system cannot tell of a writer.
            Err(_) if sharing == Sharing::Shared => Box::new(()),
            Err(error) => return Err(Error::io(&error, "locking the directory")),
        };
        Ok(StoreDirectory {
            file_system,
            directory,
            sharing,
            lock,
        })
    }

    /// Returns the names of all files, in any order.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let names = self.directory.list();
        names.map_err(|error| Error::io(&error, "listing the directory"))
    }

    /// Reads a file whole; `None` if it is not there.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the name leads to anything but a regular file; [`Error::Io`].
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        read_file(&*self.directory, name)
    }

    /// Reads a file of a directory that is not locked for that; `None` if it is not there.
    ///
    /// # Errors
    /// [`Error::Missing`] if the directory is not there; as those of
    /// [`read`](StoreDirectory::read).
    pub fn read_unlocked(
        file_system: Arc<dyn FileSystem>,
        path: &Path,
        name: &str,
    ) -> Result<Option<Vec<u8>>, Error> {
        read_file(&*open_dir(&*with_retries(file_system), path)?, name)
    }
}

pub(crate) fn open_dir(
    file_system: &dyn FileSystem,
    path: &Path,
) -> Result<Arc<dyn Directory>, Error> {
    let opened = file_system.open_dir(path);
    opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Missing,
        _ => Error::io(&error, "opening the directory"),
    })
}

pub(crate) fn read_file(directory: &dyn Directory, name: &str) -> Result<Option<Vec<u8>>, Error> {
    let read = || -> io::Result<Vec<u8>> {
        let file = directory.open(name)?;
        let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(usize::MAX)];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(&error, name)),
    }
}

/// Copies a file to another directory, with the time of its last change. The copy is durable when
/// this returns; its name is not.
pub(crate) fn copy_file(from: &dyn Directory, to: &dyn Directory, name: &str) -> io::Result<()> {
    let from = from.open(name)?;
    let to = to.create(name)?;
    let (mut buffer, mut offset) = (vec![0; COPY_BYTES], 0);
    loop {
        let read = from.read_at(&mut buffer, offset)?;
        if read == 0 {
            break;
        }
        to.write_at(&buffer[..read], offset)?;
        offset += read as u64;
    }
    if let Some(time) = from.modified()? {
        to.set_modified(time)?;
    }
    to.sync()
}

/// Writes a file, which replaces any file of that name. It is there completely or not at all, also
/// after a crash, and durable when this returns. It is written under its name with `.new` behind it
/// first.
pub(crate) fn replace_file(
    directory: &dyn Directory,
    name: &str,
    bytes: &[u8],
) -> Result<(), Error> {
    prepare_file(directory, name, bytes)?;
    put_files(directory, &[name])
}

/// Writes a file under its name with `.new` behind it. Its content is durable when this returns;
/// that name need not be.
pub(crate) fn prepare_file(
    directory: &dyn Directory,
    name: &str,
    bytes: &[u8],
) -> Result<(), Error> {
    let file = write_new(directory, name, bytes)?;
    let synced = file.sync();
    synced.map_err(|error| Error::io(&error, format_args!("writing {name}")))
}

/// Writes a file under its name with `.new` behind it. It has to be synced.
pub(crate) fn write_new(
    directory: &dyn Directory,
    name: &str,
    bytes: &[u8],
) -> Result<Box<dyn File>, Error> {
    let new = new_name(name);
    let write = || -> io::Result<Box<dyn File>> {
        // One that an earlier attempt has left, or anything else.
        remove_if_there(directory, &new)?;
        let file = directory.create(&new)?;
        file.write_at(bytes, 0)?;
        file.will_sync();
        Ok(file)
    };
    write().map_err(|error| Error::io(&error, format_args!("writing {name}")))
}

/// Gives prepared files their names. All are durable when this returns. After a crash before that,
/// any of them may have their names.
pub(crate) fn put_files(directory: &dyn Directory, names: &[&str]) -> Result<(), Error> {
    for name in names {
        let renamed = directory.rename(&new_name(name), name);
        renamed.map_err(|error| Error::io(&error, format_args!("writing {name}")))?;
    }
    let synced = directory.sync();
    synced.map_err(|error| Error::io(&error, "syncing the directory"))
}

fn new_name(name: &str) -> String {
    format!("{name}.new")
}
