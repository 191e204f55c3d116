//! A map of records that several threads change at a time, as a store.
//!
//! The map finds and changes one key at a time. Some calls need more than one key as of one moment:
//! those for the first or last record, and for the totals. They take a [lock with reader
//! groups](crate::reader_groups) as its writer. Writers of keys take it as its readers, so they do
//! not exclude each other. So each write pays two atomic changes of a line that only the threads of
//! its group share, with any map. Readers pay nothing.
//!
//! # Invariants
//! - SHARED_STORE-1. A record is in the map from the moment a writer puts it there until a writer
//!   takes it out. Both happen in [`SharedMap::change`], which one thread at a time executes for a
//!   key.
//! - SHARED_STORE-2. A record is retired only after it was taken out of the map, and by one thread:
//!   the writer that has taken it out, or the batch to which it belonged. So a record that a thread
//!   finds lives as long as the guard that the thread had before.
//! - SHARED_STORE-3. A writer makes records visible and counts them during one turn, in which it
//!   holds the lock as a reader. So while the lock is held to write, the counters agree with the
//!   records that readers see.
//! - SHARED_STORE-4. The lock of the store is taken before those of the map.

use super::shared_map::{Exchange, SharedMap};
use crate::reader_groups::ReaderGroupLock;
use ats_mem::batch::{HeldKeyWait, KeyStep, Stepwise, Trip};
use ats_mem::read_points::RemovedAt;
use ats_mem::record::{self, Record, RecordBox, Release, Weight};
use ats_mem::{Busy, Change, Direction, End, NoSuchKey, Provided, Records, Totals, Walk, WalkFrom};
use ats_store::successor;
use ats_sync::model::RANGE_PIECE as PIECE;
use ats_sync::{Guard, ShardedCounter, pin};
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use std::ptr;

/// The number of records that a walk asks for first. It asks for twice as many each time, up to
/// [`PIECE`]. The first number is two, since often one record is wanted, and the first one found
/// may be an uncommitted one of a batch.
const STEP: usize = 2;

/// A store on a map that threads share: see the documentation of [the crate](crate).
pub struct SharedStore<R: Release, M: SharedMap<R>> {
    map: M,
    turns: ReaderGroupLock<()>,
    /// The number of objects that readers see (SHARED_STORE-3).
    objects: ShardedCounter,
    bytes: ShardedCounter,
    records: PhantomData<R>,
}

impl<R: Release, M: SharedMap<R>> SharedStore<R, M> {
    /// Makes an empty store.
    pub fn new() -> Self {
        SharedStore {
            map: M::default(),
            turns: ReaderGroupLock::new(()),
            objects: ShardedCounter::new(),
            bytes: ShardedCounter::new(),
            records: PhantomData,
        }
    }

    /// Returns the map, for functions that only one kind of map has.
    pub(super) fn map(&self) -> &M {
        &self.map
    }

    fn count(&self, more: Weight) {
        for (counter, more) in [(&self.objects, more.objects), (&self.bytes, more.bytes)] {
            if more != 0 {
                counter.add(more);
            }
        }
    }

    fn weight(&self) -> Weight {
        Weight {
            objects: self.objects.sum(),
            bytes: self.bytes.sum(),
        }
    }

    fn totals_of(&self, weight: Weight, guard: &Guard) -> Totals {
        let records = usize::try_from(weight.objects).unwrap_or(0);
        let counters = self.objects.bytes() + self.bytes.bytes();
        let own = size_of::<Self>() + self.turns.bytes() + counters;
        Totals {
            objects: weight.objects,
            bytes: weight.bytes,
            structure: (own + self.map.bytes(records, guard)) as i64,
        }
    }

    /// Changes a key as `decide` says, or fails with [`Held`] before it decides if a batch holds
    /// the key. Returns the record to retire. The caller holds the lock of the store.
    fn try_change<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> KeyStep<R>,
    ) -> Result<Option<&'g Record<R>>, Held> {
        let mut outcome = Ok(None);
        self.map.change(key, guard, &mut |here| {
            if here.is_some_and(Record::is_held) {
                outcome = Err(Held);
                return Exchange::Keep;
            }
            match (decide(here), here) {
                (KeyStep::Keep, _) | (KeyStep::Remove, None) => Exchange::Keep,
                (KeyStep::Put(record), _) => {
                    self.count(Weight::of_put(&record, here));
                    outcome = Ok(here);
                    Exchange::Put(leak(record, guard))
                }
                // The batch counts the record and retires the old one once it has committed.
                (KeyStep::Install(record), _) => Exchange::Put(leak(record, guard)),
                (KeyStep::Remove, Some(record)) => {
                    self.count(Weight::NONE - R::weight(record));
                    outcome = Ok(here);
                    Exchange::Take
                }
            }
        });
        outcome
    }

    /// Returns the record at an end, even if a batch holds it.
    fn outermost<'g>(&'g self, end: End, guard: &'g Guard) -> Option<&'g Record<R>> {
        let mut found = Vec::new();
        match end {
            End::First => self.map.gather(Bound::Unbounded, 1, guard, &mut found),
            End::Last => self.map.gather_down(None, 1, guard, &mut found),
        }
        found.pop()
    }
}

/// The error that a batch holds the key.
struct Held;

/// Turns the box of a record into a reference: from now on the store owns the record.
fn leak<R: Release>(record: RecordBox<R>, _guard: &Guard) -> &Record<R> {
    // SAFETY: a record of the store is freed by retiring only (SHARED_STORE-2), hence after the
    // guard.
    unsafe { &*record.into_raw() }
}

/// Retires a record that this thread has just taken out. No lock is held.
fn retire<R: Release>(gone: Option<&Record<R>>, guard: &Guard) {
    if let Some(record) = gone {
        // SAFETY: this thread has just taken it out of the map (SHARED_STORE-2).
        unsafe { record::retire(ptr::from_ref(record).cast_mut(), guard) };
    }
}

impl<R: Release, M: SharedMap<R>> Stepwise<R> for SharedStore<R, M> {
    fn step<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        _trip: &mut Trip,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> KeyStep<R>,
    ) -> Result<(), Busy> {
        let mut wait = HeldKeyWait::new();
        loop {
            let turn = self.turns.read();
            let changed = self.try_change(key, guard, decide);
            drop(turn);
            match changed {
                Ok(gone) => {
                    retire(gone, guard);
                    return Ok(());
                }
                Err(Held) => wait.wait()?,
            }
        }
    }

    fn commit(
        &self,
        _key: &[u8],
        (weight, _): (Weight, u32),
        _guard: &Guard,
        commit: &mut dyn FnMut(),
    ) {
        let _turn = self.turns.read();
        commit();
        self.count(weight);
    }

    fn exchange(&self, installed: &Record<R>, other: Option<&Record<R>>, guard: &Guard) {
        let _turn = self.turns.read();
        self.map.change(installed.key(), guard, &mut |here| {
            debug_assert!(here.is_some_and(|here| ptr::eq(here, installed)));
            match other {
                // SAFETY: the record was given to the store, where it lives at least as long as a
                // guard made before (SHARED_STORE-2).
                Some(other) => Exchange::Put(unsafe { &*ptr::from_ref(other) }),
                None => Exchange::Take,
            }
        });
    }

    fn remove_held(
        &self,
        hold: &Record<R>,
        before: Option<&Record<R>>,
        at: RemovedAt,
        guard: &Guard,
    ) {
        let turn = self.turns.read();
        self.count(before.map_or(Weight::NONE, |before| at.weight_of(before)));
        self.map.change(hold.key(), guard, &mut |here| {
            debug_assert!(here.is_some_and(|here| ptr::eq(here, hold)));
            Exchange::Take
        });
        drop(turn);
        // `before` was replaced by the hold, which has just been taken out (BATCH-3), so no slot
        // leads to it.
        retire(before, guard);
    }
}

impl<R: Release, M: SharedMap<R>> Records<R> for SharedStore<R, M> {
    fn is_ordered(&self) -> bool {
        true
    }

    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        self.map.get(key, guard)?.resolve(guard)
    }

    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        let mut wait = HeldKeyWait::new();
        loop {
            let alone = self.turns.write();
            let Some(outermost) = self.outermost(end, guard) else {
                decide(None);
                return Ok(());
            };
            let changed = self.try_change(outermost.key(), guard, &mut |here| {
                KeyStep::of(decide(here))
            });
            drop(alone);
            match changed {
                Ok(gone) => {
                    retire(gone, guard);
                    return Ok(());
                }
                Err(Held) => wait.wait()?,
            }
        }
    }

    /// Parts without records are never large here, so there is no need to pause in them.
    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        _pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, NoSuchKey> {
        let above;
        let mut from = match (walk.direction, walk.from) {
            (_, WalkFrom::Start | WalkFrom::Position(_)) => Bound::Unbounded,
            (Direction::Up, WalkFrom::Key(key)) => Bound::Included(key),
            (Direction::Down, WalkFrom::Key(key)) => {
                above = successor(key);
                Bound::Excluded(&above[..])
            }
            (_, WalkFrom::Known(key) | WalkFrom::Behind(key)) => Bound::Excluded(key),
        };
        let (mut most, mut found) = (STEP, Vec::new());
        loop {
            match (walk.direction, from) {
                (Direction::Up, from) => self.map.gather(from, most, guard, &mut found),
                (Direction::Down, Bound::Unbounded) => {
                    self.map.gather_down(None, most, guard, &mut found);
                }
                (Direction::Down, Bound::Included(below) | Bound::Excluded(below)) => {
                    self.map.gather_down(Some(below), most, guard, &mut found);
                }
            }
            let mut visible = found.iter().filter_map(|record| record.resolve(guard));
            if visible.try_for_each(&mut *visit).is_break() {
                return Ok(None);
            }
            match found.last() {
                Some(last) if found.len() == most => from = Bound::Excluded(last.key()),
                _ => return Ok(None),
            }
            found.clear();
            most = (2 * most).min(PIECE);
        }
    }

    fn totals(&self) -> Result<Totals, Busy> {
        let guard = pin();
        let alone = self.turns.write();
        let weight = self.weight();
        drop(alone);
        Ok(self.totals_of(weight, &guard))
    }

    fn estimate(&self) -> Totals {
        let weight = self.weight();
        self.totals_of(weight, &pin())
    }

    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        self.map.force_adaptation(splits, joins);
    }
}

impl<R: Release, M: SharedMap<R>> Default for SharedStore<R, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Release, M: SharedMap<R>> Drop for SharedStore<R, M> {
    fn drop(&mut self) {
        for record in self.map.all() {
            // SAFETY: the exclusive borrow shows that no reference to it is left, since those that
            // were handed out are borrowed from the store. The map does not look at its records
            // again.
            drop(unsafe { RecordBox::from_raw(record.as_ptr()) });
        }
    }
}

impl<R: Release, M: SharedMap<R>> std::fmt::Debug for SharedStore<R, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedStore")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
