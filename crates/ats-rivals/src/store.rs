//! A map of records behind a readers-writer lock, as a store.
//!
//! The invariants (RIVALS-1 and so on) are those of [the crate](crate).

use super::record_map::{Kept, RecordMap, Taking};
use crate::reader_groups::ReaderGroupLock;
use ats_mem::batch::{HeldKeyWait, KeyStep, Stepwise, Trip};
use ats_mem::read_points::RemovedAt;
use ats_mem::record::{self, Record, RecordBox, Release, Weight};
use ats_mem::{
    Beside, Busy, Change, Direction, End, NoSuchKey, Provided, Records, SlotAnswer, Totals, Upkeep,
    Walk, WalkFrom,
};
use ats_sync::Guard;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// A store with one lock: see the documentation of [the crate](crate).
pub struct LockedMap<R: Release, M: RecordMap<R>> {
    state: ReaderGroupLock<State<R, M>>,
}

/// The data behind the lock.
struct State<R: Release, M: RecordMap<R>> {
    map: M,
    /// The totals that readers see.
    weight: Weight,
    records: PhantomData<Kept<R>>,
}

impl<R: Release, M: RecordMap<R>> State<R, M> {
    /// Puts a record, which replaces the current one of its key, or removes the key. Returns the
    /// old record. The map changes only here.
    fn exchange(&mut self, key: &[u8], new: Option<Kept<R>>, why: Taking) -> Option<Kept<R>> {
        match new {
            Some(record) => self.map.put(record),
            None => self.map.take(key, why),
        }
    }

    /// Carries out the decision about a key, whose record is `here`. Returns the record to retire.
    /// The caller retires it after it has released the lock, since retiring may also free the
    /// garbage of other threads, which takes long.
    fn carry_out(
        &mut self,
        key: &[u8],
        here: Option<&Record<R>>,
        step: KeyStep<R>,
    ) -> Option<Kept<R>> {
        match step {
            KeyStep::Keep => None,
            KeyStep::Put(record) => {
                self.weight += Weight::of_put(&record, here);
                self.exchange(key, Some(Kept::of_box(record)), Taking::Removal)
            }
            KeyStep::Install(record) => {
                // The batch counts the record and retires the old one once it has committed.
                let _ = self.exchange(key, Some(Kept::of_box(record)), Taking::Removal);
                None
            }
            KeyStep::Remove => {
                self.weight += Weight::NONE - here.map_or(Weight::NONE, R::weight);
                self.exchange(key, None, Taking::Removal)
            }
        }
    }
}

impl<R: Release, M: RecordMap<R>> LockedMap<R, M> {
    /// Makes an empty store.
    pub fn new() -> Self {
        let state = State {
            map: M::default(),
            weight: Weight::NONE,
            records: PhantomData,
        };
        LockedMap {
            state: ReaderGroupLock::new(state),
        }
    }

    /// Runs `look` under the lock, held to read, and returns the records that it has found.
    fn look<'g, T>(
        &'g self,
        guard: &'g Guard,
        look: impl FnOnce(&M, &mut Vec<Kept<R>>) -> T,
    ) -> (Vec<&'g Record<R>>, T) {
        let mut found = Vec::new();
        let answer = look(&self.state.read().map, &mut found);
        // SAFETY: all of these records were in the map when the lock was held, which is after the
        // guard was made.
        let found = found.iter().map(|kept| unsafe { kept.get_under(guard) });
        (found.collect(), answer)
    }

    /// Changes the key of the record that `find` finds, under the lock. Waits while a batch holds
    /// the key.
    fn change<'g>(
        &'g self,
        guard: &'g Guard,
        find: impl Fn(&M) -> Option<&Kept<R>>,
        key: Option<&[u8]>,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> KeyStep<R>,
    ) -> Result<(), Busy> {
        let mut wait = HeldKeyWait::new();
        loop {
            let mut state = self.state.write();
            // SAFETY: it is in the map while the lock is held, which is after the guard was made.
            let here = find(&state.map).map(|kept| unsafe { kept.get_under(guard) });
            if here.is_some_and(Record::is_held) {
                drop(state);
                wait.wait()?;
                continue;
            }
            let step = decide(here);
            let key = key.or(here.map(Record::key));
            let gone = key.and_then(|key| state.carry_out(key, here, step));
            drop(state);
            if let Some(gone) = gone {
                // SAFETY: this thread has just taken it out of the map (RIVALS-2).
                unsafe { record::retire(gone.pointer(), guard) };
            }
            return Ok(());
        }
    }

    /// Visits the records from a position on until `visit` breaks. Between two pieces of a walk it
    /// asks `pause`; if that breaks, it returns the position at which another walk goes on.
    fn walk_from<'g>(
        &'g self,
        from: WalkFrom<'_>,
        piece: Option<usize>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<u64> {
        let (mut found, mut rest) = self.look(guard, |map, found| {
            map.gather(from, piece.unwrap_or_else(|| map.piece()), found)
        });
        loop {
            for record in found {
                if let Some(record) = record.resolve(guard)
                    && visit(record).is_break()
                {
                    return None;
                }
            }
            let position = rest?;
            if pause().is_break() {
                return Some(position);
            }
            let from = WalkFrom::Position(position);
            (found, rest) = self.look(guard, |map, found| {
                map.gather(from, piece.unwrap_or_else(|| map.piece()), found)
            });
        }
    }

    /// Returns the first record from a position on.
    fn successor<'g>(&'g self, from: WalkFrom<'_>, guard: &'g Guard) -> Option<&'g Record<R>> {
        let mut first = None;
        let visit = &mut |record| {
            first = Some(record);
            ControlFlow::Break(())
        };
        let go_on = &mut || ControlFlow::Continue(());
        self.walk_from(from, Some(1), guard, visit, go_on);
        first
    }
}

impl<R: Release, M: RecordMap<R>> Stepwise<R> for LockedMap<R, M> {
    fn step<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        _trip: &mut Trip,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> KeyStep<R>,
    ) -> Result<(), Busy> {
        self.change(guard, |map| map.get(key), Some(key), decide)
    }

    fn commit(
        &self,
        _key: &[u8],
        (weight, _): (Weight, u32),
        _guard: &Guard,
        commit: &mut dyn FnMut(),
    ) {
        let mut state = self.state.write();
        commit();
        state.weight += weight;
    }

    fn exchange(&self, installed: &Record<R>, other: Option<&Record<R>>, _guard: &Guard) {
        let other = other.map(Kept::new);
        let mut state = self.state.write();
        let gone = state.exchange(installed.key(), other, Taking::Undoing);
        debug_assert!(gone.is_some_and(|gone| std::ptr::eq(gone.pointer(), installed)));
    }

    fn remove_held(
        &self,
        hold: &Record<R>,
        before: Option<&Record<R>>,
        at: RemovedAt,
        guard: &Guard,
    ) {
        let why = match before {
            Some(_) => Taking::Removal,
            None => Taking::Undoing,
        };
        let mut state = self.state.write();
        state.weight += before.map_or(Weight::NONE, |before| at.weight_of(before));
        let gone = state.exchange(hold.key(), None, why);
        drop(state);
        debug_assert!(gone.is_some_and(|gone| std::ptr::eq(gone.pointer(), hold)));
        if let Some(before) = before {
            // SAFETY: it was in the map before the hold, which has just been taken out (BATCH-3).
            unsafe { record::retire(std::ptr::from_ref(before).cast_mut(), guard) };
        }
    }
}

impl<R: Release, M: RecordMap<R>> Records<R> for LockedMap<R, M> {
    fn is_ordered(&self) -> bool {
        false
    }

    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        let state = self.state.read();
        // SAFETY: it is in the map while the lock is held, which is after the guard was made.
        let found = state
            .map
            .get(key)
            .map(|kept| unsafe { kept.get_under(guard) });
        drop(state);
        found?.resolve(guard)
    }

    fn update_end<'g>(
        &'g self,
        _end: End,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        self.change(guard, |map| map.any(), None, &mut |current| {
            KeyStep::of(decide(current))
        })
    }

    fn beside<'g>(
        &'g self,
        key: Option<&[u8]>,
        _direction: Direction,
        guard: &'g Guard,
    ) -> Beside<'g, R> {
        match key {
            None => Ok(self.successor(WalkFrom::Start, guard)),
            Some(key) if !self.state.read().map.knows(key, guard) => Err(NoSuchKey),
            Some(key) => Ok(self.successor(WalkFrom::Behind(key), guard)),
        }
    }

    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, NoSuchKey> {
        if let WalkFrom::Known(key) = walk.from
            && !self.state.read().map.knows(key, guard)
        {
            return Err(NoSuchKey);
        }
        Ok(self.walk_from(walk.from, None, guard, visit, pause))
    }

    fn totals(&self) -> Result<Totals, Busy> {
        Ok(self.estimate())
    }

    fn estimate(&self) -> Totals {
        let state = self.state.read();
        let structure = size_of::<Self>() + self.state.bytes() + state.map.bytes();
        Totals {
            objects: state.weight.objects,
            bytes: state.weight.bytes,
            structure: structure as i64,
        }
    }

    fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>),
    ) -> SlotAnswer {
        let (found, answer) = self.look(guard, |map, found| map.slot(index, found));
        let found = found.into_iter();
        found
            .filter_map(|record| record.resolve(guard))
            .for_each(visit);
        answer
    }

    /// Fixes the map under the lock, held to write, so no removal is running.
    fn fix(&self) {
        self.state.write().map.fix();
    }

    fn unfix(&self) {
        self.state.write().map.unfix();
    }

    /// Does all work at once, and ignores the budget.
    fn upkeep(&self, work: Upkeep, _budget: usize, _guard: &Guard) -> bool {
        if work == Upkeep::Walks {
            self.state.write().map.tidy();
        }
        true
    }
}

impl<R: Release, M: RecordMap<R>> Default for LockedMap<R, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Release, M: RecordMap<R>> Drop for LockedMap<R, M> {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        for kept in state.map.all() {
            // SAFETY: the exclusive borrow shows that no reference to it is left, since those that
            // were handed out are borrowed from the store. The map does not look at its records
            // again.
            drop(unsafe { RecordBox::from_raw(kept.pointer()) });
        }
    }
}

impl<R: Release, M: RecordMap<R>> std::fmt::Debug for LockedMap<R, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockedMap")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
