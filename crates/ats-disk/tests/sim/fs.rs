//! The simulated file system: a [`Disk`] behind the traits of the crate, which counts, records and
//! fails calls.

use super::action::FileId;
use super::disk::Disk;
use super::fault::{Break, Calls, EINTR, ENOSPC, EROFS, Fault, Point, Window};
use ats_disk::fs::{Directory, File, FileSystem, Sharing};
use parking_lot::{Mutex, MutexGuard};
use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The path of another file system.
pub(crate) const OTHER_DISK: &str = "/other";

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
struct Machine {
    disk: Arc<Disk>,
    /// Handles of earlier processes do nothing.
    process: u64,
    open: BTreeMap<FileId, usize>,
    /// The locks of each directory, by the way in which it is shared.
    locks: BTreeMap<PathBuf, Vec<Sharing>>,
    /// The targets of paths that no longer lead to where they led when the machine started.
    turned: BTreeMap<PathBuf, Option<PathBuf>>,
    /// `true` if nothing can be changed.
    read_only: bool,
    calls: u64,
    /// The number of calls after which a test is taken to go on for ever.
    left: u64,
    fault: Option<Fault>,
    /// `true` if the fault was hit.
    hit: bool,
    stopped: bool,
    capacity: Option<u64>,
    reserves: bool,
    points: Option<Vec<Point>>,
    window: Window,
    clock: Duration,
    /// The time of day, which is set only.
    wall_clock: Duration,
}

/// A handle of the simulated machine, for one process on it.
#[derive(Clone)]
pub(crate) struct SimFs {
    machine: Arc<Mutex<Machine>>,
    process: u64,
}

fn stop_error() -> io::Error {
    io::Error::other("the machine has stopped")
}

impl SimFs {
    /// Makes a machine with this disk.
    pub(crate) fn new(disk: Disk) -> Self {
        let machine = Machine {
            disk: Arc::new(disk),
            left: 1 << 20,
            reserves: true,
            ..Machine::default()
        };
        SimFs {
            machine: Arc::new(Mutex::new(machine)),
            process: 0,
        }
    }

    pub(crate) fn disk(&self) -> Arc<Disk> {
        self.machine.lock().disk.clone()
    }

    pub(crate) fn calls(&self) -> u64 {
        self.machine.lock().calls
    }

    /// Sets the time of day.
    pub(crate) fn set_wall_clock(&self, time: Duration) {
        self.machine.lock().wall_clock = time;
    }

    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        let mut machine = self.machine.lock();
        machine.hit &= fault.is_none();
        machine.fault = fault;
    }

    /// Returns `true` if the last fault that was set was hit.
    pub(crate) fn is_hit(&self) -> bool {
        self.machine.lock().hit
    }

    /// Sets the number of bytes of the disk; each name takes a page besides its content.
    pub(crate) fn set_capacity(&self, bytes: Option<u64>) {
        self.machine.lock().capacity = bytes;
    }

    /// Mounts the disk for reading only, or for writing as well.
    pub(crate) fn set_read_only(&self, read_only: bool) {
        self.machine.lock().read_only = read_only;
    }

    /// Turns a link in the path of a directory, so that it leads to another directory, or to none.
    /// It is turned back when the process ends.
    pub(crate) fn turn(&self, path: &Path, to: Option<&Path>) {
        let mut machine = self.machine.lock();
        if let Some(to) = to {
            machine.disk().create_dir(to);
        }
        machine.turned.insert(path.into(), to.map(PathBuf::from));
    }

    /// Turns all links back.
    pub(crate) fn turn_back(&self) {
        self.machine.lock().turned.clear();
    }

    /// Selects whether room is made for files that ask for it.
    pub(crate) fn set_reserves(&self, reserves: bool) {
        self.machine.lock().reserves = reserves;
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        let machine = self.machine.lock();
        machine
            .disk
            .used_bytes(|file| machine.open.contains_key(&file))
    }

    /// Records from now on the disk before each call, if it or the window has changed.
    pub(crate) fn record(&self) {
        self.machine.lock().points = Some(Vec::new());
    }

    /// Returns the records, and the disk as it is now.
    pub(crate) fn points(&self) -> Vec<Point> {
        let mut machine = self.machine.lock();
        machine.point(Calls::ALL);
        machine
            .points
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Sets the window of writes from now on.
    pub(crate) fn set_window(&self, window: Window) {
        self.machine.lock().window = window;
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.machine.lock().clock += by;
    }

    /// Ends the process, without a call. Returns the file system of the next one.
    pub(crate) fn kill(&self) -> SimFs {
        let mut machine = self.machine.lock();
        machine.process += 1;
        machine.open.clear();
        machine.locks.clear();
        machine.turned.clear();
        machine.forget();
        SimFs {
            machine: self.machine.clone(),
            process: machine.process,
        }
    }

    /// Begins a call. Returns how it is to fail, if only in part.
    fn begin(&self, call: Calls) -> io::Result<(MutexGuard<'_, Machine>, Option<Break>)> {
        let mut machine = self.machine.lock();
        if machine.process != self.process || machine.stopped {
            return Err(stop_error());
        }
        machine.point(call);
        machine.calls += 1;
        machine.left -= 1;
        if machine.left == 0 {
            drop(machine);
            panic!("a test makes calls for ever");
        }
        if machine.read_only && Calls::CHANGING.has(call) {
            return Err(io::Error::from_raw_os_error(EROFS));
        }
        let broken = machine.fail(call);
        match broken {
            // A call that was interrupted has done nothing, and loses nothing.
            Some(Break::Nothing(EINTR)) => Err(io::Error::from_raw_os_error(EINTR)),
            Some(Break::Stop) => {
                machine.stopped = true;
                Err(stop_error())
            }
            Some(Break::Nothing(error)) if !Calls::SYNCING.has(call) => {
                Err(io::Error::from_raw_os_error(error))
            }
            Some(Break::Half(error) | Break::All(error))
                if !Calls::SYNCING.has(call) && call != Calls::WRITE =>
            {
                Err(io::Error::from_raw_os_error(error))
            }
            _ => Ok((machine, broken)),
        }
    }

    /// Returns a handle of a file, which keeps this name if it has to.
    fn handle(&self, machine: &mut Machine, file: FileId, name: Option<PathBuf>) -> Box<dyn File> {
        *machine.open.entry(file).or_default() += 1;
        Box::new(SimFile {
            fs: self.clone(),
            file,
            name,
        })
    }
}

impl Machine {
    /// Returns the directory to which a path leads now.
    fn lead(&self, path: &Path) -> io::Result<PathBuf> {
        match self.turned.get(path) {
            Some(to) => to.clone().ok_or_else(|| io::ErrorKind::NotFound.into()),
            None => Ok(path.to_owned()),
        }
    }

    fn point(&mut self, name: Calls) {
        let Some(points) = &mut self.points else {
            return;
        };
        let is_new = points.last().is_none_or(|last: &Point| {
            !Arc::ptr_eq(&last.disk, &self.disk) || last.window != self.window
        });
        if is_new {
            points.push(Point {
                disk: self.disk.clone(),
                window: self.window,
                call: self.calls,
                name,
            });
        }
    }

    fn fail(&mut self, call: Calls) -> Option<Break> {
        let fault = self.fault.as_mut().filter(|fault| fault.of.has(call))?;
        if fault.at > 0 {
            fault.at -= 1;
            return None;
        }
        self.hit = true;
        let how = fault.how;
        if !fault.forever {
            self.fault = None;
        }
        Some(how)
    }

    fn disk(&mut self) -> &mut Disk {
        Arc::make_mut(&mut self.disk)
    }

    fn forget(&mut self) {
        let open = &self.open;
        Arc::make_mut(&mut self.disk).forget(|file| open.contains_key(&file));
    }

    /// Pages that the disk still has.
    fn room(&self) -> u64 {
        let used = || self.disk.used_bytes(|file| self.open.contains_key(&file));
        let free = |capacity: u64| capacity.saturating_sub(used()) / super::content::PAGE as u64;
        self.capacity.map_or(u64::MAX, free)
    }
}

/// Returns the end of a sync, which may fail: whether an action is made durable nevertheless.
fn end(broken: Option<Break>) -> (impl Fn(usize) -> bool, io::Result<()>) {
    let (done, result) = match broken {
        Some(Break::Nothing(error)) => (0, Err(io::Error::from_raw_os_error(error))),
        Some(Break::Half(error)) => (1, Err(io::Error::from_raw_os_error(error))),
        Some(Break::All(error)) => (2, Err(io::Error::from_raw_os_error(error))),
        Some(Break::Stop) | None => (2, Ok(())),
    };
    (move |action: usize| action % 2 < done, result)
}

/// Calls of one directory, by the path with which it was made.
impl SimFs {
    pub(crate) fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let (machine, _) = self.begin(Calls::LIST)?;
        let names = machine.disk.names(directory)?;
        Ok(names.keys().map(|name| name.to_string()).collect())
    }

    pub(crate) fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let (mut machine, _) = self.begin(Calls::CREATE)?;
        if machine.room() == 0 {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        let file = machine.disk().create(path)?;
        Ok(self.handle(&mut machine, file, None))
    }

    pub(crate) fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let (mut machine, _) = self.begin(Calls::OPEN)?;
        let file = machine.disk.find(path)?;
        Ok(self.handle(&mut machine, file, None))
    }

    /// Opens a file that must keep its name.
    fn open_to_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let (mut machine, _) = self.begin(Calls::OPEN)?;
        let file = machine.disk.find(path)?;
        Ok(self.handle(&mut machine, file, Some(path.to_owned())))
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut machine, _) = self.begin(Calls::RENAME)?;
        machine.disk().rename(from, to)
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let (mut machine, _) = self.begin(Calls::REMOVE)?;
        machine.disk.find(path)?;
        machine.disk().remove(path)
    }

    /// Gives a file another name besides. Two directories of which one only is below
    /// [`OTHER_DISK`] are of different file systems.
    pub(crate) fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut machine, _) = self.begin(Calls::CREATE)?;
        if from.starts_with(OTHER_DISK) != to.starts_with(OTHER_DISK) {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        if machine.room() == 0 {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        machine.disk().link(from, to)
    }

    pub(crate) fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let (mut machine, broken) = self.begin(Calls::SYNC_DIR)?;
        machine.disk.names(directory)?;
        let (kept, result) = end(broken);
        if machine.disk.is_dirty_dir(directory) {
            machine.disk().sync_dir(directory, kept);
            machine.forget();
        }
        result
    }

    pub(crate) fn lock(
        &self,
        directory: &Path,
        sharing: Sharing,
    ) -> io::Result<Box<dyn Any + Send + Sync>> {
        let (mut machine, _) = self.begin(Calls::LOCK)?;
        let holders = machine.locks.entry(directory.to_owned()).or_default();
        let is_free = match sharing {
            Sharing::Exclusive => holders.is_empty(),
            Sharing::Shared => holders.iter().all(|holder| *holder == Sharing::Shared),
        };
        if !is_free {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        holders.push(sharing);
        Ok(Box::new(SimLock {
            fs: self.clone(),
            directory: directory.to_owned(),
        }))
    }
}

impl FileSystem for SimFs {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let (mut machine, _) = self.begin(Calls::CREATE_DIR)?;
        let path = machine.lead(path)?;
        if machine.disk.names(&path).is_err() {
            machine.disk().create_dir(&path);
        }
        Ok(())
    }

    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        let (machine, _) = self.begin(Calls::OPEN_DIR)?;
        let directory = machine.lead(path)?;
        machine.disk.names(&directory)?;
        drop(machine);
        Ok(Arc::new(SimDirectory {
            fs: self.clone(),
            directory,
        }))
    }

    fn now(&self) -> Duration {
        self.machine.lock().clock
    }

    fn wall_clock(&self) -> Duration {
        self.machine.lock().wall_clock
    }

    fn sleep(&self, time: Duration) {
        self.advance(time);
    }
}

/// An open directory, which stays the same when its path leads elsewhere.
struct SimDirectory {
    fs: SimFs,
    directory: PathBuf,
}

impl Directory for SimDirectory {
    fn lock(&self, sharing: Sharing) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.fs.lock(&self.directory, sharing)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.fs.list(&self.directory)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.fs.create(&self.directory.join(name))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.fs.open(&self.directory.join(name))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.fs.open_to_read(&self.directory.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let [from, to] = [from, to].map(|name| self.directory.join(name));
        self.fs.rename(&from, &to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.fs.remove(&self.directory.join(name))
    }

    fn link(&self, name: &str, to: &dyn Directory) -> io::Result<()> {
        let to = to.as_any().downcast_ref::<SimDirectory>();
        let to = to.ok_or(io::ErrorKind::Unsupported)?;
        let [from, to] = [&self.directory, &to.directory].map(|directory| directory.join(name));
        self.fs.link(&from, &to)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn sync(&self) -> io::Result<()> {
        self.fs.sync_dir(&self.directory)
    }
}

struct SimLock {
    fs: SimFs,
    directory: PathBuf,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut machine = self.fs.machine.lock();
        if machine.process == self.fs.process
            && let Some(holders) = machine.locks.get_mut(&self.directory)
        {
            holders.pop();
        }
    }
}

struct SimFile {
    fs: SimFs,
    file: FileId,
    /// The name by which it may be opened again at any time, if it is only read.
    name: Option<PathBuf>,
}

impl SimFile {
    /// Opens it again.
    fn reopen(&self, machine: &Machine) -> io::Result<()> {
        match &self.name {
            Some(name) if machine.disk.find(name)? != self.file => {
                Err(io::Error::other("another file has its name"))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut machine = self.fs.machine.lock();
        if machine.process != self.fs.process {
            return;
        }
        if let Some(open) = machine.open.get_mut(&self.file) {
            *open -= 1;
            if *open == 0 {
                machine.open.remove(&self.file);
            }
        }
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (machine, _) = self.fs.begin(Calls::READ)?;
        self.reopen(&machine)?;
        Ok(machine.disk.content(self.file).read(buffer, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (mut machine, broken) = self.fs.begin(Calls::WRITE)?;
        let (mut done, mut result) = match broken {
            Some(Break::Nothing(error)) => (0, Err(io::Error::from_raw_os_error(error))),
            Some(Break::Half(error)) => (bytes.len() / 2, Err(io::Error::from_raw_os_error(error))),
            Some(Break::All(error)) => (bytes.len(), Err(io::Error::from_raw_os_error(error))),
            Some(Break::Stop) | None => (bytes.len(), Ok(())),
        };
        if machine.capacity.is_some() {
            let room = machine.room();
            let content = machine.disk.content(self.file);
            while content.missing(offset, done as u64) > room {
                let page = super::content::PAGE;
                done = done.saturating_sub(1 + (offset as usize + done - 1) % page);
                result = Err(io::Error::from_raw_os_error(ENOSPC));
            }
        }
        machine.disk().write(self.file, &bytes[..done], offset);
        result
    }

    fn sync(&self) -> io::Result<()> {
        let (mut machine, broken) = self.fs.begin(Calls::SYNC)?;
        let (kept, result) = end(broken);
        if machine.disk.is_dirty(self.file) {
            machine.disk().sync(self.file, kept);
        }
        result
    }

    fn len(&self) -> io::Result<u64> {
        let (machine, _) = self.fs.begin(Calls::LEN)?;
        Ok(machine.disk.content(self.file).len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let (mut machine, _) = self.fs.begin(Calls::SET_LEN)?;
        if machine.disk.content(self.file).len() != bytes {
            machine.disk().set_len(self.file, bytes);
        }
        Ok(())
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        let (mut machine, _) = self.fs.begin(Calls::RESERVE)?;
        if !machine.reserves {
            return Ok(());
        }
        if machine.disk.content(self.file).missing(0, bytes) > machine.room() {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        machine.disk().reserve(self.file, bytes);
        Ok(())
    }
}
