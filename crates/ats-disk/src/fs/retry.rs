//! The one file in which calls are made again that a signal has interrupted.

use super::{Directory, File, FileSystem, Sharing};
use crate::fault_injection::{InjectedFault, is_injected};
use std::any::Any;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Number of attempts at a call that can be done without, and that may begin from the start each
/// time.
const RESERVE_ATTEMPTS: usize = 16;

/// Returns a file system whose calls are never interrupted.
pub(crate) fn with_retries(file_system: Arc<dyn FileSystem>) -> Arc<dyn FileSystem> {
    Arc::new(Retrying(file_system))
}

/// Makes a call until no signal interrupts it.
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error)
                if error.kind() == ErrorKind::Interrupted
                    && !is_injected(InjectedFault::Interrupted) => {}
            done => return done,
        }
    }
}

/// A file system, a directory, or a file, the calls of which are made again after an interruption.
struct Retrying<T>(T);

impl FileSystem for Retrying<Arc<dyn FileSystem>> {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        retry(|| self.0.create_dir(path))
    }

    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        Ok(Arc::new(Retrying(retry(|| self.0.open_dir(path))?)))
    }

    fn now(&self) -> Duration {
        self.0.now()
    }

    fn wall_clock(&self) -> Duration {
        self.0.wall_clock()
    }

    fn sleep(&self, time: Duration) {
        self.0.sleep(time);
    }
}

impl Directory for Retrying<Arc<dyn Directory>> {
    fn lock(&self, sharing: Sharing) -> io::Result<Box<dyn Any + Send + Sync>> {
        retry(|| self.0.lock(sharing))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        retry(|| self.0.list())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        Ok(Box::new(Retrying(retry(|| self.0.create(name))?)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        Ok(Box::new(Retrying(retry(|| self.0.open(name))?)))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn File>> {
        Ok(Box::new(Retrying(retry(|| self.0.open_to_read(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        retry(|| self.0.rename(from, to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        retry(|| self.0.remove(name))
    }

    fn link(&self, name: &str, to: &dyn Directory) -> io::Result<()> {
        retry(|| self.0.link(name, to))
    }

    fn as_any(&self) -> &dyn Any {
        self.0.as_any()
    }

    fn sync(&self) -> io::Result<()> {
        retry(|| self.0.sync())
    }
}

impl File for Retrying<Box<dyn File>> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        retry(|| self.0.read_at(buffer, offset))
    }

    fn read_at_once(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        retry(|| self.0.read_at_once(buffer, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        retry(|| self.0.write_at(bytes, offset))
    }

    fn sync(&self) -> io::Result<()> {
        retry(|| self.0.sync())
    }

    fn len(&self) -> io::Result<u64> {
        retry(|| self.0.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        retry(|| self.0.set_len(bytes))
    }

    /// Some file systems undo the reservation of an interrupted call. Signals that come often could
    /// keep such a call from ever ending, so it is given up: missing room is found when it is
    /// written to.
    fn reserve(&self, bytes: u64) -> io::Result<()> {
        for _ in 0..RESERVE_ATTEMPTS {
            match self.0.reserve(bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return done,
            }
        }
        Ok(())
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        self.0.will_read(offset, bytes);
    }

    fn will_sync(&self) {
        self.0.will_sync();
    }

    fn modified(&self) -> io::Result<Option<Duration>> {
        retry(|| self.0.modified())
    }

    fn set_modified(&self, time: Duration) -> io::Result<()> {
        retry(|| self.0.set_modified(time))
    }
}
