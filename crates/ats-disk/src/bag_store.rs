//! A store in which a key has several values, each of which is a record of its own.
//!
//! Keys are changed as in an [`AtomicStore`]: each under a lock that it shares with keys of the
//! same hash, and all its records with it. **BAG_STORE-1** Records of a key are only written under
//! the lock of the key. **BAG_STORE-2** A key whose values are [one record](layout) gets other
//! records only together with the change that removes that one.

mod identity;
mod layout;
mod values;

use crate::atomic_store::AtomicStore;
use crate::batch::Batch;
use crate::blocking;
use crate::entry::MAX_BYTES;
use crate::error::Error;
use crate::read::{Snapshot, SnapshotStore, SnapshotView};
use crate::record_count::CountChange;
use crate::store::DiskStore;
use ats_store::store::{DecideEnd, Visit};
use ats_store::{
    AddRule, BagValues, Bags, BatchPlan, Change, Direction, End, KeyRange, MayBlock, Store,
};
use identity::{Identity, split_values};
use layout::{Record, end_of, record_key, record_value};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use values::{KeyValues, with_records_of};

/// Up to so many values of a key are removed one by one, more by a range.
const FEW: usize = 8;
/// A caller that may not block compares no more values than this with one.
const COMPARED_AT_ONCE: usize = 32;
/// Bytes of values that are rewritten in one go.
const REWRITTEN_BYTES: usize = 1 << 20;

/// A [`DiskStore`] in which a key has several values.
///
/// All writes must go through this, as with [`AtomicStore`]. Records must not
/// [expire](crate::Options::lifetime): writes are refused then. A key that begins with another key
/// must go on with a byte of `0xFE` or more there; the keys of tables are like that.
///
/// ```
/// # use ats_disk::{BagStore, DiskStore, MayBlock, Options};
/// # use ats_store::{AddRule, BagValues, Bags, Error};
/// # use std::sync::Arc;
/// # let directory = std::env::temp_dir().join(format!("ats-disk-bag-{}", std::process::id()));
/// # let store = DiskStore::open(&directory, Options::new())?;
/// /// Values that are equal if their bytes are.
/// struct Bytes;
///
/// impl BagValues for Bytes {
///     fn hash(&self, value: &[u8]) -> Result<u64, Error> {
///         // The same in every process, as a seeded hash would not be.
///         Ok(value.iter().fold(0, |hash: u64, byte| hash.rotate_left(5) ^ u64::from(*byte)))
///     }
///
///     fn is_equal(&self, one: &[u8], other: &[u8]) -> Result<bool, Error> {
///         Ok(one == other)
///     }
/// }
///
/// let bag = BagStore::new(store, Arc::new(Bytes), false);
/// let may_block = Some(MayBlock::here());
/// let rule = AddRule { distinct: true, only_to_new_keys: false };
/// let values = [(&b"pear"[..], &b"green"[..]), (b"pear", b"yellow")];
/// assert_eq!(bag.add(may_block, &values, rule), Ok(true));
/// assert_eq!(bag.remove(may_block, b"pear", b"green", usize::MAX), Ok(Some(1)));
/// assert_eq!(bag.values(may_block), Ok(1));
/// # drop(bag);
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), ats_disk::Error>(())
/// ```
pub struct BagStore {
    atomic: AtomicStore,
    identity: Identity,
    /// `true` if there may be keys whose values are one record.
    has_shared: AtomicBool,
}

impl BagStore {
    /// Makes a bag store on a store, of which nothing else writes. `has_shared` tells whether the
    /// store may have been written as an [`AtomicStore`], with all values of a key in one record:
    /// such keys are rewritten when they change, and by [`rewrite`](BagStore::rewrite).
    #[must_use]
    pub fn new(store: DiskStore, identity: Arc<dyn BagValues>, has_shared: bool) -> Self {
        BagStore {
            atomic: AtomicStore::new(store),
            identity: Identity(identity),
            has_shared: AtomicBool::new(has_shared),
        }
    }

    /// Returns the store of the records.
    #[must_use]
    pub fn records(&self) -> &AtomicStore {
        &self.atomic
    }

    /// Returns the keys and their values as they are at this moment, as a store that nothing
    /// changes. O(1).
    #[must_use]
    pub fn freeze(&self) -> Box<dyn Store> {
        self.atomic.store().snapshot().into_bag_store()
    }

    /// Replaces all values by those that `scan` shows, key by key, at one moment for every reader
    /// and writer, and for a crash. They are in memory as one batch meanwhile.
    ///
    /// # Errors
    /// The errors of [`AtomicStore::replace_all`].
    pub fn replace_all<E: From<Error>>(
        &self,
        may_block: Option<MayBlock>,
        scan: impl FnOnce(&mut Visit<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check_lifetime()?;
        let mut adding = Adding::new(&self.identity);
        self.atomic
            .replace_all_by(may_block, scan, |batch, key, values| {
                adding.push_all(batch, key, split_values(values))
            })
    }

    /// Gives each value a record of its own, where all values of a key are one record. Readers see
    /// no difference, and a call that is interrupted leaves the other keys as they are.
    ///
    /// # Errors
    /// The errors of [`DiskStore::write`].
    pub fn rewrite(&self) -> Result<(), Error> {
        if !self.has_shared() {
            return Ok(());
        }
        let may_block = Some(MayBlock::here());
        let snapshot = self.atomic.store().snapshot();
        let mut scan = snapshot.scan_lending(KeyRange::default(), Direction::Up)?;
        let (mut keys, mut bytes) = (Vec::new(), 0);
        while let Some((record_key, value)) = scan.advance(may_block)? {
            if let Record::Shared { key, .. } = Record::read(record_key, value)? {
                keys.push(key.to_vec());
                bytes += value.len();
            }
            if bytes >= REWRITTEN_BYTES {
                self.rewrite_keys(may_block, &keys)?;
                keys.clear();
                bytes = 0;
            }
        }
        self.rewrite_keys(may_block, &keys)?;
        self.has_shared.store(false, Ordering::Release);
        Ok(())
    }

    fn rewrite_keys(&self, may_block: Option<MayBlock>, keys: &[Vec<u8>]) -> Result<(), Error> {
        let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        let _locked = self.atomic.lock(may_block, &keys)?;
        let (mut batch, mut added) = (Batch::new(), 0);
        for key in &keys {
            if let Some(values) = self.find_shared(may_block, key)? {
                added += self.split_record(&mut batch, key, &values)?;
            }
        }
        self.commit(may_block, batch, added, &keys)
    }

    /// Returns `true` if there may be keys whose values are one record.
    pub fn has_shared(&self) -> bool {
        self.has_shared.load(Ordering::Acquire)
    }

    /// Returns the values of a key if they are one record.
    fn find_shared(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        if self.has_shared() {
            self.atomic.store().value(may_block, key)
        } else {
            Ok(None)
        }
    }

    /// Gives each of the values of a locked key, which are one record, a record of its own. Returns
    /// the number of records by which they become more.
    fn split_record(&self, batch: &mut Batch, key: &[u8], values: &[u8]) -> Result<i64, Error> {
        batch.delete(key)?;
        let mut adding = Adding::new(&self.identity);
        Ok(adding.push_all(batch, key, split_values(values))? - 1)
    }

    /// Returns the values of a key, to be changed.
    fn group(&self, may_block: Option<MayBlock>, key: &[u8]) -> Result<KeyValues, Error> {
        self.read(may_block, KeyValues::to_change(), key)
    }

    /// Returns a group with the values of a key.
    fn read(
        &self,
        may_block: Option<MayBlock>,
        group: KeyValues,
        key: &[u8],
    ) -> Result<KeyValues, Error> {
        group.read(may_block, key, |range| {
            self.atomic.store().scan_short(range)
        })
    }

    /// Returns `true` if a key has values.
    fn has_values(&self, may_block: Option<MayBlock>, key: &[u8]) -> Result<bool, Error> {
        with_records_of(key, |range| {
            let mut scan = self.atomic.store().scan_short(range)?;
            Ok(scan.advance(may_block)?.is_some())
        })
    }

    /// Returns the keys of the records that have a value equal to this one, which has this hash; at
    /// most so many.
    fn equal(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        value: &[u8],
        hash: u64,
        most: usize,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let low = record_key(key, hash);
        let high = [&low[..], &[0xFF; 9]].concat();
        let range = KeyRange {
            low: Some(&low),
            high: Some(&high),
        };
        let mut scan = self.atomic.store().scan_short(range)?;
        let mut equal = Vec::new();
        let mut compared = 0;
        while let Some((record_key, bytes)) = scan.advance(may_block)?
            && equal.len() < most
        {
            compared += 1;
            if compared > COMPARED_AT_ONCE {
                blocking::check(may_block)?;
            }
            if let Record::Alone { value: other, .. } = Record::read(record_key, bytes)?
                && self.identity.is_equal(value, other)?
            {
                equal.push(record_key.to_vec());
            }
        }
        Ok(equal)
    }

    /// Makes a change of the values of a key that is locked part of a batch. Returns the number of
    /// records by which they become more.
    fn change(
        &self,
        batch: &mut Batch,
        key: &[u8],
        group: &KeyValues,
        change: Change<Vec<u8>>,
    ) -> Result<i64, Error> {
        match change {
            Change::Keep | Change::Abort | Change::Later => Ok(0),
            Change::Remove => remove_all(batch, key, group),
            Change::Put(values) if group.is_shared() => {
                let removed = remove_all(batch, key, group)?;
                let mut adding = Adding::new(&self.identity);
                Ok(removed + adding.push_all(batch, key, split_values(&values))?)
            }
            Change::Put(values) => self.replace(batch, key, group, &values),
        }
    }

    /// Replaces the values of a key. Values that stay in the same order keep their records, so the
    /// cost is that of the removed and added values, where values are taken out or follow at the
    /// end.
    fn replace(
        &self,
        batch: &mut Batch,
        key: &[u8],
        group: &KeyValues,
        values: &[u8],
    ) -> Result<i64, Error> {
        let mut old = group.values().enumerate();
        let (mut removed, mut new) = (Vec::new(), Vec::new());
        for value in split_values(values) {
            let value = value?;
            let mut is_old = false;
            if new.is_empty() {
                for (index, other) in old.by_ref() {
                    is_old = other == value;
                    if is_old {
                        break;
                    }
                    removed.push(index);
                }
            }
            if !is_old {
                new.push(value);
            }
        }
        removed.extend(old.map(|(index, _)| index));
        let is_most = removed.len() > FEW && removed.len() == group.len();
        if is_most {
            remove_all(batch, key, group)?;
        } else {
            removed
                .iter()
                .try_for_each(|index| batch.delete(group.record_key(*index)))?;
        }
        let mut adding = Adding::new(&self.identity);
        let added = adding.push_all(batch, key, new.into_iter().map(Ok))?;
        Ok(added - removed.len() as i64)
    }

    /// Removes a value from those of a key that are one record. Returns the number of records by
    /// which they become more, and the number of values that were removed.
    fn remove_shared(
        &self,
        batch: &mut Batch,
        key: &[u8],
        values: &[u8],
        unwanted: &[u8],
    ) -> Result<(i64, usize), Error> {
        let (mut rest, mut removed) = (Vec::new(), 0);
        for value in split_values(values) {
            let value = value?;
            if self.identity.is_equal(value, unwanted)? {
                removed += 1;
            } else {
                rest.push(value);
            }
        }
        if removed == 0 {
            return Ok((0, 0));
        }
        batch.delete(key)?;
        let mut adding = Adding::new(&self.identity);
        let added = adding.push_all(batch, key, rest.into_iter().map(Ok))?;
        Ok((added - 1, removed))
    }

    /// Refuses to write to a store whose records expire: the records of a key would have to expire
    /// as one.
    fn check_lifetime(&self) -> Result<(), Error> {
        match self.atomic.store().lifetimes() {
            None => Ok(()),
            Some(_) => Err(Error::Refused(
                "the records of the store expire, and values of a bag do not".into(),
            )),
        }
    }

    /// Writes the decided changes of keys while they are locked.
    fn commit(
        &self,
        may_block: Option<MayBlock>,
        mut batch: Batch,
        added: i64,
        keys: &[&[u8]],
    ) -> Result<(), Error> {
        self.check_lifetime()?;
        batch.set_count_change(CountChange::By(added));
        let ends: Vec<_> = keys.iter().map(|key| end_of(key)).collect();
        let bounds = keys.iter().copied().chain(ends.iter().map(Vec::as_slice));
        let bounds: Vec<_> = bounds.collect();
        self.atomic.write(may_block, &batch, &bounds)
    }

    /// Returns the key at an end, with its values.
    fn end(
        &self,
        may_block: Option<MayBlock>,
        end: End,
    ) -> Result<Option<(Vec<u8>, KeyValues)>, Error> {
        let Some((record_key, bytes)) = self.atomic.end(may_block, end)? else {
            return Ok(None);
        };
        let key = Record::read(&record_key, &bytes)?.key().to_vec();
        let group = self.group(may_block, &key)?;
        Ok(Some((key, group)))
    }
}

/// Returns the key and the value of a record that a [`BagStore`] has written for one value of a
/// key. `None` if the record is another one. Of a store of another kind, a record that looks like
/// that is unlikely.
#[must_use]
pub fn one_of_several<'a>(key: &'a [u8], value: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    match Record::read(key, value) {
        Ok(Record::Alone { key, value, .. }) => Some((key, value)),
        Ok(Record::Shared { .. }) | Err(_) => None,
    }
}

/// Returns the key and the values of a record that a [`BagStore`] has written.
///
/// # Errors
/// [`Error::Corrupt`] if it has not.
pub fn values_of_record<'a>(
    key: &'a [u8],
    bytes: &'a [u8],
) -> Result<(&'a [u8], Vec<&'a [u8]>), Error> {
    match Record::read(key, bytes)? {
        Record::Alone { key, value, .. } => Ok((key, vec![value])),
        Record::Shared { key, values } => {
            let values: Result<_, _> = split_values(values).collect();
            Ok((key, values?))
        }
    }
}

/// Removes all values of a key. Returns the number of records by which they become more.
fn remove_all(batch: &mut Batch, key: &[u8], group: &KeyValues) -> Result<i64, Error> {
    let records = if group.is_shared() { 1 } else { group.len() };
    if records <= FEW {
        (0..records).try_for_each(|index| batch.delete(group.record_key(index)))?;
    } else {
        with_records_of(key, |range| batch.delete_range(range))?;
    }
    Ok(-(records as i64))
}

/// The records of values that are added, with the buffers that takes.
struct Adding<'a> {
    identity: &'a Identity,
    record: Vec<u8>,
}

impl<'a> Adding<'a> {
    fn new(identity: &'a Identity) -> Self {
        Adding {
            identity,
            record: Vec::new(),
        }
    }

    fn push(
        &mut self,
        batch: &mut Batch,
        key: &[u8],
        hash: u64,
        value: &[u8],
    ) -> Result<(), Error> {
        record_value(value, &mut self.record)?;
        batch.put_numbered(&mut record_key(key, hash), &self.record)
    }

    /// Adds values behind those that the key has. Returns their number.
    fn push_all<'v>(
        &mut self,
        batch: &mut Batch,
        key: &[u8],
        values: impl Iterator<Item = Result<&'v [u8], Error>>,
    ) -> Result<i64, Error> {
        let mut count = 0;
        for value in values {
            let value = value?;
            let hash = self.identity.hash(value)?;
            self.push(batch, key, hash, value)?;
            count += 1;
        }
        Ok(count)
    }
}

/// Tells which of the values that a key is to get are new, where equal ones are kept once.
struct NewValues<'a> {
    store: &'a BagStore,
    key: &'a [u8],
    rule: AddRule,
    /// Values that were met, by their hashes.
    seen: HashMap<u64, Vec<Vec<u8>>>,
    /// `true` if all values of the key are among them.
    has_seen_all: bool,
}

impl<'a> NewValues<'a> {
    fn of(store: &'a BagStore, key: &'a [u8], rule: AddRule) -> Self {
        NewValues {
            store,
            key,
            rule,
            seen: HashMap::new(),
            has_seen_all: false,
        }
    }

    /// Says that the key has these values, and no others.
    fn follow<'v>(
        &mut self,
        values: impl Iterator<Item = Result<&'v [u8], Error>>,
    ) -> Result<(), Error> {
        self.has_seen_all = true;
        if self.rule.distinct {
            for value in values {
                let value = value?;
                let hash = self.store.identity.hash(value)?;
                self.seen.entry(hash).or_default().push(value.to_vec());
            }
        }
        Ok(())
    }

    /// Returns `true` if a value is to be added. It counts as met then.
    fn is_new(
        &mut self,
        may_block: Option<MayBlock>,
        value: &[u8],
        hash: u64,
    ) -> Result<bool, Error> {
        if !self.rule.distinct {
            return Ok(true);
        }
        let seen = self.seen.entry(hash).or_default();
        for other in &*seen {
            if self.store.identity.is_equal(value, other)? {
                return Ok(false);
            }
        }
        if !self.has_seen_all
            && !self
                .store
                .equal(may_block, self.key, value, hash, 1)?
                .is_empty()
        {
            return Ok(false);
        }
        seen.push(value.to_vec());
        Ok(true)
    }
}

impl Store for BagStore {
    fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, ats_store::Error> {
        Ok(lend(
            &self.read(may_block, KeyValues::default(), key)?,
            read,
        )?)
    }

    fn update(
        &self,
        may_block: Option<MayBlock>,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, ats_store::Error> {
        let _locked = self.atomic.lock(may_block, keys)?;
        let (mut batch, mut added) = (Batch::new(), 0);
        let (mut values, mut later) = (Vec::new(), Vec::new());
        for (index, key) in keys.iter().enumerate() {
            let group = self.group(may_block, key)?;
            group.write(&mut values)?;
            match plan.decide(index, (!group.is_empty()).then_some(&values[..])) {
                Change::Abort => return Ok(false),
                Change::Later => later.push((index, group)),
                change => added += self.change(&mut batch, key, &group, change)?,
            }
        }
        for (index, group) in later {
            group.write(&mut values)?;
            let change = plan.build(index, (!group.is_empty()).then_some(&values[..]));
            if matches!(change, Change::Abort) {
                return Ok(false);
            }
            added += self.change(&mut batch, keys[index], &group, change)?;
        }
        self.commit(may_block, batch, added, keys)?;
        Ok(true)
    }

    fn update_end(
        &self,
        may_block: Option<MayBlock>,
        end: End,
        decide: &mut DecideEnd<'_>,
    ) -> Result<(), ats_store::Error> {
        loop {
            let Some((key, _)) = self.end(may_block, end)? else {
                let _nothing_to_change = decide(None);
                return Ok(());
            };
            let _locked = self.atomic.lock(may_block, &[&key])?;
            let _claimed = match end {
                End::First => self.atomic.claim(may_block, end, &key)?,
                End::Last => self.atomic.claim(may_block, end, &end_of(&key))?,
            };
            // Another writer may have changed the end of the table before the claim. None changes
            // it from here on.
            let Some((same, group)) = self.end(may_block, end)?.filter(|(found, _)| *found == key)
            else {
                continue;
            };
            let (mut batch, mut values) = (Batch::new(), Vec::new());
            group.write(&mut values)?;
            let change = decide(Some((&same, &values)));
            let added = self.change(&mut batch, &key, &group, change)?;
            return Ok(self.commit(may_block, batch, added, &[&key])?);
        }
    }

    fn scan(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), ats_store::Error> {
        let snapshot = self.atomic.store().snapshot();
        Ok(values::scan(
            may_block, &snapshot, key_range, direction, visit,
        )?)
    }

    /// Returns the number of keys. O(n).
    fn len(&self, may_block: Option<MayBlock>) -> Result<usize, ats_store::Error> {
        self.sum(may_block, &|_| 1)
    }

    fn sum(
        &self,
        may_block: Option<MayBlock>,
        weigh: &dyn Fn(&[u8]) -> usize,
    ) -> Result<usize, ats_store::Error> {
        self.freeze().sum(may_block, weigh)
    }

    fn take_all(&self, may_block: Option<MayBlock>) -> Result<Box<dyn Store>, ats_store::Error> {
        Ok(self.atomic.take_snapshot(may_block)?.into_bag_store())
    }

    fn bytes(&self) -> usize {
        self.atomic.bytes()
    }

    fn most_bytes(&self) -> usize {
        MAX_BYTES
    }

    fn bags(&self) -> Option<&dyn Bags> {
        Some(self)
    }
}

fn lend(group: &KeyValues, read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
    if group.is_empty() {
        return Ok(false);
    }
    let mut values = Vec::new();
    group.write(&mut values)?;
    read(&values);
    Ok(true)
}

impl Bags for BagStore {
    fn add(
        &self,
        may_block: Option<MayBlock>,
        values: &[(&[u8], &[u8])],
        rule: AddRule,
    ) -> Result<bool, ats_store::Error> {
        let groups: Vec<_> = values.chunk_by(|one, other| one.0 == other.0).collect();
        let keys: Vec<_> = groups.iter().map(|group| group[0].0).collect();
        // Values are hashed before the keys are locked.
        let hashes: Result<Vec<_>, Error> = values
            .iter()
            .map(|(_, value)| self.identity.hash(value))
            .collect();
        let mut hashes = &hashes?[..];
        let _locked = self.atomic.lock(may_block, &keys)?;
        let (mut batch, mut added) = (Batch::new(), 0);
        let mut adding = Adding::new(&self.identity);
        for (key, group) in keys.iter().zip(groups) {
            let (of_group, rest) = hashes.split_at(group.len());
            hashes = rest;
            if rule.only_to_new_keys && self.has_values(may_block, key)? {
                return Ok(false);
            }
            let mut new = NewValues::of(self, key, rule);
            if let Some(values) = self.find_shared(may_block, key)? {
                added += self.split_record(&mut batch, key, &values)?;
                new.follow(split_values(&values))?;
            } else if group.len() > 1 && rule.distinct && !self.has_values(may_block, key)? {
                new.has_seen_all = true;
            }
            for ((_, value), hash) in group.iter().zip(of_group) {
                if new.is_new(may_block, value, *hash)? {
                    adding.push(&mut batch, key, *hash, value)?;
                    added += 1;
                }
            }
        }
        self.commit(may_block, batch, added, &keys)?;
        Ok(true)
    }

    fn remove(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        value: &[u8],
        most: usize,
    ) -> Result<Option<usize>, ats_store::Error> {
        let hash = self.identity.hash(value)?;
        let _locked = self.atomic.lock(may_block, &[key])?;
        let mut batch = Batch::new();
        let (added, removed) = match self.find_shared(may_block, key)? {
            Some(values) => self.remove_shared(&mut batch, key, &values, value)?,
            None => {
                let equal = self.equal(may_block, key, value, hash, most.saturating_add(1))?;
                for record_key in &equal {
                    batch.delete(record_key)?;
                }
                (-(equal.len() as i64), equal.len())
            }
        };
        if removed > most {
            return Ok(None);
        }
        self.commit(may_block, batch, added, &[key])?;
        Ok(Some(removed))
    }

    fn values(&self, may_block: Option<MayBlock>) -> Result<usize, ats_store::Error> {
        if self.has_shared() {
            self.sum(may_block, &|values| split_values(values).count())
        } else {
            self.atomic.len(may_block)
        }
    }
}

/// The view of a snapshot in which a key has all its values.
struct BagView(Snapshot);

impl Snapshot {
    /// Returns the snapshot of a [`BagStore`], as a store that nothing changes.
    #[must_use]
    pub fn into_bag_store(self) -> Box<dyn Store> {
        Box::new(SnapshotStore(BagView(self)))
    }
}

impl SnapshotView for BagView {
    fn snapshot(&self) -> &Snapshot {
        &self.0
    }

    fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        let group = KeyValues::default().read(may_block, key, |range| {
            self.0.scan_lending(range, Direction::Up)
        })?;
        lend(&group, read)
    }

    fn scan(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        values::scan(may_block, &self.0, key_range, direction, visit)
    }
}
