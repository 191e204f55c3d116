//! The store as its users see it.

mod info;
mod recovery;

pub use info::{Info, RunInfo};

use crate::background::Worker;
use crate::batch::Batch;
use crate::blocking;
use crate::checkpoint;
use crate::directory::{StoreDirectory, replace_file};
use crate::engine::Engine;
use crate::error::Error;
use crate::fs::Sharing;
use crate::ids::Seq;
use crate::key_bounds::{HalfOpen, KeyBounds};
use crate::lifetime::Lifetimes;
use crate::manifest::Edit;
use crate::options::{Durability, Options};
use crate::paths::enclosing_store;
use crate::progress::{OnProgress, Progress};
use crate::read::{self, LendingScan, Scan, Snapshot};
use crate::state::State;
use crate::state::expiry::KeptSnapshots;
use ats_store::{Direction, KeyRange, MayBlock, MergeOperator};
use std::cell::{Cell, RefCell};
use std::io;
use std::mem;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

thread_local! {
    /// Batch for writes of one key.
    static BATCH: RefCell<Batch> = RefCell::new(Batch::new());
}

/// An ordered store of records on disk.
///
/// All functions may be called from any thread at any time. Writes are linearizable, and so are
/// reads of a key; a [`scan`](DiskStore::scan) and a [`snapshot`](DiskStore::snapshot) see one
/// moment.
///
/// No function takes a [`MayBlock`]: those that begin with `try_` do not block, and all others may.
/// A program knows at each call which of the two it wants, as with the locks of the standard
/// library, and most programs block everywhere; a capability would say the same a second time. The
/// functions of a [`Store`](ats_store::Store), which serve callers that they do not know, take one.
///
/// Clones are the same store. When the last is dropped without [`close`](DiskStore::close), writes
/// since the last flush are in the journal, from which the next opening reads them.
///
/// ```
/// # use ats_disk::{DiskStore, Options};
/// # let directory = std::env::temp_dir().join(format!("ats-disk-store-{}", std::process::id()));
/// # let store = DiskStore::open(&directory, Options::new())?;
/// store.put(b"pear", b"40")?;
/// assert_eq!(store.get(b"pear")?, Some(b"40".to_vec()));
/// store.delete(b"pear")?;
/// assert_eq!(store.get(b"pear")?, None);
/// store.close()?;
/// # drop(store);
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), ats_disk::Error>(())
/// ```
#[derive(Clone)]
pub struct DiskStore {
    owner: Arc<Owner>,
}

/// Ends the background work when it is dropped.
struct Owner {
    engine: Arc<Engine>,
    worker: Arc<Worker>,
}

impl Owner {
    /// Ends the background work, of which there is none in a copy of the process.
    fn stop(&self) {
        self.engine.state.status.begin_closing();
        if self.engine.state.status.is_forked() {
            return;
        }
        self.engine.state.background.end();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.stop();
        self.engine.state.release_directory();
        if self.engine.state.status.is_forked() {
            // A thread of the other process may have held any lock of it, and of its memory, when
            // this one was made.
            mem::forget(Arc::clone(&self.worker));
        }
    }
}

impl DiskStore {
    /// Opens the store in a directory, or makes one there.
    ///
    /// After a clean [`close`](DiskStore::close) this reads the manifest and the ends of the run
    /// files, and writes nothing. Otherwise it reads the journals, too: about as many bytes as the
    /// memtables had.
    ///
    /// ```
    /// # use ats_disk::{DiskStore, Error, Options};
    /// # let directory = std::env::temp_dir().join(format!("ats-disk-open-{}", std::process::id()));
    /// let store = DiskStore::open(&directory, Options::new())?;
    /// store.put(b"pear", b"40")?;
    /// let again = DiskStore::open(&directory, Options::new());
    /// assert_eq!(again.err(), Some(Error::Locked)); // there is one store in a directory
    /// store.close()?;
    ///
    /// let store = DiskStore::open(&directory, Options::new().read_only(true))?;
    /// assert_eq!(store.get(b"pear")?, Some(b"40".to_vec()));
    /// # drop(store);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), ats_disk::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Locked`] if it is open already, here or in another process; [`Error::Missing`] if
    /// there is none and none is to be made; [`Error::OtherOperator`], [`Error::NewerFormat`],
    /// [`Error::Option`], [`Error::Corrupt`], [`Error::Io`].
    pub fn open(directory: &Path, options: Options) -> Result<Self, Error> {
        options.check()?;
        let file_system = Arc::clone(&options.file_system);
        let directory = match (options.read_only, options.create) {
            (true, _) => StoreDirectory::open(file_system, directory, Sharing::Shared),
            (false, true) => StoreDirectory::make(file_system, directory),
            (false, false) => StoreDirectory::open(file_system, directory, Sharing::Exclusive),
        }?;
        DiskStore::open_in(directory, options)
    }

    /// Opens the store in a directory that is open, or makes one there. The directory tells the
    /// file system, and whether the store is only read; [`Options`] do not.
    ///
    /// # Errors
    /// The errors of [`open`](DiskStore::open).
    pub fn open_in(directory: StoreDirectory, options: Options) -> Result<Self, Error> {
        DiskStore::open_with(directory, options, &[])
    }

    /// Like [`open_in`](DiskStore::open_in), but a store that it makes has files with these names
    /// and bytes [beside](DiskStore::replace_file) its own. They get their names behind the
    /// manifest; after a crash any part of these may be there.
    ///
    /// # Errors
    /// The errors of [`open`](DiskStore::open).
    pub fn open_with(
        directory: StoreDirectory,
        options: Options,
        beside: &[(&str, &[u8])],
    ) -> Result<Self, Error> {
        let engine = Arc::new(recovery::open(directory, options, beside)?);
        let worker = Arc::new(Worker::new(Arc::clone(&engine)));
        let owner = Owner { engine, worker };
        // The owner ends begun work after an error, before it lets go of the directory.
        let started = owner.worker.start();
        started.map_err(|error| Error::io(&error, "starting threads"))?;
        Ok(DiskStore {
            owner: Arc::new(owner),
        })
    }

    /// Writes a file beside those of the store, which replaces any file of that name: completely or
    /// not at all, also after a crash. It is durable when this returns. Its name must be none that
    /// a [`StoreDirectory`] keeps for the store.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Io`].
    pub fn replace_file(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.state().status.check_writable()?;
        replace_file(&*self.state().directory, name, bytes)
    }

    fn state(&self) -> &Arc<State> {
        &self.owner.engine.state
    }

    fn engine(&self) -> &Engine {
        &self.owner.engine
    }

    /// Returns the operator that merges operands.
    pub(crate) fn operator(&self) -> Option<&dyn MergeOperator> {
        self.state().options.operator.as_deref()
    }

    /// Returns the operator that merges contents of values, without their deadlines.
    pub(crate) fn operator_of_contents(&self) -> Option<&dyn MergeOperator> {
        match self.lifetimes() {
            None => self.operator(),
            Some(lifetimes) => lifetimes.operator(),
        }
    }

    /// Gives a key a value. The cost is that of a write to the journal and to a tree in memory: no
    /// file is read.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::Io`] if the journal cannot be written; [`Error::ReadOnly`]
    /// after a failure of the system that has left the state of the disk unknown.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write_one(Some(MayBlock::here()), |batch| batch.put(key, value))
    }

    /// Removes a key. It need not be there.
    ///
    /// # Errors
    /// The errors of [`put`](DiskStore::put).
    pub fn delete(&self, key: &[u8]) -> Result<(), Error> {
        self.write_one(Some(MayBlock::here()), |batch| batch.delete(key))
    }

    /// Merges an operand with the value of a key, without reading it. The [crate] has an example.
    ///
    /// # Errors
    /// The errors of [`put`](DiskStore::put), and [`Error::NoOperator`]. Operands that cannot be
    /// merged are found when the key is read.
    pub fn merge(&self, key: &[u8], operand: &[u8]) -> Result<(), Error> {
        self.write_one(Some(MayBlock::here()), |batch| batch.merge(key, operand))
    }

    /// Removes all keys in a range. O(1), however many there are.
    ///
    /// ```
    /// # use ats_disk::{DiskStore, Options};
    /// # let directory = std::env::temp_dir().join(format!("ats-disk-range-{}", std::process::id()));
    /// # let store = DiskStore::open(&directory, Options::new())?;
    /// for key in [b"a", b"b", b"c"] {
    ///     store.put(key, b"value")?;
    /// }
    /// store.delete_range(b"b"..)?;
    /// assert!(store.get(b"a")?.is_some());
    /// assert!(store.get(b"c")?.is_none());
    /// # drop(store);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), ats_disk::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put`](DiskStore::put).
    pub fn delete_range(&self, keys: impl KeyBounds) -> Result<(), Error> {
        self.write_one(Some(MayBlock::here()), |batch| batch.delete_range(keys))
    }

    /// Makes one change, which `add` adds to a batch.
    pub(crate) fn write_one(
        &self,
        may_block: Option<MayBlock>,
        add: impl FnOnce(&mut Batch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut batch = BATCH.try_with(RefCell::take).unwrap_or_default();
        batch.clear();
        let durability = self.durability();
        let result = add(&mut batch).and_then(|()| self.commit(may_block, &batch, durability));
        if batch.bytes() <= 1 << 16 {
            let _ = BATCH.try_with(|kept| kept.replace(batch));
        }
        result
    }

    /// Makes the changes of a batch as one: a reader sees all of them or none, and so does the next
    /// opening after a crash. See [`Batch`].
    ///
    /// # Errors
    /// The errors of [`put`](DiskStore::put), and [`Error::NoOperator`].
    pub fn write(&self, batch: &Batch) -> Result<(), Error> {
        self.write_with(batch, self.durability())
    }

    /// Returns the durability of writes that name no other.
    pub(crate) fn durability(&self) -> Durability {
        self.state().options.durability
    }

    /// Like [`write`](DiskStore::write), but with another durability than that of the store. Only
    /// [`Durability::Always`] differs from the others.
    ///
    /// # Errors
    /// The errors of [`write`](DiskStore::write).
    pub fn write_with(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        self.commit(Some(MayBlock::here()), batch, durability)
    }

    /// Like [`write_with`](DiskStore::write_with), but does not block. A write still hands its
    /// bytes to the system, which keeps them in memory, and may make a process wait that writes
    /// more than its disk can take.
    ///
    /// # Errors
    /// The errors of [`write`](DiskStore::write), and [`Error::WouldBlock`]. Then nothing has
    /// changed.
    pub fn try_write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        self.commit(None, batch, durability)
    }

    /// Makes the changes of a batch as one, and blocks only if it may.
    pub(crate) fn commit(
        &self,
        may_block: Option<MayBlock>,
        batch: &Batch,
        durability: Durability,
    ) -> Result<(), Error> {
        self.engine().commit(may_block, batch, durability)?;
        let (deletes, last) = batch.deleted_keys();
        if deletes > 0 {
            read::look_for_gap(self.state(), deletes, last);
        }
        Ok(())
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Corrupt`] if a file cannot be read, [`Error::Merge`] if the
    /// operands of the key cannot be merged.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.value(Some(MayBlock::here()), key)
    }

    /// Like [`get`](DiskStore::get), but blocks only if it may.
    pub(crate) fn value(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        let mut value = None;
        self.read(may_block, key, &mut |bytes| value = Some(bytes.to_vec()))?;
        Ok(value)
    }

    /// Lends the value of a key to `read`. Returns `true` if there is one.
    ///
    /// # Errors
    /// The errors of [`get`](DiskStore::get).
    pub fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        self.read(Some(MayBlock::here()), key, read)
    }

    /// Like [`get_with`](DiskStore::get_with), but does not block.
    ///
    /// # Errors
    /// The errors of [`get`](DiskStore::get), and [`Error::WouldBlock`].
    pub fn try_get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        self.read(None, key, read)
    }

    /// Lends the value of a key to `read`, and blocks only if it may. Returns `true` if there is
    /// one.
    pub(crate) fn read(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        read::get(may_block, self.state(), key, read)
    }

    /// Iterates over the records of a range, all as they are at this moment. See [`Scan`].
    ///
    /// ```
    /// # use ats_disk::{DiskStore, Options};
    /// # let directory = std::env::temp_dir().join(format!("ats-disk-scan-{}", std::process::id()));
    /// # let store = DiskStore::open(&directory, Options::new())?;
    /// for key in [b"a", b"b", b"c"] {
    ///     store.put(key, b"value")?;
    /// }
    /// let scan = store.scan(b"b"..);
    /// store.put(b"d", b"too late")?;
    /// let keys: Result<Vec<_>, _> = scan.rev().map(|record| Ok(record?.0)).collect();
    /// assert_eq!(keys, Ok::<_, ats_disk::Error>(vec![b"c".to_vec(), b"b".to_vec()]));
    /// # drop(store);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), ats_disk::Error>(())
    /// ```
    pub fn scan(&self, keys: impl KeyBounds) -> Scan {
        Scan::of(self.state(), &keys)
    }

    /// Returns a walk over the records of a range in one direction, all as they are at this moment.
    /// It lends each record and copies none. See [`LendingScan`].
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    pub fn scan_lending(
        &self,
        keys: impl KeyBounds,
        direction: Direction,
    ) -> Result<LendingScan, Error> {
        LendingScan::of(self.state(), HalfOpen::new(&keys).as_range(), direction)
    }

    /// See [`LendingScan::of_short_walk`].
    pub(crate) fn scan_short(&self, key_range: KeyRange<'_>) -> Result<LendingScan, Error> {
        LendingScan::of_short_walk(self.state(), key_range)
    }

    /// Returns the store as it is at this moment. O(1). See [`Snapshot`].
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.state())
    }

    /// Returns the store as it is at this moment, until the snapshot and its clones are dropped, or
    /// are so old; or until the kept snapshots hold more than [`Options::snapshot_memory`], and it
    /// is the oldest of them. [`Snapshot::ending`] tells which. It need not be read. O(1).
    ///
    /// ```
    /// # use ats_disk::{DiskStore, Options};
    /// # let directory = std::env::temp_dir().join(format!("ats-disk-keep-{}", std::process::id()));
    /// # let store = DiskStore::open(&directory, Options::new())?;
    /// let before = store.keep_snapshot(None);
    /// store.put(b"pear", b"40")?;
    /// let after = store.keep_snapshot(None);
    /// store.put(b"plum", b"7")?;
    ///
    /// let mut diff = before.diff(&after, ..)?.expect("they are of one store");
    /// let pear = diff.next()?.expect("there is a difference");
    /// assert_eq!((pear.key, pear.first, pear.second), (&b"pear"[..], None, Some(&b"40"[..])));
    /// assert!(diff.next()?.is_none());
    /// # drop((before, after, diff, store));
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), ats_disk::Error>(())
    /// ```
    #[must_use]
    pub fn keep_snapshot(&self, age: Option<Duration>) -> Snapshot {
        Snapshot::keep(self.state(), age)
    }

    /// Returns the figures of the snapshots that are [kept](DiskStore::keep_snapshot).
    /// O(snapshots).
    #[must_use]
    pub fn kept_snapshots(&self) -> KeptSnapshots {
        self.kept_snapshots_of(&|_| true)
    }

    /// The figures of the snapshots that are kept, without those whose
    /// [holder](Snapshot::set_holder) has ended, which the caller knows: they are about to end.
    /// O(snapshots).
    #[must_use]
    pub fn kept_snapshots_of(&self, lives: &dyn Fn(u64) -> bool) -> KeptSnapshots {
        let state = self.state();
        state.expiry.figures(state.file_system.now(), lives)
    }

    /// Lends the value of a key as it is in files to `read`: with its deadline if records expire,
    /// and also past that. Returns `true` if there is one.
    pub(crate) fn read_with_deadline(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        read::get_with_deadline(may_block, self.state(), key, read)
    }

    /// Returns the clock of a store whose records expire.
    pub(crate) fn lifetimes(&self) -> Option<&Lifetimes> {
        self.state().lifetimes.as_ref()
    }

    /// Returns the number of records at one moment. O(1) if all writes since the last call have
    /// read the keys that they change, as updates of an [`AtomicStore`](crate::AtomicStore) do;
    /// otherwise, and always if records [expire](Options::lifetime), O(records).
    ///
    /// # Errors
    /// The errors of [`get`](DiskStore::get).
    pub fn len(&self) -> Result<usize, Error> {
        self.count(Some(MayBlock::here()))
    }

    /// Returns `true` if there are no records. It takes the first step of a scan.
    ///
    /// # Errors
    /// The errors of [`get`](DiskStore::get).
    pub fn is_empty(&self) -> Result<bool, Error> {
        let mut scan = self.scan_lending(.., Direction::Up)?;
        Ok(scan.next()?.is_none())
    }

    /// Like [`len`](DiskStore::len), but does not block.
    ///
    /// # Errors
    /// The errors of [`get`](DiskStore::get), and [`Error::WouldBlock`].
    pub fn try_len(&self) -> Result<usize, Error> {
        self.count(None)
    }

    /// Returns the number of records, and blocks only if it may.
    pub(crate) fn count(&self, may_block: Option<MayBlock>) -> Result<usize, Error> {
        let state = self.state();
        if let Some(records) = state.snapshots.count()? {
            return Ok(records);
        }
        // However little of it is on disk, it takes long.
        blocking::check(may_block)?;
        let (snapshot, start) = {
            let write_state = state.write_state.lock();
            (self.snapshot(), write_state.count.begin())
        };
        let records = snapshot.sum(may_block, &|_| 1)?;
        if state.lifetimes.is_some() {
            // Records go without a write, so the number is not kept.
            return Ok(records);
        }
        let mut write_state = state.write_state.lock();
        write_state.count.end(start, records as i64);
        state.snapshots.publish_count(&write_state.count);
        Ok(records)
    }

    /// Makes all durable that was written before.
    ///
    /// # Errors
    /// [`Error::Io`], after which the store is read-only; [`Error::ReadOnly`].
    pub fn sync(&self) -> Result<(), Error> {
        self.engine().writer.sync()
    }

    /// Closes the journal to which the store writes, which the next change opens again. All earlier
    /// writes are durable then. A store that is not in use needs one descriptor besides those of
    /// its files that were [read lately](crate::fs::set_open_files). The background work does that
    /// when there were no writes for ten seconds. Nothing is closed that is in use at this moment.
    ///
    /// # Errors
    /// The errors of [`sync`](DiskStore::sync).
    pub fn close_logs(&self) -> Result<(), Error> {
        self.engine().writer.close_logs().map(|_| ())
    }

    /// Writes the memtables to runs. Writes of other threads meanwhile are not waited for.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::ReadOnly`].
    pub fn flush(&self) -> Result<(), Error> {
        self.flush_all().map(|_| ())
    }

    /// Like [`flush`](DiskStore::flush). Returns the sequence number of the last change that is in
    /// a run.
    fn flush_all(&self) -> Result<Seq, Error> {
        if self.state().status.is_opened_read_only() {
            return Ok(self.state().snapshots.visible());
        }
        self.state().status.check_writable()?;
        let _guard = self.state().directory_lock.acquire()?;
        let last_seq = {
            let mut write_state = self.state().write_state.lock();
            self.engine().writer.seal(&mut write_state);
            write_state.last_seq
        };
        self.engine().flusher.flush_up_to(last_seq)?;
        Ok(last_seq)
    }

    /// Compacts all earlier writes into one run, without replaced and deleted records, except for
    /// those that snapshots read. Writes go on meanwhile, and are not waited for: they may make
    /// more runs.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`], [`Error::ReadOnly`].
    pub fn compact(&self) -> Result<(), Error> {
        self.compact_with(&mut |_| ControlFlow::Continue(()))
    }

    /// Like [`compact`](DiskStore::compact), but tells of its progress. If it is broken off, the
    /// complete part of the compaction is kept, and it goes on later.
    ///
    /// # Errors
    /// The errors of [`compact`](DiskStore::compact).
    pub fn compact_with(&self, on_progress: &mut OnProgress<'_>) -> Result<(), Error> {
        let last_seq = self.flush_all()?;
        let state = self.state();
        state.status.check_writable()?;
        let _guard = state.directory_lock.acquire()?;
        let compactor = &self.engine().compactor;
        let reservation = compactor.reserve_runs(last_seq);
        let is_broken_off = Cell::new(false);
        let mut on_progress = |progress: Progress| {
            let flow = on_progress(progress);
            is_broken_off.set(flow.is_break());
            flow
        };
        loop {
            let compacted = compactor.compact_reserved(&reservation, &mut on_progress)?;
            let (runs, _) = compactor.reserved_runs(&reservation);
            if runs <= 1 {
                state.remove_obsolete();
                return Ok(());
            }
            if !compacted && !is_broken_off.get() {
                // A thread compacts some of them.
                let _flow = on_progress(Progress::default());
                state.file_system.sleep(Duration::from_millis(10));
            }
            if is_broken_off.get() {
                return Ok(());
            }
        }
    }

    /// Does one piece of background work: writes a memtable to a run, compacts some runs, or
    /// removes files. Returns `true` if there was anything to do.
    ///
    /// # Errors
    /// The errors of [`compact`](DiskStore::compact).
    pub fn work(&self) -> Result<bool, Error> {
        let _guard = self.state().directory_lock.acquire()?;
        self.owner.worker.work()
    }

    /// Writes the memtables to runs, and compacts runs as far as that makes reads faster at a price
    /// that pays. The background does the same when there were no writes for a second. Writes go on
    /// meanwhile, and are not waited for.
    ///
    /// Useful after a load, before many reads. Unlike [`compact`](DiskStore::compact) it does not
    /// rewrite a large run for the sake of a small one.
    ///
    /// # Errors
    /// The errors of [`compact`](DiskStore::compact).
    pub fn settle(&self) -> Result<(), Error> {
        let last_seq = self.flush_all()?;
        let state = self.state();
        state.status.check_writable()?;
        let _guard = state.directory_lock.acquire()?;
        let compactor = &self.engine().compactor;
        let reservation = compactor.reserve_runs(last_seq);
        loop {
            let compacted = compactor.settle_reserved(&reservation)?;
            let (_, is_compacting) = compactor.reserved_runs(&reservation);
            if !compacted && !is_compacting {
                state.remove_obsolete();
                return Ok(());
            }
            if !compacted {
                // A thread compacts some of them.
                state.file_system.sleep(Duration::from_millis(2));
            }
        }
    }

    /// Makes a store in another directory with the records of this one at this moment: all earlier
    /// writes, each batch whole or not at all. Others go on meanwhile.
    ///
    /// It takes milliseconds, and as long as the journals need to be synced. Files that do not
    /// change any more get a second name, by a hard link; so they take no room until this store has
    /// compacted them. In another file system, or where there are no links, they are copied.
    ///
    /// The directory is made if it is missing; it must be empty. When this returns, the store is
    /// there and durable; after an error or a stop of the machine before that, there is none.
    ///
    /// ```
    /// # use ats_disk::{DiskStore, Options};
    /// # let directory = std::env::temp_dir().join(format!("ats-disk-point-{}", std::process::id()));
    /// # let (here, there) = (directory.join("here"), directory.join("there"));
    /// let store = DiskStore::open(&here, Options::new())?;
    /// store.put(b"pear", b"40")?;
    /// store.checkpoint(&there)?;
    /// store.put(b"pear", b"45")?;
    ///
    /// let copy = DiskStore::open(&there, Options::new())?;
    /// assert_eq!(copy.get(b"pear")?, Some(b"40".to_vec()));
    /// # drop((store, copy));
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok::<(), ats_disk::Error>(())
    /// ```
    ///
    /// # Blocking
    /// No writer waits for more than a lock that is held for as long as it takes to go on with the
    /// next journal, which was begun before. The caller waits for syncs, and for copies.
    ///
    /// # Errors
    /// [`Error::Io`], of the kind [`AlreadyExists`](std::io::ErrorKind::AlreadyExists) if there are
    /// files in the directory, and of the kind [`InvalidInput`](std::io::ErrorKind::InvalidInput)
    /// if it is below the directory of a store, such as this one; [`Error::Locked`] if another
    /// store has it open; [`Error::ReadOnly`], also if this store was opened for reading.
    pub fn checkpoint(&self, to: &Path) -> Result<(), Error> {
        self.state().status.check_writable()?;
        let file_system = &self.state().file_system;
        if let Some(store) = enclosing_store(&**file_system, to) {
            let (to, store) = (to.display(), store.display());
            let error = io::Error::from(io::ErrorKind::InvalidInput);
            let what = format_args!("{to} is below {store}, the directory of a store");
            return Err(Error::io(&error, what));
        }
        let target = StoreDirectory::make(Arc::clone(file_system), to)?;
        self.checkpoint_in(&target, None, &[])
    }

    /// Makes a [checkpoint](DiskStore::checkpoint) in a directory that is open and empty, with the
    /// files of these names that are kept [beside](DiskStore::replace_file) those of the store.
    /// They and the manifest get their names last. After a crash any part of these may be there.
    ///
    /// If files cannot be linked, those that an `earlier` checkpoint has as well are linked from
    /// there. They are known by their number, their description in the manifest, and the time at
    /// which they were written. So only new files are copied.
    ///
    /// # Errors
    /// The errors of [`checkpoint`](DiskStore::checkpoint); [`Error::Missing`] and
    /// [`Error::Corrupt`] if there is no earlier checkpoint in that directory, or one that cannot
    /// be read.
    pub fn checkpoint_in(
        &self,
        target: &StoreDirectory,
        earlier: Option<&StoreDirectory>,
        beside: &[&str],
    ) -> Result<(), Error> {
        let engine = self.engine();
        checkpoint::make(&engine.writer, &engine.flusher, target, earlier, beside)
    }

    /// Has the next change get a sequence number above this one. Until that change is in a run, the
    /// numbers that were left out look like changes that are missing.
    pub(crate) fn skip_numbers(&self, last: Seq) {
        let mut write_state = self.state().write_state.lock();
        write_state.last_seq = write_state.last_seq.max(last);
    }

    /// Returns the figures of the store.
    #[must_use]
    pub fn info(&self) -> Info {
        Info::of(self.engine())
    }

    /// Reads all files and checks them.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the first offset at which a file differs from its checksum;
    /// [`Error::Io`].
    pub fn verify(&self) -> Result<(), Error> {
        let version = self.state().versions.current_arc();
        for run in &version.runs {
            for file in run.run.files() {
                file.verify()?;
            }
        }
        Ok(())
    }

    /// Notes the time in the manifest, if records expire. If that fails, the clock of the next
    /// opening may begin earlier.
    fn note_time(&self) {
        let state = self.state();
        if state.lifetimes.is_none() || state.status.is_opened_read_only() {
            return;
        }
        if let Ok(_guard) = state.directory_lock.acquire() {
            let files = &self.engine().files;
            let _noted = files.write_edit(&mut files.manifest.lock(), Edit::default());
        }
    }

    /// Writes the memtables to runs, ends the threads, and lets another store open the directory.
    /// Then this store and its clones are read-only. Compactions of other threads are broken off,
    /// and waited for; called from within [`OnProgress`], this does not wait for that compaction,
    /// and the directory is free when it has ended.
    ///
    /// # Errors
    /// [`Error::Io`] if writes could not be moved from the journal to a run. They are in the
    /// journal still.
    pub fn close(&self) -> Result<(), Error> {
        self.owner.stop();
        let flushed = self.flush();
        self.note_time();
        self.engine().flusher.end_writing(flushed.is_ok());
        self.state().release_directory();
        flushed
    }
}
