//! File systems that neglect their duties. Tests that enumerate stops must catch an engine on them,
//! as it is then as if the engine had forgotten the call.

use super::fs::SimFs;
use ats_disk::fs::{Directory, File, FileSystem, Sharing};
use parking_lot::Mutex;
use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A duty that a file system neglects. The names are parts of names of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// Syncs of files whose name has this part do nothing.
    Sync(&'static str),
    /// The first sync of such a file that is open, and every second one from there, do nothing.
    SyncSeldom(&'static str),
    /// Syncs of directories do nothing.
    SyncDir,
    /// The first sync of a directory, and every second one from there, do nothing.
    SyncDirSeldom,
    /// Files whose name has this part are not truncated.
    Truncate(&'static str),
    /// Writes to such files of more than so many bytes lose the rest.
    Short(&'static str, usize),
    /// Two writes to such a file, one behind the other, are exchanged: the second is done at once,
    /// the first before the next call of the file.
    Exchange(&'static str),
    /// Removals do nothing.
    Remove,
    /// Directories are not held: each call goes to where their paths lead then.
    Paths,
    /// Locks are given to everybody.
    Lock,
}

/// A file system that lies.
pub(crate) struct Liar {
    fs: SimFs,
    lie: Lie,
    is_odd: Arc<Mutex<bool>>,
}

impl Liar {
    pub(crate) fn new(fs: SimFs, lie: Lie) -> Self {
        Liar {
            fs,
            lie,
            is_odd: Arc::default(),
        }
    }
}

impl FileSystem for Liar {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.fs.create_dir(path)
    }

    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        Ok(Arc::new(LiarDirectory {
            directory: self.fs.open_dir(path)?,
            fs: self.fs.clone(),
            path: path.to_owned(),
            lie: self.lie,
            is_odd: Arc::clone(&self.is_odd),
        }))
    }

    fn now(&self) -> Duration {
        self.fs.now()
    }

    fn wall_clock(&self) -> Duration {
        self.fs.wall_clock()
    }

    fn sleep(&self, time: Duration) {
        self.fs.sleep(time);
    }
}

struct LiarDirectory {
    directory: Arc<dyn Directory>,
    fs: SimFs,
    path: PathBuf,
    lie: Lie,
    is_odd: Arc<Mutex<bool>>,
}

impl LiarDirectory {
    /// Returns the directory to which a call goes.
    fn directory(&self) -> io::Result<Arc<dyn Directory>> {
        match self.lie {
            Lie::Paths => self.fs.open_dir(&self.path),
            _ => Ok(Arc::clone(&self.directory)),
        }
    }

    fn file(&self, name: &str, file: Box<dyn File>) -> Box<dyn File> {
        let (Lie::Sync(part)
        | Lie::SyncSeldom(part)
        | Lie::Truncate(part)
        | Lie::Short(part, _)
        | Lie::Exchange(part)) = self.lie
        else {
            return file;
        };
        if name.contains(part) {
            Box::new(LiarFile {
                file,
                lie: self.lie,
                is_odd: Mutex::new(false),
                held: Mutex::new(None),
            })
        } else {
            file
        }
    }
}

impl Directory for LiarDirectory {
    fn lock(&self, sharing: Sharing) -> io::Result<Box<dyn Any + Send + Sync>> {
        match self.lie {
            Lie::Lock => Ok(Box::new(())),
            _ => self.directory()?.lock(sharing),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.directory()?.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        Ok(self.file(name, self.directory()?.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        Ok(self.file(name, self.directory()?.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory()?.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.lie {
            Lie::Remove => Ok(()),
            _ => self.directory()?.remove(name),
        }
    }

    fn link(&self, name: &str, to: &dyn Directory) -> io::Result<()> {
        self.directory()?.link(name, to)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn sync(&self) -> io::Result<()> {
        match self.lie {
            Lie::SyncDir => Ok(()),
            Lie::SyncDirSeldom if is_odd(&self.is_odd) => Ok(()),
            _ => self.directory()?.sync(),
        }
    }
}

/// Returns `true` if it is the first, third and so on time that this is asked.
fn is_odd(before: &Mutex<bool>) -> bool {
    let mut before = before.lock();
    *before = !*before;
    *before
}

struct LiarFile {
    file: Box<dyn File>,
    lie: Lie,
    is_odd: Mutex<bool>,
    held: Mutex<Option<(Arc<[u8]>, u64)>>,
}

impl LiarFile {
    /// Does the write that is held back.
    fn release(&self) -> io::Result<()> {
        match self.held.lock().take() {
            Some((bytes, offset)) => self.file.write_at(&bytes, offset),
            None => Ok(()),
        }
    }
}

impl Drop for LiarFile {
    fn drop(&mut self) {
        // The system would not lose it, either; if it fails, a test sees that.
        let _ = self.release();
    }
}

impl File for LiarFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.release()?;
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self.lie {
            Lie::Short(_, most) => self.file.write_at(&bytes[..bytes.len().min(most)], offset),
            Lie::Exchange(_) if self.held.lock().is_none() => {
                *self.held.lock() = Some((bytes.into(), offset));
                Ok(())
            }
            _ => {
                self.file.write_at(bytes, offset)?;
                self.release()
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        match self.lie {
            Lie::Sync(_) => Ok(()),
            Lie::SyncSeldom(_) if is_odd(&self.is_odd) => Ok(()),
            // A held write is not done: that is the lie.
            _ => self.file.sync(),
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.release()?;
        self.file.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.release()?;
        match self.lie {
            Lie::Truncate(_) if bytes < self.file.len()? => Ok(()),
            _ => self.file.set_len(bytes),
        }
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        self.release()?;
        self.file.reserve(bytes)
    }
}
