//! The file system of the machine.

use super::open_files::{Counted, ReadFile, close_some};
use super::{Directory, File, FileSystem, Sharing};
use crate::fork_detection;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::any::Any;
use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

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
            _ => self.open_dir(parent)?.sync(),
        }
    }

    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = with_descriptor(|| rustix::fs::open(path, flags, Mode::empty()))?;
        Ok(Arc::new(RealDirectory(Arc::new(Counted::new(directory)))))
    }

    #[cfg(feature = "forcing")]
    fn wall_clock(&self) -> Duration {
        let ahead = super::AHEAD_MS.load(std::sync::atomic::Ordering::Relaxed);
        super::time_of_day() + Duration::from_millis(ahead)
    }

    fn now(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

/// A directory, by its descriptor.
struct RealDirectory(Arc<Counted<OwnedFd>>);

impl RealDirectory {
    fn open_with(&self, name: &str, access: OFlags) -> io::Result<OwnedFd> {
        // A FIFO is not waited for, and nobody's link is followed.
        let flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let permissions = Mode::from_raw_mode(0o666);
        with_descriptor(|| rustix::fs::openat(&**self.0, name, flags, permissions))
    }
}

/// Makes a call that needs a descriptor. If there is none, files are closed that are only read.
fn with_descriptor<T>(call: impl Fn() -> Result<T, Errno>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::MFILE | Errno::NFILE) if close_some() => {}
            done => return Ok(done?),
        }
    }
}

impl Directory for RealDirectory {
    fn lock(&self, sharing: Sharing) -> io::Result<Box<dyn Any + Send + Sync>> {
        let operation = match sharing {
            Sharing::Exclusive => FlockOperation::NonBlockingLockExclusive,
            Sharing::Shared => FlockOperation::NonBlockingLockShared,
        };
        rustix::fs::flock(&**self.0, operation)?;
        Ok(Box::new(Locked {
            directory: Arc::clone(&self.0),
            fork_count: fork_detection::fork_count(),
        }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in with_descriptor(|| rustix::fs::Dir::read_from(&**self.0))? {
            // A name that is not UTF-8 is none of ours.
            match entry?.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        let file = self.open_with(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        Ok(Box::new(RealFile::new(file)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        let mut refusal = None;
        let opened = self.open_with(name, OFlags::RDWR);
        let opened = opened.or_else(|error| match error.kind() {
            // The file can be read, as long as nothing is to be written.
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                refusal = error.raw_os_error();
                self.open_with(name, OFlags::RDONLY)
            }
            _ => Err(error),
        });
        let file = opened.map_err(|error| match error {
            _ if is_errno(&error, Errno::LOOP) => not_a_file("it is a symbolic link"),
            _ if is_errno(&error, Errno::ISDIR) => not_a_file("it is a directory"),
            _ if is_errno(&error, Errno::NXIO) => not_a_file("it is a socket or a device"),
            error => error,
        })?;
        match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(Box::new(RealFile {
                refusal,
                ..RealFile::new(file)
            })),
            FileType::Directory => Err(not_a_file("it is a directory")),
            FileType::Fifo => Err(not_a_file("it is a FIFO")),
            _ => Err(not_a_file("it is no regular file")),
        }
    }

    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn File>> {
        let directory = Arc::new(RealDirectory(Arc::clone(&self.0)));
        Ok(Box::new(ReadFile::open(directory, name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&**self.0, from, &**self.0, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let flags = rustix::fs::AtFlags::empty();
        Ok(rustix::fs::unlinkat(&**self.0, name, flags)?)
    }

    fn link(&self, name: &str, to: &dyn Directory) -> io::Result<()> {
        let to = to.as_any().downcast_ref::<RealDirectory>();
        let to = to.ok_or(io::ErrorKind::Unsupported)?;
        let flags = rustix::fs::AtFlags::empty();
        Ok(rustix::fs::linkat(&**self.0, name, &**to.0, name, flags)?)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&**self.0)?)
    }
}

fn is_errno(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

/// Something else has the name of a file.
fn not_a_file(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The lock of a directory.
struct Locked {
    directory: Arc<Counted<OwnedFd>>,
    /// See [`fork_detection`].
    fork_count: u64,
}

impl Drop for Locked {
    /// Unlocks at once: the directory may stay open, and a process that another thread has just
    /// begun has it, too, until it runs its program. A copy of the process does not take the lock
    /// from it.
    fn drop(&mut self) {
        if !fork_detection::is_forked_since(self.fork_count) {
            let _ = rustix::fs::flock(&**self.directory, FlockOperation::Unlock);
        }
    }
}

struct RealFile {
    file: Counted<fs::File>,
    /// The error of the system that refused to open the file for writing. Writing would only give
    /// the error that the descriptor is one for reading.
    refusal: Option<i32>,
}

impl RealFile {
    fn new(fd: OwnedFd) -> Self {
        RealFile {
            file: Counted::new(fd.into()),
            refusal: None,
        }
    }

    /// Returns the file, for changing it.
    fn to_write(&self) -> io::Result<&fs::File> {
        match self.refusal {
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => Ok(&self.file),
        }
    }
}

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let read = self
                .file
                .read_at(&mut buffer[done..], offset + done as u64)?;
            if read == 0 {
                break;
            }
            done += read;
        }
        Ok(done)
    }

    /// Linux tells since version 4.14, of most file systems.
    #[cfg(target_os = "linux")]
    fn read_at_once(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        use rustix::io::{ReadWriteFlags, preadv2};
        let wanted = buffer.len();
        let mut buffers = [io::IoSliceMut::new(buffer)];
        match preadv2(&*self.file, &mut buffers, offset, ReadWriteFlags::NOWAIT) {
            Ok(read) if read == wanted => Ok(Some(read)),
            // Some of it is not in memory, or behind the end; or the system does not know this. A
            // call that may wait finds out.
            Ok(_) | Err(_) => Ok(None),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.to_write()?.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.to_write()?.set_len(bytes)
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        match fallocate(self.to_write()?, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
        {
            use rustix::fs::{Advice, fadvise};
            // Errors of reading are found when the file is read.
            let _ = fadvise(
                &*self.file,
                offset,
                NonZeroU64::new(bytes),
                Advice::WillNeed,
            );
        }
    }

    fn will_sync(&self) {
        // Linux begins to write the pages that it is told to forget.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            use rustix::fs::{Advice, fadvise};
            let _ = fadvise(&*self.file, 0, None, Advice::DontNeed);
        }
    }

    fn modified(&self) -> io::Result<Option<Duration>> {
        let modified = self.file.metadata()?.modified()?;
        Ok(modified.duration_since(SystemTime::UNIX_EPOCH).ok())
    }

    fn set_modified(&self, time: Duration) -> io::Result<()> {
        self.file.set_modified(SystemTime::UNIX_EPOCH + time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_may_only_be_read_says_why() {
        let name = format!("ats-file-to-read-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, b"content").expect("a file");
        let file = RealFile {
            refusal: Some(Errno::ROFS.raw_os_error()),
            ..RealFile::new(fs::File::open(&path).expect("the file").into())
        };
        let mut content = [0; 7];
        assert_eq!(file.read_at(&mut content, 0).expect("the content"), 7);
        let refused = [file.write_at(b"x", 0), file.set_len(0), file.reserve(100)];
        for result in refused {
            let kind = result.map_err(|error| error.kind());
            assert_eq!(kind, Err(io::ErrorKind::ReadOnlyFilesystem));
        }
        assert_eq!(fs::read(&path).expect("the file"), b"content");
        fs::remove_file(&path).expect("the file");
    }
}
