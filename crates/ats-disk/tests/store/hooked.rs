//! The file system of the machine, with something done before its calls, and a clock that can be
//! set forward.

use ats_disk::fs::{Directory, File, FileSystem, RealFs, Sharing};
use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A call of which the hook is told before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Making a file.
    Create,
    /// Opening a file.
    Open,
    /// Giving a file a second name.
    Link,
    /// Syncing a file.
    Sync,
    /// Syncing a directory.
    SyncDir,
    /// Making room ahead.
    Reserve,
    /// Reading a file.
    Read,
    /// Letting time pass.
    Sleep,
}

/// Is told of a call and its file. After an error, that is the outcome of the call.
type Hook = dyn Fn(Call, &Path) -> io::Result<()> + Send + Sync;

/// See the [module](self).
pub(crate) struct HookedFs {
    hook: Arc<Hook>,
    /// The advance of the clock, in milliseconds.
    ahead_ms: AtomicU64,
    /// The time of day, in milliseconds, if it is set.
    wall_ms: AtomicU64,
}

impl HookedFs {
    pub(crate) fn new(
        hook: impl Fn(Call, &Path) -> io::Result<()> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(HookedFs {
            hook: Arc::new(hook),
            ahead_ms: AtomicU64::new(0),
            wall_ms: AtomicU64::new(0),
        })
    }

    /// Sets the clock forward.
    pub(crate) fn pass(&self, time: Duration) {
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.ahead_ms.fetch_add(time, Ordering::Relaxed);
    }
}

impl HookedFs {
    /// Sets the time of day, which stands still then.
    pub(crate) fn set_wall_clock(&self, ms: u64) {
        self.wall_ms.store(ms, Ordering::Relaxed);
    }
}

impl FileSystem for HookedFs {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealFs.create_dir(path)
    }

    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        Ok(Arc::new(HookedDirectory {
            directory: RealFs.open_dir(path)?,
            path: path.to_owned(),
            hook: Arc::clone(&self.hook),
        }))
    }

    fn now(&self) -> Duration {
        RealFs.now() + Duration::from_millis(self.ahead_ms.load(Ordering::Relaxed))
    }

    fn wall_clock(&self) -> Duration {
        match self.wall_ms.load(Ordering::Relaxed) {
            0 => RealFs.wall_clock(),
            ms => Duration::from_millis(ms),
        }
    }

    fn sleep(&self, time: Duration) {
        // A sleep has no outcome that could be another.
        let _ = (self.hook)(Call::Sleep, Path::new(""));
        RealFs.sleep(time);
    }
}

struct HookedDirectory {
    directory: Arc<dyn Directory>,
    path: PathBuf,
    hook: Arc<Hook>,
}

impl HookedDirectory {
    fn file(&self, file: Box<dyn File>, name: &str) -> Box<dyn File> {
        Box::new(HookedFile {
            file,
            path: self.path.join(name),
            hook: Arc::clone(&self.hook),
        })
    }
}

impl Directory for HookedDirectory {
    fn lock(&self, sharing: Sharing) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.directory.lock(sharing)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.directory.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        (self.hook)(Call::Create, &self.path.join(name))?;
        Ok(self.file(self.directory.create(name)?, name))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        (self.hook)(Call::Open, &self.path.join(name))?;
        Ok(self.file(self.directory.open(name)?, name))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn File>> {
        (self.hook)(Call::Open, &self.path.join(name))?;
        Ok(self.file(self.directory.open_to_read(name)?, name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.directory.remove(name)
    }

    fn link(&self, name: &str, to: &dyn Directory) -> io::Result<()> {
        (self.hook)(Call::Link, &self.path.join(name))?;
        self.directory.link(name, to)
    }

    fn as_any(&self) -> &dyn Any {
        self.directory.as_any()
    }

    fn sync(&self) -> io::Result<()> {
        (self.hook)(Call::SyncDir, &self.path)?;
        self.directory.sync()
    }
}

struct HookedFile {
    file: Box<dyn File>,
    path: PathBuf,
    hook: Arc<Hook>,
}

impl File for HookedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        (self.hook)(Call::Read, &self.path)?;
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        (self.hook)(Call::Sync, &self.path)?;
        self.file.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        (self.hook)(Call::Reserve, &self.path)?;
        self.file.reserve(bytes)
    }

    fn modified(&self) -> io::Result<Option<Duration>> {
        self.file.modified()
    }

    fn set_modified(&self, time: Duration) -> io::Result<()> {
        self.file.set_modified(time)
    }
}
