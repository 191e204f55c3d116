//! A map of records that several threads change at a time, as a store.
//!
//! The map knows how to find and to change one key. A call that needs more than one key as it is at
//! one moment (the first or the last record, the size) comes in alone: writers of keys hold a [lock
//! with reader groups](crate::reader_groups) as its readers, so they do not meet, and what needs
//! all holds it as its writer. So each write pays two atomic changes of a line that only the
//! threads of its group share, whatever the map; readers pay nothing.
//!
//! # Invariants
//! - SHARED_STORE-1. A record is in the map from the moment a writer puts it there until a writer
//!   takes it out. Both happen in [`SharedMap::change`], which one thread at a time is in for a
//!   key.
//! - SHARED_STORE-2. A record is retired only after it was taken out of the map, and by one thread:
//!   the writer that has taken it out, or the batch to which it belonged. So what a thread finds
//!   lives as long as the guard that it had before.
//! - SHARED_STORE-3. A change that makes records visible counts them, within one turn with the lock
//!   held as a reader. So while the lock is held to write, the counters say what readers see.
//! - SHARED_STORE-4. Locks are taken in this order: the one of the store, then those of the map.

use super::in_range::{PIECE, Pieces, skip_in, visit_in};
use super::shared_map::{Exchange, SharedMap};
use crate::reader_groups::ReaderGroupLock;
use ats_mem::batch::{HeldKeyWait, KeyStep, Stepwise, Trip};
use ats_mem::record::{self, Record, RecordBox, Release, Weight};
use ats_mem::{
    Adaptive, Backend, Busy, Change, Direction, End, Fixable, KeyRange, Memory, NoSuchKey, Ordered,
    ScanPosition, Skipped, SlotAnswer, Slots, Totals, When,
};
use ats_store::successor;
use ats_sync::{Guard, ShardedCounter, pin};
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use std::ptr;

/// The number of records that are asked for when one is wanted: two, since the first may belong to
/// a batch.
const STEP: usize = 2;

/// A store on a map that threads share; see the documentation of [the crate](crate).
pub struct SharedStore<R: Release, M: SharedMap<R>> {
    map: M,
    turns: ReaderGroupLock<()>,
    /// The number of objects that readers see (SHARED_STORE-3).
    objects: ShardedCounter,
    bytes: ShardedCounter,
    records: PhantomData<R>,
}

impl<R: Release, M: SharedMap<R>> SharedStore<R, M> {
    /// An empty store.
    pub fn new() -> Self {
        SharedStore {
            map: M::default(),
            turns: ReaderGroupLock::new(()),
            objects: ShardedCounter::new(),
            bytes: ShardedCounter::new(),
            records: PhantomData,
        }
    }

    /// The map, for what only its own kind can tell.
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

    fn structure(&self, records: i64, guard: &Guard) -> usize {
        let records = usize::try_from(records).unwrap_or(0);
        let counters = self.objects.bytes() + self.bytes.bytes();
        size_of::<Self>() + self.turns.bytes() + counters + self.map.bytes(records, guard)
    }

    /// Changes a key as is decided, unless a batch holds it: then this says so, and nothing is
    /// decided. The lock of the store is held.
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
                // The batch counts it, and retires what was there, when it has committed.
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

    /// The record at an end, also if a batch holds it.
    fn outermost<'g>(&'g self, end: End, guard: &'g Guard) -> Option<&'g Record<R>> {
        let mut found = Vec::new();
        match end {
            End::First => self.map.gather(Bound::Unbounded, 1, guard, &mut found),
            End::Last => self.map.gather_down(None, 1, guard, &mut found),
        }
        found.pop()
    }

    /// The first record that readers see from a bound on.
    fn first_from<'g>(&'g self, from: Bound<&[u8]>, guard: &'g Guard) -> Option<&'g Record<R>> {
        let (mut from, mut found) = (from, Vec::with_capacity(STEP));
        loop {
            self.map.gather(from, STEP, guard, &mut found);
            if let Some(seen) = found.iter().find_map(|record| record.resolve(guard)) {
                return Some(seen);
            }
            let last = found.last().filter(|_| found.len() == STEP)?;
            from = Bound::Excluded(last.key());
            found.clear();
        }
    }

    /// The last record that readers see below a key, or of all.
    fn last_below<'g>(&'g self, below: Option<&[u8]>, guard: &'g Guard) -> Option<&'g Record<R>> {
        let (mut below, mut found) = (below, Vec::with_capacity(STEP));
        loop {
            self.map.gather_down(below, STEP, guard, &mut found);
            if let Some(seen) = found.iter().find_map(|record| record.resolve(guard)) {
                return Some(seen);
            }
            let last = found.last().filter(|_| found.len() == STEP)?;
            below = Some(last.key());
            found.clear();
        }
    }

    /// Visits the records behind a key, or all.
    fn visit_behind<'g>(
        &'g self,
        key: Option<&[u8]>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        let low = key.map(successor);
        let range = KeyRange {
            low: low.as_deref(),
            high: None,
        };
        visit_in(self, range, Direction::Up, guard, visit);
    }
}

/// A batch holds the key.
struct Held;

/// Gives up the box of a record, which is given to the store.
fn leak<R: Release>(record: RecordBox<R>, _guard: &Guard) -> &Record<R> {
    // SAFETY: a record of the store is freed by retiring only (SHARED_STORE-2), hence after the
    // guard.
    unsafe { &*record.into_raw() }
}

/// Retires a record that this thread has just taken out, with no lock held.
fn retire<R: Release>(gone: Option<&Record<R>>, guard: &Guard) {
    if let Some(record) = gone {
        // SAFETY: this thread has just taken it out of the map (SHARED_STORE-2).
        unsafe { record::retire(ptr::from_ref(record).cast_mut(), guard) };
    }
}

impl<R: Release, M: SharedMap<R>> Pieces<R> for SharedStore<R, M> {
    fn piece<'g>(
        &'g self,
        range: KeyRange<'_>,
        direction: Direction,
        guard: &'g Guard,
    ) -> Vec<&'g Record<R>> {
        let mut found = Vec::with_capacity(PIECE);
        match direction {
            Direction::Up => {
                let low = range.low.map_or(Bound::Unbounded, Bound::Included);
                self.map.gather(low, PIECE, guard, &mut found);
                let beyond =
                    |record: &&Record<R>| range.high.is_some_and(|high| record.key() >= high);
                let within = found.iter().position(beyond).unwrap_or(found.len());
                found.truncate(within);
            }
            Direction::Down => {
                self.map.gather_down(range.high, PIECE, guard, &mut found);
                let beyond = |record: &&Record<R>| range.low.is_some_and(|low| record.key() < low);
                let within = found.iter().position(beyond).unwrap_or(found.len());
                found.truncate(within);
            }
        }
        found
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

    fn remove_held(&self, hold: &Record<R>, before: Option<&Record<R>>, guard: &Guard) {
        let turn = self.turns.read();
        self.count(Weight::NONE - before.map_or(Weight::NONE, R::weight));
        self.map.change(hold.key(), guard, &mut |here| {
            debug_assert!(here.is_some_and(|here| ptr::eq(here, hold)));
            Exchange::Take
        });
        drop(turn);
        // It was in the map before the hold, which has just been taken out (BATCH-3).
        retire(before, guard);
    }
}

impl<R: Release, M: SharedMap<R>> Backend<R> for SharedStore<R, M> {
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

    fn first<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>> {
        self.first_from(Bound::Unbounded, guard)
    }

    fn last<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>> {
        self.last_below(None, guard)
    }

    fn next<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Record<R>>, NoSuchKey> {
        Ok(self.first_from(Bound::Excluded(key), guard))
    }

    fn prev<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Record<R>>, NoSuchKey> {
        Ok(self.last_below(Some(key), guard))
    }

    fn scan<'g>(
        &'g self,
        after: Option<&[u8]>,
        _when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) -> Result<(), NoSuchKey> {
        self.visit_behind(after, guard, visit);
        Ok(())
    }

    /// Parts without records are never large here, so there is no need to pause in them.
    fn resume_scan<'g>(
        &'g self,
        from: ScanPosition<'_>,
        _when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        _pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<u64> {
        let after = match from {
            ScanPosition::Start | ScanPosition::At(_) => None,
            ScanPosition::Behind(key) => Some(key),
        };
        self.visit_behind(after, guard, visit);
        None
    }

    fn totals(&self) -> Result<Totals, Busy> {
        let guard = pin();
        let alone = self.turns.write();
        let weight = self.weight();
        drop(alone);
        Ok(Totals {
            objects: weight.objects,
            bytes: weight.bytes,
            structure: self.structure(weight.objects, &guard) as i64,
        })
    }

    fn len(&self) -> usize {
        usize::try_from(self.weight().objects).unwrap_or(0)
    }

    fn memory(&self) -> Memory {
        let weight = self.weight();
        Memory {
            records: usize::try_from(weight.bytes).unwrap_or(0),
            structure: self.structure(weight.objects, &pin()),
        }
    }
}

impl<R: Release, M: SharedMap<R>> Ordered<R> for SharedStore<R, M> {
    fn scan_from<'g>(
        &'g self,
        from: &[u8],
        _when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        let range = KeyRange {
            low: Some(from),
            high: None,
        };
        visit_in(self, range, Direction::Up, guard, visit);
    }

    fn scan_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        _when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        let range = KeyRange {
            low: None,
            high: below,
        };
        visit_in(self, range, Direction::Down, guard, visit);
    }

    fn skip<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Skipped<'g, R> {
        skip_in(self, key_range, direction, most, guard, pause)
    }
}

/// A slot is the record at that place in the order of the keys. O(n).
impl<R: Release, M: SharedMap<R>> Slots<R> for SharedStore<R, M> {
    fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>),
    ) -> SlotAnswer {
        let go_on = &mut || ControlFlow::Continue(());
        match self.skip(KeyRange::default(), Direction::Up, index, guard, go_on) {
            Skipped::At(record, _) => {
                visit(record);
                SlotAnswer::Here
            }
            Skipped::All(len) if len == index => SlotAnswer::End,
            _ => SlotAnswer::Beyond,
        }
    }
}

/// Walks go on from any key.
impl<R: Release, M: SharedMap<R>> Fixable for SharedStore<R, M> {
    fn fix(&self) {}

    fn unfix(&self) {}

    fn tidy(&self, _budget: usize, _guard: &Guard) -> bool {
        true
    }
}

impl<R: Release, M: SharedMap<R>> Adaptive for SharedStore<R, M> {
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
