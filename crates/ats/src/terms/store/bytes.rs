//! Tables on a [`Store`] of bytes: bytes are decoded to records when they are read, and records are
//! encoded when they are written.
//!
//! The layers above work on records in the form of the stores in memory. In a store of bytes, the
//! value of a record is bytes that mean the same in every process: the objects of the key, oldest
//! first, each preceded by its length, in the encoding of a [`codec`](crate::terms::store::codec).
//!
//! Each reader gets its own record, which lives as long as the reader's guard. So such a table
//! behaves like one in memory, at the price of a copy for each record that is read. Counters do not
//! change in place. Each change of a key of a bag writes all its objects, unless the store [changes
//! single objects](Bags).
//!
//! In a store whose records [expire](Expires), a new value begins with the lifetime that the record
//! brings in its [`Dating`].

mod transacting;

use super::records::{Decide, TableRecords, Visit, Walked};
use crate::terms::error::Error;
use crate::terms::lookup_result::LookupResult;
use crate::terms::note::Dating;
use crate::terms::store::codec::{CORRUPT, Codec, least_bytes, objects, write_object};
use crate::terms::store::limited::TimeLeft;
use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::{Rec, Values, record};
use ats_mem::read_points::Query;
use ats_mem::{BatchPlan, NoSuchKey, RecordBox, Skipped, Transaction, Walk};
use ats_store::{
    Bags, Change, Direction, End, Expires, KeyRange, Lifetime, MayBlock, Store, StoreHandle,
    WalkFrom, successor,
};
use ats_sync::Guard;
use ats_term::image::{Built, Host, Object, ObjectListBuilder};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transacting::Transacting;

/// The records of a table that a store keeps as bytes.
pub(crate) struct ByteStore<H: Host> {
    store: Box<dyn StoreHandle>,
    /// Returns the capability to block, if the calling thread has it.
    may_block: fn() -> bool,
    codec: Arc<dyn Codec<H>>,
    keys: Keys,
    fixation: Mutex<Fixation>,
}

/// The properties of the keys of a table.
#[derive(Clone, Copy)]
struct Keys {
    /// `true` if a walk may begin at any key.
    ordered: bool,
    /// `true` if a key can have several objects.
    is_bag: bool,
}

/// The keys that a walk of a table without order may remember.
#[derive(Default)]
struct Fixation {
    fixed: bool,
    /// The keys that were removed since the table was fixed.
    removed: BTreeSet<Vec<u8>>,
}

/// The step of a batch for a key.
#[derive(Clone, Copy)]
enum Step {
    Decide,
    Build,
}

/// The decision about the key with this index, which gets its record.
type DecideStep<'a, H> =
    dyn FnMut(usize, Step, Option<RecordBox<Values<H>>>) -> Change<RecordBox<Values<H>>> + 'a;

impl<H: Host> ByteStore<H> {
    pub(crate) fn new(
        store: Box<dyn StoreHandle>,
        may_block: fn() -> bool,
        codec: Arc<dyn Codec<H>>,
        ordered: bool,
        is_bag: bool,
    ) -> Self {
        ByteStore {
            store,
            may_block,
            codec,
            keys: Keys { ordered, is_bag },
            fixation: Mutex::default(),
        }
    }

    fn store(&self) -> &dyn Store {
        self.store.store()
    }

    /// Returns the capability to block, or an error if the calling thread does not have it.
    pub(crate) fn may_block(&self) -> Option<MayBlock> {
        (self.may_block)().then(MayBlock::here)
    }

    /// Moves all records to a new store.
    pub(crate) fn take_all(&self) -> Result<Self, Error> {
        Ok(ByteStore {
            store: Box::new(self.store().take_all(self.may_block())?),
            may_block: self.may_block,
            codec: Arc::clone(&self.codec),
            keys: self.keys,
            fixation: Mutex::default(),
        })
    }

    /// Visits keys and values in the form of the store.
    pub(crate) fn scan_bytes(
        &self,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut ats_store::store::Visit<'_>,
    ) -> Result<(), Error> {
        Ok(self
            .store()
            .scan(self.may_block(), key_range, direction, visit)?)
    }

    /// Returns `true` if records expire.
    pub(crate) fn expires(&self) -> bool {
        self.store().expires().is_some()
    }

    /// Returns the number of expired records that the store has removed since it was opened.
    pub(crate) fn expired(&self) -> u64 {
        self.store().expires().map_or(0, Expires::expired)
    }

    /// Returns the time that is left to the objects of a key; `None` if there are none.
    pub(crate) fn time_left(&self, key: &[u8]) -> Result<Option<TimeLeft>, Error> {
        let may_block = self.may_block();
        let left = match self.store().expires() {
            Some(expires) => expires.time_left(may_block, key)?,
            None if self.store().get(may_block, key, &mut |_| {})? => Some(Lifetime::Forever),
            None => None,
        };
        Ok(left.map(|left| match left {
            Lifetime::For(time) => TimeLeft::Time(time),
            _ => TimeLeft::Forever,
        }))
    }

    /// Sets the deadline of the objects of a key. Returns `true` if there are some.
    ///
    /// # Errors
    /// [`Error::NoTtl`] if objects of the store do not expire.
    pub(crate) fn touch(&self, key: &[u8], dating: Dating) -> Result<bool, Error> {
        let expires = self.store().expires().ok_or(Error::NoTtl)?;
        Ok(expires.set_lifetime(self.may_block(), key, dating.into())?)
    }

    /// Returns a bound that divides the records of a range.
    pub(crate) fn median_bytes(&self, key_range: KeyRange<'_>) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.store().median(self.may_block(), key_range)?)
    }

    fn fixation(&self) -> MutexGuard<'_, Fixation> {
        // The value is complete at every moment, so a panic elsewhere does not spoil it.
        self.fixation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decodes a record.
    fn record(&self, key: &[u8], value: &[u8]) -> Result<RecordBox<Values<H>>, Error> {
        let mut made = None;
        if self.keys.is_bag {
            let mut list = ObjectListBuilder::new();
            for object in objects(value) {
                self.codec.read(object?, &mut |built| list.push(built))?;
            }
            if !list.is_empty() {
                made = Some(record(key, list.take()));
            }
        } else if let Some(object) = objects(value).next() {
            let mut keep = |built: Built<'_, H>| made = Some(record(key, built));
            self.codec.read(object?, &mut keep)?;
        }
        made.ok_or(CORRUPT)
    }

    /// Returns the store's ability to change single objects of a bag, if it has it.
    pub(crate) fn bags(&self) -> Option<&dyn Bags> {
        self.keys.is_bag.then(|| self.store().bags()).flatten()
    }

    /// Encodes an object.
    pub(crate) fn object_bytes(&self, object: Object<'_, H>) -> Result<Vec<u8>, Error> {
        // The limit is checked before the object is copied.
        let (len, limit) = (least_bytes(object), self.store().most_bytes());
        if len > limit {
            return Err(ats_store::Error::TooLong { len, limit }.into());
        }
        let mut bytes = Vec::new();
        self.codec.write(object, &mut bytes)?;
        Ok(bytes)
    }

    /// Removes the objects of a key that equal the object with these bytes, in a store with
    /// [`Bags`]. Returns `false` and changes nothing if there are more than `most`.
    pub(crate) fn remove_equal(
        &self,
        bags: &dyn Bags,
        key: &[u8],
        object: &[u8],
        most: usize,
    ) -> Result<bool, Error> {
        let removed = bags.remove(self.may_block(), key, object, most)?;
        let mut fixation = self.fixation();
        if fixation.fixed
            && removed > Some(0)
            && !self.store().get(self.may_block(), key, &mut |_| {})?
        {
            fixation.removed.insert(key.to_vec());
        }
        Ok(removed.is_some())
    }

    /// Encodes the objects of a record.
    fn value(&self, record: &Rec<H>) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        let mut written = Ok(());
        let limit = self.store().most_bytes();
        let _all = LookupResult::new(record).each(&mut UnpackBuffer::new(), |object| {
            // The limit is checked before the object is copied.
            written = match value.len().saturating_add(least_bytes(object)) {
                len if len > limit => Err(ats_store::Error::TooLong { len, limit }.into()),
                _ => write_object(&*self.codec, object, &mut value),
            };
            match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        written.map(|()| value)
    }

    /// Translates a change for the store.
    fn translate(
        &self,
        key: &[u8],
        change: Change<RecordBox<Values<H>>>,
    ) -> Result<Change<Vec<u8>>, Error> {
        Ok(match change {
            Change::Put(record) => {
                let mut value = self.value(&record)?;
                if self.store().expires().is_some() {
                    let dating = Dating::of(&record).unwrap_or(Dating::Kept);
                    Lifetime::from(dating).put_before(&mut value);
                }
                Change::Put(value)
            }
            Change::Remove => {
                let mut fixation = self.fixation();
                if fixation.fixed {
                    fixation.removed.insert(key.to_vec());
                }
                Change::Remove
            }
            Change::Keep => Change::Keep,
            Change::Abort => Change::Abort,
            Change::Later => Change::Later,
        })
    }

    fn change(&self, keys: &[&[u8]], decide: &mut DecideStep<'_, H>) -> Result<bool, Error> {
        let mut translating = Translating {
            records: self,
            keys,
            decide,
            failed: Ok(()),
        };
        let done = self
            .store()
            .update(self.may_block(), keys, &mut translating)?;
        translating.failed.map(|()| done)
    }

    /// Returns `true` if a walk may continue from this key.
    fn knows(&self, key: &[u8]) -> Result<bool, Error> {
        if self.keys.ordered || self.store().get(self.may_block(), key, &mut |_| {})? {
            return Ok(true);
        }
        let fixation = self.fixation();
        // Nobody is told of a key that expires.
        Ok(fixation.removed.contains(key) || (fixation.fixed && self.expires()))
    }
}

impl<H: Host> TableRecords<H> for ByteStore<H> {
    fn is_ordered(&self) -> bool {
        self.keys.ordered
    }

    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        let mut found = None;
        let mut read = |value: &[u8]| found = Some(self.record(key, value));
        self.store().get(self.may_block(), key, &mut read)?;
        Ok(found.transpose()?.map(|record| record.lend(guard)))
    }

    /// Walks without pauses, since each step visits a record.
    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
        _pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Walked, Error> {
        if let WalkFrom::Known(key) = walk.from
            && !self.knows(key)?
        {
            return Ok(Err(NoSuchKey));
        }
        let direction = if self.keys.ordered {
            walk.direction
        } else {
            Direction::Up
        };
        let above;
        let (mut key_range, mut failed) = (KeyRange::default(), Ok(()));
        let (end, is_beyond) = match direction {
            Direction::Up => (&mut key_range.low, false),
            Direction::Down => (&mut key_range.high, true),
        };
        *end = match walk.from {
            WalkFrom::Start | WalkFrom::Position(_) => None,
            WalkFrom::Key(key) if !is_beyond => Some(key),
            WalkFrom::Known(key) | WalkFrom::Behind(key) if is_beyond => Some(key),
            WalkFrom::Key(key) | WalkFrom::Known(key) | WalkFrom::Behind(key) => {
                above = successor(key);
                Some(&above)
            }
        };
        let mut visit = |key: &[u8], value: &[u8]| match self.record(key, value) {
            Ok(record) => visit(record.lend(guard)),
            Err(error) => {
                failed = Err(error);
                ControlFlow::Break(())
            }
        };
        self.store()
            .scan(self.may_block(), key_range, direction, &mut visit)?;
        failed.map(|()| Ok(None))
    }

    fn update_by<'g>(
        &'g self,
        key: &[u8],
        _by: Option<Query>,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        let mut decide =
            |_, _, current: Option<RecordBox<_>>| decide(current.map(|record| record.lend(guard)));
        self.change(&[key], &mut decide).map(|_| ())
    }

    fn update_batch(
        &self,
        keys: &[&[u8]],
        _guard: Option<&Guard>,
        plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        self.change(keys, &mut |index, step, current| match step {
            Step::Decide => plan.decide(index, current.as_deref()),
            Step::Build => plan.build(index, current.as_deref()),
        })
    }

    fn transact(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn Transaction<Values<H>>,
    ) -> Result<bool, Error> {
        let may_block = self.may_block();
        let decode = |index: usize, value: &[u8]| self.record(keys[index], value);
        let encode = |index: usize, change| self.translate(keys[index], change);
        let mut plan = Transacting::new(plan, &decode, &encode, may_block.is_some());
        // A batch without keys is never asked for a change.
        if keys.is_empty() {
            return Ok(plan.decide_about_all());
        }
        let done = self.store().update(may_block, keys, &mut plan)?;
        plan.end(done)
    }

    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        let mut failed = Ok(());
        self.store()
            .update_end(self.may_block(), end, &mut |found| {
                let key = found.map_or(&[][..], |(key, _)| key);
                let current = found.map(|(key, value)| self.record(key, value));
                let change = current.transpose().and_then(|current| {
                    let change = decide(current.map(|record| record.lend(guard)));
                    self.translate(key, change)
                });
                change.unwrap_or_else(|error| {
                    failed = Err(error);
                    Change::Keep
                })
            })?;
        failed
    }

    /// Takes O(records) if a key can have several objects, and the store does not count them.
    fn objects(&self) -> Result<usize, Error> {
        let may_block = self.may_block();
        Ok(match self.bags() {
            Some(bags) => bags.values(may_block)?,
            None if self.keys.is_bag => self
                .store()
                .sum(may_block, &|value| objects(value).count())?,
            None => self.store().len(may_block)?,
        })
    }

    fn about_bytes(&self) -> usize {
        self.store().bytes()
    }

    /// Skips objects by reading the stored values. O(records passed).
    fn skip<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Skipped<'g, Values<H>>, Error> {
        let (mut skipped, mut ended) = (0, None);
        self.store()
            .scan(self.may_block(), key_range, direction, &mut |key, value| {
                let weight = if self.keys.ordered && self.keys.is_bag {
                    objects(value).count()
                } else {
                    1
                };
                let within = most - skipped;
                if within < weight {
                    let next = self.record(key, value);
                    ended = Some(next.map(|record| Skipped::At(record.lend(guard), within)));
                    return ControlFlow::Break(());
                }
                skipped += weight;
                if pause().is_continue() {
                    return ControlFlow::Continue(());
                }
                let bound = match direction {
                    Direction::Up => successor(key),
                    Direction::Down => key.to_vec(),
                };
                ended = Some(Ok(Skipped::Paused { skipped, bound }));
                ControlFlow::Break(())
            })?;
        ended.unwrap_or(Ok(Skipped::All(skipped)))
    }

    fn fix(&self) {
        self.fixation().fixed = true;
    }

    fn unfix(&self) {
        *self.fixation() = Fixation::default();
    }
}

/// A batch that decodes the records for its decisions.
struct Translating<'a, 'd, H: Host> {
    records: &'a ByteStore<H>,
    keys: &'a [&'a [u8]],
    decide: &'a mut DecideStep<'d, H>,
    /// The error that ended the batch, if the batch did not end by its plan.
    failed: Result<(), Error>,
}

impl<H: Host> Translating<'_, '_, H> {
    fn step(&mut self, index: usize, step: Step, current: Option<&[u8]>) -> Change<Vec<u8>> {
        let key = self.keys[index];
        let current = current.map(|value| self.records.record(key, value));
        let change = current.transpose().and_then(|current| {
            let change = (self.decide)(index, step, current);
            self.records.translate(key, change)
        });
        change.unwrap_or_else(|error| {
            self.failed = Err(error);
            Change::Abort
        })
    }
}

impl<H: Host> ats_store::BatchPlan<[u8], Vec<u8>> for Translating<'_, '_, H> {
    fn decide(&mut self, index: usize, current: Option<&[u8]>) -> Change<Vec<u8>> {
        self.step(index, Step::Decide, current)
    }

    fn build(&mut self, index: usize, current: Option<&[u8]>) -> Change<Vec<u8>> {
        self.step(index, Step::Build, current)
    }
}
