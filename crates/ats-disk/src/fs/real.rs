//! The file system of the machine.

use super::{File, FileSystem};
use crate::fork;
use std::any::Any;
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFs;

impl FileSystem for RealFs {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        self.create_dir(parent)?;
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => self.sync_dir(parent),
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name()));
        // A name that is not UTF-8 is none of ours.
        names
            .filter_map(|name| name.map(|name| name.into_string().ok()).transpose())
            .collect()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        Ok(Box::new(RealFile(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = opened.or_else(|error| match error.kind() {
            // It can be looked at, as long as nothing is to be written.
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                fs::File::open(path)
            }
            _ => Err(error),
        })?;
        Ok(Box::new(RealFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        fs::File::open(directory)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(Locked {
                file,
                copies: fork::copies(),
            })),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn now(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

/// A file that is locked.
struct Locked {
    file: fs::File,
    /// See [`fork`].
    copies: u64,
}

impl Drop for Locked {
    /// To close the file is not enough: a process that another thread has just begun has it, too, until it runs its
    /// program. But a copy of the process does not take the lock from it.
    fn drop(&mut self) {
        if !fork::is_copy(self.copies) {
            // The file is closed next, which most often does the same.
            let _ = self.file.unlock();
        }
    }
}

struct RealFile(fs::File);

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.0.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Linux tells since version 4.14, of most file systems.
    #[cfg(target_os = "linux")]
    fn read_at_once(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        use rustix::io::{ReadWriteFlags, preadv2};
        let wanted = buffer.len();
        let mut buffers = [io::IoSliceMut::new(buffer)];
        match preadv2(&self.0, &mut buffers, offset, ReadWriteFlags::NOWAIT) {
            Ok(read) if read == wanted => Ok(Some(read)),
            // Some of it is not in memory, or behind the end; or the system does not know this. A call that may wait
            // finds out.
            Ok(_) | Err(_) => Ok(None),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(&self.0, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
        {
            use rustix::fs::{Advice, fadvise};
            // What cannot be read is found out when it is.
            let _ = fadvise(&self.0, offset, NonZeroU64::new(bytes), Advice::WillNeed);
        }
    }
}
