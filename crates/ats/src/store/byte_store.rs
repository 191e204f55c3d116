//! Tables on a [`Store`] of bytes: records made of bytes when they are read, and bytes of them when
//! written.
//!
//! The layers above work on records as the memory stores keep them. Here the value of a record is
//! bytes that mean the same in every process: the objects of the key, oldest first, each behind its
//! length, in the form that a [`codec`](crate::store::codec) writes.
//!
//! A reader gets a record of its own, which lives as long as its guard. So a table on such a store
//! answers as one in memory does, at the price of a copy for each record that is read. Counters do
//! not change in place. The objects of a key of a bag are written anew with each change, unless the
//! store [changes values of a key alone](Bags).

use crate::error::Error;
use crate::lookup_result::LookupResult;
use crate::store::codec::{CORRUPT, Codec, least_bytes, objects, write_object};
use crate::unpack::UnpackBuffer;
use crate::value::{Rec, Values, record};
use ats_mem::{BatchPlan, NoSuchKey, RecordBox, Skipped, When};
use ats_store::{
    Bags, Change, Direction, End, KeyRange, MayBlock, ScanPosition, SlotAnswer, Store, StoreHandle,
    successor,
};
use ats_sync::Guard;
use ats_term::image::{Built, Host, Object, ObjectListBuilder};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The records of a table that a store keeps as bytes.
pub(crate) struct ByteStore<H: Host> {
    store: Box<dyn StoreHandle>,
    /// The capability to block, if the calling thread has it.
    may_block: fn() -> Option<MayBlock>,
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
    /// The keys that were removed since.
    removed: BTreeSet<Vec<u8>>,
}

/// The step that a batch takes for a key.
#[derive(Clone, Copy)]
enum Step {
    Decide,
    Build,
}

/// Says what becomes of the key with this index, of which it gets the record.
type DecideStep<'a, H> =
    dyn FnMut(usize, Step, Option<RecordBox<Values<H>>>) -> Change<RecordBox<Values<H>>> + 'a;
/// Called with each record.
type Visit<'a, 'g, H> = dyn FnMut(&'g Rec<H>) -> ControlFlow<()> + 'a;

impl<H: Host> ByteStore<H> {
    pub(crate) fn new(
        store: Box<dyn StoreHandle>,
        may_block: fn() -> Option<MayBlock>,
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

    /// The capability to block, if the calling thread has it.
    pub(crate) fn may_block(&self) -> Option<MayBlock> {
        (self.may_block)()
    }

    /// Takes all records out.
    pub(crate) fn take_all(&self) -> Result<Self, Error> {
        Ok(ByteStore {
            store: Box::new(self.store().take_all(self.may_block())?),
            may_block: self.may_block,
            codec: Arc::clone(&self.codec),
            keys: self.keys,
            fixation: Mutex::default(),
        })
    }

    /// Shows keys and values as the store has them.
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

    /// A bound that divides the records of a range.
    pub(crate) fn median_bytes(&self, key_range: KeyRange<'_>) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.store().median(self.may_block(), key_range)?)
    }

    fn fixation(&self) -> MutexGuard<'_, Fixation> {
        // Complete at every moment, so a panic elsewhere does not spoil it.
        self.fixation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record that is made of these bytes.
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

    /// The ability of the store to change objects of a bag alone, if it has it.
    pub(crate) fn bags(&self) -> Option<&dyn Bags> {
        self.keys.is_bag.then(|| self.store().bags()).flatten()
    }

    /// The bytes of an object.
    pub(crate) fn object_bytes(&self, object: Object<'_, H>) -> Result<Vec<u8>, Error> {
        // What is too long is found out before it is copied.
        let (len, limit) = (least_bytes(object), self.store().most_bytes());
        if len > limit {
            return Err(ats_store::Error::TooLong { len, limit }.into());
        }
        let mut bytes = Vec::new();
        self.codec.write(object, &mut bytes)?;
        Ok(bytes)
    }

    /// Removes the objects of a key that are equal to one with these bytes, in a store with
    /// [`Bags`], unless they are more than `most`: then it returns `false`.
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

    /// The bytes of the objects of a record.
    fn value(&self, record: &Rec<H>) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        let mut written = Ok(());
        let limit = self.store().most_bytes();
        let _all = LookupResult::new(record).each(&mut UnpackBuffer::new(), |object| {
            // What is too long is found out before it is copied.
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
            Change::Put(record) => Change::Put(self.value(&record)?),
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

    pub(crate) fn get<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Rec<H>>, Error> {
        let mut found = None;
        let mut read = |value: &[u8]| found = Some(self.record(key, value));
        self.store().get(self.may_block(), key, &mut read)?;
        Ok(found.transpose()?.map(|record| record.lend(guard)))
    }

    pub(crate) fn update<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut (dyn FnMut(Option<&'g Rec<H>>) -> Change<RecordBox<Values<H>>> + '_),
    ) -> Result<(), Error> {
        let mut decide =
            |_, _, current: Option<RecordBox<_>>| decide(current.map(|record| record.lend(guard)));
        self.change(&[key], &mut decide).map(|_| ())
    }

    /// The store itself says how long it holds more than the key.
    pub(crate) fn update_alone<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut (dyn FnMut(Option<&'g Rec<H>>) -> Change<RecordBox<Values<H>>> + '_),
    ) -> Result<(), Error> {
        self.update(key, guard, decide)
    }

    pub(crate) fn update_batch(
        &self,
        keys: &[&[u8]],
        _guard: &Guard,
        plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        self.update_long_batch(keys, plan)
    }

    pub(crate) fn update_long_batch(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        self.change(keys, &mut |index, step, current| match step {
            Step::Decide => plan.decide(index, current.as_deref()),
            Step::Build => plan.build(index, current.as_deref()),
        })
    }

    pub(crate) fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut (dyn FnMut(Option<&'g Rec<H>>) -> Change<RecordBox<Values<H>>> + '_),
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

    /// Visits the records of a range until `visit` breaks.
    fn walk<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<(), Error> {
        let mut failed = Ok(());
        let mut visit = |key: &[u8], value: &[u8]| match self.record(key, value) {
            Ok(record) => visit(record.lend(guard)),
            Err(error) => {
                failed = Err(error);
                ControlFlow::Break(())
            }
        };
        self.store()
            .scan(self.may_block(), key_range, direction, &mut visit)?;
        failed
    }

    fn first_of<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        guard: &'g Guard,
    ) -> Result<Option<&'g Rec<H>>, Error> {
        let mut first = None;
        self.walk(key_range, direction, guard, &mut |record| {
            first = Some(record);
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    pub(crate) fn first<'g>(&'g self, guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        self.first_of(KeyRange::default(), Direction::Up, guard)
    }

    pub(crate) fn last<'g>(&'g self, guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        match self.keys.ordered {
            true => self.first_of(KeyRange::default(), Direction::Down, guard),
            false => self.first(guard),
        }
    }

    /// Checks that a walk may go on from this key.
    fn check_step(&self, key: &[u8]) -> Result<Result<(), NoSuchKey>, Error> {
        let is_known = self.keys.ordered
            || self.store().get(self.may_block(), key, &mut |_| {})?
            || self.fixation().removed.contains(key);
        Ok(match is_known {
            true => Ok(()),
            false => Err(NoSuchKey),
        })
    }

    pub(crate) fn next<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Result<Option<&'g Rec<H>>, NoSuchKey>, Error> {
        Ok(match self.check_step(key)? {
            Ok(()) => Ok(self.first_of(behind(&successor(key)), Direction::Up, guard)?),
            Err(NoSuchKey) => Err(NoSuchKey),
        })
    }

    pub(crate) fn prev<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Result<Option<&'g Rec<H>>, NoSuchKey>, Error> {
        match self.keys.ordered {
            true => Ok(Ok(self.first_of(
                below(Some(key)),
                Direction::Down,
                guard,
            )?)),
            false => self.next(key, guard),
        }
    }

    pub(crate) fn scan<'g>(
        &'g self,
        after: Option<&[u8]>,
        _when: When,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<Result<(), NoSuchKey>, Error> {
        let from = match after {
            None => Vec::new(),
            Some(key) => match self.check_step(key)? {
                Ok(()) => successor(key),
                Err(NoSuchKey) => return Ok(Err(NoSuchKey)),
            },
        };
        self.walk(behind(&from), Direction::Up, guard, visit)
            .map(Ok)
    }

    pub(crate) fn scan_from<'g>(
        &'g self,
        from: &[u8],
        _when: When,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<(), Error> {
        self.walk(behind(from), Direction::Up, guard, visit)
    }

    pub(crate) fn scan_down<'g>(
        &'g self,
        high: Option<&[u8]>,
        _when: When,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<(), Error> {
        self.walk(below(high), Direction::Down, guard, visit)
    }

    /// Never pauses, since it visits a record at every step.
    pub(crate) fn resume_scan<'g>(
        &'g self,
        from: ScanPosition<'_>,
        _when: When,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
        _pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, Error> {
        let from = match from {
            ScanPosition::Behind(key) => successor(key),
            ScanPosition::Start | ScanPosition::At(_) => Vec::new(),
        };
        self.walk(behind(&from), Direction::Up, guard, visit)?;
        Ok(None)
    }

    /// O(records passed).
    pub(crate) fn skip<'g>(
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
                let weight = match self.keys.ordered && self.keys.is_bag {
                    true => objects(value).count(),
                    false => 1,
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

    /// A slot is the record at that place. O(index).
    pub(crate) fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Rec<H>),
    ) -> Result<SlotAnswer, Error> {
        let go_on = &mut || ControlFlow::Continue(());
        let skipped = self.skip(KeyRange::default(), Direction::Up, index, guard, go_on)?;
        Ok(skipped.slot(index, visit))
    }

    pub(crate) fn len(&self) -> Result<usize, Error> {
        Ok(self.store().len(self.may_block())?)
    }

    /// Number of objects. O(records) if a key can have several, and the store does not count them.
    pub(crate) fn objects(&self) -> Result<usize, Error> {
        match self.bags() {
            Some(bags) => Ok(bags.values(self.may_block())?),
            None if self.keys.is_bag => Ok(self
                .store()
                .sum(self.may_block(), &|value| objects(value).count())?),
            None => self.len(),
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.store().bytes()
    }

    pub(crate) fn fix(&self) {
        self.fixation().fixed = true;
    }

    pub(crate) fn unfix(&self) {
        *self.fixation() = Fixation::default();
    }
}

/// A batch, with the records that its decisions are about made of bytes.
struct Translating<'a, 'd, H: Host> {
    records: &'a ByteStore<H>,
    keys: &'a [&'a [u8]],
    decide: &'a mut DecideStep<'d, H>,
    /// The error that ended the batch, if it was not its plan.
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

fn behind(low: &[u8]) -> KeyRange<'_> {
    KeyRange {
        low: Some(low),
        high: None,
    }
}

fn below(high: Option<&[u8]>) -> KeyRange<'_> {
    KeyRange { low: None, high }
}
