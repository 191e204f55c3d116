//! The interface that all stores of records share, on disk.
//!
//! A [`DiskStore`] writes without reading. [`ats_store::Store`] also asks that a change can depend
//! on the value that is there: so here each key is read, decided about and written under a lock
//! that it shares with keys of the same hash. Writers of other keys go on, and their batches are
//! written and synced together.

mod end_hints;

use crate::batch::Batch;
use crate::blocking;
use crate::entry::MAX_BYTES;
use crate::entry::collapse::{is_absent, merge};
use crate::error::Error;
use crate::lifetime::{self, Lifetimes};
use crate::read::{Snapshot, visit_each};
use crate::record_count::CountChange;
use crate::store::DiskStore;
use ats_store::store::{DecideEnd, Visit};
use ats_store::{
    BatchPlan, Change, Direction, End, Expires, KeyRange, Lifetime, MayBlock, MergeOperator,
    Merged, Merges, Store,
};
use end_hints::{Claim, EndHints};
use parking_lot::{Mutex, MutexGuard};
use std::ops::ControlFlow;
use xxhash_rust::xxh3::xxh3_64;

/// The number of locks that keys share.
const LOCKS: usize = 64;

/// A key and its value.
type OwnedRecord = (Vec<u8>, Vec<u8>);

/// A [`DiskStore`] whose keys can be changed depending on their values.
///
/// All writes must go through this: those that are made by the [`DiskStore`] itself meanwhile are
/// not kept from keys that are being changed.
///
/// ```
/// # use ats_disk::{AtomicStore, DiskStore, MayBlock, Options};
/// # use ats_store::{Change, Store};
/// # let directory = std::env::temp_dir().join(format!("ats-disk-atomic-{}", std::process::id()));
/// # let store = DiskStore::open(&directory, Options::new())?;
/// let store = AtomicStore::new(store);
/// let pears = [&b"pears"[..]];
/// let mut sell_one = |_: usize, stock: Option<&[u8]>| match stock {
///     Some([stock]) if *stock > 0 => Change::Put(vec![stock - 1]),
///     _ => Change::Abort, // nothing changes
/// };
/// store.put_unread(Some(MayBlock::here()), b"pears", &[1])?;
/// // Nobody else sells the same one meanwhile.
/// assert_eq!(store.update(Some(MayBlock::here()), &pears, &mut sell_one), Ok(true));
/// assert_eq!(store.update(Some(MayBlock::here()), &pears, &mut sell_one), Ok(false));
/// assert_eq!(store.store().get(b"pears")?, Some(vec![0]));
/// # drop(store);
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), ats_disk::Error>(())
/// ```
pub struct AtomicStore {
    store: DiskStore,
    locks: [Mutex<()>; LOCKS],
    /// The approximate first and last record.
    hints: EndHints,
}

impl AtomicStore {
    /// Makes an atomic store of a store that nothing else writes to.
    #[must_use]
    pub fn new(store: DiskStore) -> Self {
        AtomicStore {
            store,
            locks: [const { Mutex::new(()) }; LOCKS],
            hints: EndHints::default(),
        }
    }

    /// Returns the store itself.
    #[must_use]
    pub fn store(&self) -> &DiskStore {
        &self.store
    }

    /// Returns the records as they are at this moment, as a store that nothing changes. O(1).
    #[must_use]
    pub fn freeze(&self) -> Box<dyn Store> {
        self.store.snapshot().into_store()
    }

    /// Removes a key without reading its value. A value that cannot be merged, which makes
    /// [`update`](Store::update) fail, is removed, too.
    ///
    /// # Errors
    /// The errors of [`DiskStore::delete`].
    pub fn delete_unread(&self, may_block: Option<MayBlock>, key: &[u8]) -> Result<(), Error> {
        let _locked = blocking::lock(may_block, &self.locks[lock_number(key)])?;
        self.store.write_one(may_block, |batch| batch.delete(key))
    }

    /// Gives a key a value without reading the old one.
    ///
    /// # Errors
    /// The errors of [`DiskStore::put`].
    pub fn put_unread(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Error> {
        let _locked = blocking::lock(may_block, &self.locks[lock_number(key)])?;
        let _written = self.hints.write(may_block, [key].into_iter())?;
        let dated;
        let value = match self.store.lifetimes() {
            None => value,
            Some(lifetimes) => {
                dated = self.dated(may_block, lifetimes, key, value.to_vec())?;
                &dated
            }
        };
        self.store
            .write_one(may_block, |batch| batch.put(key, value))
    }

    /// Returns a value of a locked key with its deadline. Reads the key only if the value keeps the
    /// deadline of the one before.
    fn dated(
        &self,
        may_block: Option<MayBlock>,
        lifetimes: &Lifetimes,
        key: &[u8],
        mut value: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        let mut old = None;
        if let Some((Lifetime::Kept, _)) = Lifetime::split(&value) {
            old = self.find_dated(may_block, lifetimes, key)?;
        }
        lifetimes.resolve(&mut value, old.map(|(lifetime, _)| lifetime))?;
        Ok(value)
    }

    /// Returns the lifetime and the value of a key, unless it has expired.
    fn find_dated(
        &self,
        may_block: Option<MayBlock>,
        lifetimes: &Lifetimes,
        key: &[u8],
    ) -> Result<Option<(Lifetime, Vec<u8>)>, Error> {
        let mut found = Ok(None);
        let now = lifetimes.now();
        let mut read = |stored: &[u8]| {
            if !lifetime::is_over(stored, now) {
                let content = lifetime::content(stored).map(<[u8]>::to_vec);
                let deadline = Lifetime::split(stored).map(|(lifetime, _)| lifetime);
                found = content.map(|content| deadline.map(|deadline| (deadline, content)));
            }
        };
        self.store.read_with_deadline(may_block, key, &mut read)?;
        found
    }

    /// Returns the lifetime and the value of a key that is there. The lifetime is that of any
    /// record where records do not expire.
    fn find(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
    ) -> Result<Option<(Lifetime, Vec<u8>)>, Error> {
        match self.store.lifetimes() {
            None => {
                let value = self.store.value(may_block, key)?;
                Ok(value.map(|value| (Lifetime::Forever, value)))
            }
            Some(lifetimes) => self.find_dated(may_block, lifetimes, key),
        }
    }

    /// Makes all changes of a batch at one moment, without reading the keys.
    ///
    /// # Errors
    /// The errors of [`DiskStore::write`].
    pub fn write_unread(&self, may_block: Option<MayBlock>, batch: &Batch) -> Result<(), Error> {
        let _locked = match batch.changed_keys() {
            Some(keys) => self.lock(may_block, &keys)?,
            None => self.lock_all(may_block)?,
        };
        let _written = self.hints.write(may_block, batch.written_keys())?;
        self.store.commit(may_block, batch, self.store.durability())
    }

    /// Like [`update`](Store::update), but returns the errors of this crate.
    ///
    /// # Errors
    /// The errors of [`DiskStore::get`] and [`DiskStore::write`].
    pub fn update_keys(
        &self,
        may_block: Option<MayBlock>,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, Error> {
        let _locked = self.lock(may_block, keys)?;
        let (mut batch, mut added) = (Batch::new(), 0);
        let mut later = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let old = self.find(may_block, key)?;
            match plan.decide(index, old.as_ref().map(|(_, value)| &value[..])) {
                Change::Abort => return Ok(false),
                Change::Later => later.push((index, old)),
                change => {
                    let old = old.map(|(lifetime, _)| lifetime);
                    added += self.add(&mut batch, key, old, change)?;
                }
            }
        }
        for (index, old) in later {
            let change = plan.build(index, old.as_ref().map(|(_, value)| &value[..]));
            if matches!(change, Change::Abort) {
                return Ok(false);
            }
            let old = old.map(|(lifetime, _)| lifetime);
            added += self.add(&mut batch, keys[index], old, change)?;
        }
        self.commit(may_block, batch, added)?;
        Ok(true)
    }

    /// Like [`update_end`](Store::update_end), but returns the errors of this crate.
    ///
    /// # Errors
    /// The errors of [`DiskStore::get`] and [`DiskStore::write`].
    pub fn update_end_key(
        &self,
        may_block: Option<MayBlock>,
        end: End,
        decide: &mut DecideEnd<'_>,
    ) -> Result<(), Error> {
        loop {
            let Some((key, value)) = self.end(may_block, end)? else {
                let _nothing_to_change = decide(None);
                return Ok(());
            };
            let _locked = self.lock(may_block, &[&key])?;
            let _claimed = self.hints.claim(may_block, end, &key)?;
            // Another writer may have been faster. From here on none is, and none writes beyond the
            // key.
            if self.end(may_block, end)?.as_ref() != Some(&(key.clone(), value.clone())) {
                continue;
            }
            let mut batch = Batch::new();
            let old = match self.store.lifetimes() {
                None => Some(Lifetime::Forever),
                Some(lifetimes) => {
                    let old = self.find_dated(may_block, lifetimes, &key)?;
                    old.map(|(lifetime, _)| lifetime)
                }
            };
            // The record may have expired just now.
            if old.is_none() {
                continue;
            }
            let change = decide(Some((&key, &value)));
            let added = self.add(&mut batch, &key, old, change)?;
            return self.commit(may_block, batch, added);
        }
    }

    /// Replaces all records by those that `scan` shows, at one moment for every reader and writer,
    /// and for a crash. They are in memory as one batch meanwhile. If records expire, they get the
    /// lifetime of the store.
    ///
    /// # Errors
    /// Those of `scan`, and of [`DiskStore::write`]; nothing has changed then. [`Error::TooLong`]
    /// if they are longer than a batch may be.
    pub fn replace_all<E: From<Error>>(
        &self,
        may_block: Option<MayBlock>,
        scan: impl FnOnce(&mut Visit<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.replace_all_by(may_block, scan, |batch, key, value| {
            let value = match self.store.lifetimes() {
                None => value.to_vec(),
                Some(_) => Lifetime::OfStore.before(value),
            };
            self.add(batch, key, None, Change::Put(value))
        })
    }

    /// Replaces all records by those that `add` makes of each key and value that `scan` shows. It
    /// returns their number. None of them is behind the greatest key that is shown and an `FF`.
    pub(crate) fn replace_all_by<E: From<Error>>(
        &self,
        may_block: Option<MayBlock>,
        scan: impl FnOnce(&mut Visit<'_>) -> Result<(), E>,
        mut add: impl FnMut(&mut Batch, &[u8], &[u8]) -> Result<i64, Error>,
    ) -> Result<(), E> {
        let mut batch = Batch::new();
        batch.delete_range(KeyRange::default())?;
        let (mut records, mut last) = (Ok(0), Vec::new());
        scan(&mut |key, value| {
            if key > &last[..] {
                key.clone_into(&mut last);
            }
            let added = add(&mut batch, key, value);
            records = added.and_then(|added| records.clone().map(|before| before + added));
            match records {
                Ok(_) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        batch.set_count_change(CountChange::To(records?));
        last.push(0xFF);
        let _all = self.lock_all(may_block)?;
        Ok(self.write(may_block, &batch, &[&[], &last])?)
    }

    /// Merges an operand with the value of a locked key whose records expire. It keeps the deadline
    /// of the value unless it has one of its own.
    fn merge_at_once(
        &self,
        may_block: Option<MayBlock>,
        lifetimes: &Lifetimes,
        key: &[u8],
        operand: &[u8],
    ) -> Result<(), Error> {
        let operator = self.store.operator_of_contents();
        let operator = operator.ok_or(Error::NoOperator)?;
        let (own, operand) = Lifetime::split(operand).ok_or_else(lifetime::no_lifetime)?;
        let old = self.find_dated(may_block, lifetimes, key)?;
        let (deadline, earlier) = old.unzip();
        let merged = match earlier {
            None => operand.to_vec(),
            Some(earlier) => match merge(operator, key, &earlier, operand)? {
                Merged::Earlier => earlier,
                Merged::Later => operand.to_vec(),
                Merged::New(value) => value,
            },
        };
        if is_absent(Some(operator), key, &merged)? {
            return self.store.write_one(may_block, |batch| batch.delete(key));
        }
        let mut value = own.before(&merged);
        lifetimes.resolve(&mut value, deadline)?;
        self.store
            .write_one(may_block, |batch| batch.put(key, &value))
    }

    /// Locks the keys, always in the same order.
    pub(crate) fn lock(
        &self,
        may_block: Option<MayBlock>,
        keys: &[&[u8]],
    ) -> Result<Vec<MutexGuard<'_, ()>>, Error> {
        let mut numbers: Vec<_> = keys.iter().map(|key| lock_number(key)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
            .into_iter()
            .map(|number| blocking::lock(may_block, &self.locks[number]))
            .collect()
    }

    /// Locks all keys: no update is between its read and its write.
    pub(crate) fn lock_all(
        &self,
        may_block: Option<MayBlock>,
    ) -> Result<Vec<MutexGuard<'_, ()>>, Error> {
        self.locks
            .iter()
            .map(|mutex| blocking::lock(may_block, mutex))
            .collect()
    }

    /// Makes a change of a key that is locked part of a batch. Returns the number of records that
    /// the change adds. A value that counts as missing is removed: merging it with later operands
    /// could give something else than they give alone. `old` is the lifetime of the record that is
    /// there.
    fn add(
        &self,
        batch: &mut Batch,
        key: &[u8],
        old: Option<Lifetime>,
        mut change: Change<Vec<u8>>,
    ) -> Result<i64, Error> {
        let had = old.is_some();
        if let (Some(lifetimes), Change::Put(value)) = (self.store.lifetimes(), &mut change) {
            lifetimes.resolve(value, old)?;
        }
        match change {
            Change::Put(value) if !is_absent(self.store.operator(), key, &value)? => {
                batch.put(key, &value)?;
                Ok(i64::from(!had))
            }
            Change::Put(_) | Change::Remove if had => {
                batch.delete(key)?;
                Ok(-1)
            }
            Change::Keep | Change::Put(_) | Change::Remove | Change::Abort | Change::Later => Ok(0),
        }
    }

    /// Writes the decided changes while the keys are locked.
    fn commit(
        &self,
        may_block: Option<MayBlock>,
        mut batch: Batch,
        added: i64,
    ) -> Result<(), Error> {
        batch.set_count_change(CountChange::By(added));
        let _written = self.hints.write(may_block, batch.written_keys())?;
        self.store
            .commit(may_block, &batch, self.store.durability())
    }

    /// Writes a batch, while the keys that it changes are locked. No record that it writes is
    /// outside of `bounds`.
    pub(crate) fn write(
        &self,
        may_block: Option<MayBlock>,
        batch: &Batch,
        bounds: &[&[u8]],
    ) -> Result<(), Error> {
        let _written = self.hints.write(may_block, bounds.iter().copied())?;
        self.store.commit(may_block, batch, self.store.durability())
    }

    /// See [`EndHints::claim`].
    pub(crate) fn claim(
        &self,
        may_block: Option<MayBlock>,
        end: End,
        key: &[u8],
    ) -> Result<Claim<'_>, Error> {
        self.hints.claim(may_block, end, key)
    }

    /// Removes all records, at one moment for every reader and writer, and gives them as a
    /// snapshot.
    pub(crate) fn take_snapshot(&self, may_block: Option<MayBlock>) -> Result<Snapshot, Error> {
        let _all = self.lock_all(may_block)?;
        let taken = self.store.snapshot();
        let mut batch = Batch::new();
        batch.delete_range(KeyRange::default())?;
        batch.set_count_change(CountChange::To(0));
        self.store
            .commit(may_block, &batch, self.store.durability())?;
        Ok(taken)
    }

    /// Returns the record at an end. The caller has locked no key, or this was called before.
    pub(crate) fn end(
        &self,
        may_block: Option<MayBlock>,
        end: End,
    ) -> Result<Option<OwnedRecord>, Error> {
        let direction = match end {
            End::First => Direction::Up,
            End::Last => Direction::Down,
        };
        let mut walk = self.hints.walk(end, || self.lock_all(may_block).is_ok());
        let mut scan = self.store.scan_lending(walk.key_range(), direction)?;
        let record = scan.advance(may_block)?;
        let record = record.map(|(key, value)| (key.to_vec(), value.to_vec()));
        if let Some((key, _)) = &record {
            walk.note(key);
        }
        Ok(record)
    }
}

fn lock_number(key: &[u8]) -> usize {
    xxh3_64(key) as usize % LOCKS
}

impl Store for AtomicStore {
    fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, ats_store::Error> {
        Ok(self.store.read(may_block, key, read)?)
    }

    fn update(
        &self,
        may_block: Option<MayBlock>,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, ats_store::Error> {
        Ok(self.update_keys(may_block, keys, plan)?)
    }

    fn update_end(
        &self,
        may_block: Option<MayBlock>,
        end: End,
        decide: &mut DecideEnd<'_>,
    ) -> Result<(), ats_store::Error> {
        Ok(self.update_end_key(may_block, end, decide)?)
    }

    fn scan(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), ats_store::Error> {
        Ok(visit_each(
            may_block,
            self.store.scan_lending(key_range, direction)?,
            visit,
        )?)
    }

    /// O(records) the first time, and the first time after operands were written; otherwise O(1),
    /// and waits for no thread.
    fn len(&self, may_block: Option<MayBlock>) -> Result<usize, ats_store::Error> {
        Ok(self.store.count(may_block)?)
    }

    fn sum(
        &self,
        may_block: Option<MayBlock>,
        weigh: &dyn Fn(&[u8]) -> usize,
    ) -> Result<usize, ats_store::Error> {
        // However little of it is on disk, it takes long.
        blocking::check(may_block)?;
        let snapshot = self.store.snapshot();
        Ok(snapshot.sum(may_block, weigh)?)
    }

    fn take_all(&self, may_block: Option<MayBlock>) -> Result<Box<dyn Store>, ats_store::Error> {
        Ok(self.take_snapshot(may_block)?.into_store())
    }

    fn bytes(&self) -> usize {
        let info = self.store.info();
        info.memtable_bytes + usize::try_from(info.cache_bytes).unwrap_or(usize::MAX)
    }

    fn most_bytes(&self) -> usize {
        MAX_BYTES
    }

    fn merges(&self) -> Option<&dyn Merges> {
        let operator = self.store.operator_of_contents();
        operator.map(|_| self as &dyn Merges)
    }

    fn expires(&self) -> Option<&dyn Expires> {
        self.store.lifetimes().map(|_| self as _)
    }
}

impl Expires for AtomicStore {
    fn time_left(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
    ) -> Result<Option<Lifetime>, ats_store::Error> {
        let lifetimes = self
            .store
            .lifetimes()
            .ok_or(ats_store::Error::Unsupported)?;
        let found = self.find_dated(may_block, lifetimes, key)?;
        Ok(found.map(|(lifetime, _)| lifetimes.left(lifetime)))
    }

    fn set_lifetime(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        lifetime: Lifetime,
    ) -> Result<bool, ats_store::Error> {
        let mut is_there = false;
        self.update_keys(
            may_block,
            &[key],
            &mut |_: usize, current: Option<&[u8]>| {
                is_there = current.is_some();
                current.map_or(Change::Keep, |value| Change::Put(lifetime.before(value)))
            },
        )?;
        Ok(is_there)
    }

    fn expired(&self) -> u64 {
        self.store.info().expired
    }
}

impl Merges for AtomicStore {
    fn operator(&self) -> &dyn MergeOperator {
        let operator = self.store.operator_of_contents();
        operator.expect("only a store with an operator offers to merge")
    }

    fn merge(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        operand: &[u8],
    ) -> Result<(), ats_store::Error> {
        let _locked = blocking::lock(may_block, &self.locks[lock_number(key)])?;
        let _written = self.hints.write(may_block, [key].into_iter())?;
        if let Some(lifetimes) = self.store.lifetimes() {
            return Ok(self.merge_at_once(may_block, lifetimes, key, operand)?);
        }
        Ok(self
            .store
            .write_one(may_block, |batch| batch.merge(key, operand))?)
    }
}
