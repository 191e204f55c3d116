//! Writes to a locked leaf.
//!
//! All parts of the tree contribute: the root leads to the leaf, the gate admits the writer, the
//! count of objects is updated, and the routes adapt.

use super::base::{Base, SPANNING_COST, Spot};
use super::locked_leaf::{LockedLeaf, Wanted};
use super::slot::Word;
use super::tree::CaTree;
use crate::batch::{HeldKeyWait, KeyStep, Stepwise, Trip};
use crate::change::Busy;
use crate::read_points::{Query, ReadPoints, Removal, RemovedAt, TakeOut};
use crate::record::{self, Old, Record, RecordBox, Release, Weight};
use ats_sync::Guard;
use std::ptr;

/// A record that a write has taken out of the store.
pub(super) enum Gone<'g, R: Release> {
    /// The old record of a replaced key.
    Replaced(Old<'g, R>),
    /// The old record of a removed key.
    Removed(Old<'g, R>),
}

/// The locked leaf of a key, and the record in its slot.
type FreeLeaf<'g, R> = (LockedLeaf<'g, R>, Option<Old<'g, R>>);

impl<R: Release> CaTree<R> {
    /// [Puts](crate::Records::put) a record. Does not read the old record if its slot has a summary
    /// (SLOT-1).
    pub(super) fn put_over(
        &self,
        key: &[u8],
        record: RecordBox<R>,
        guard: &Guard,
    ) -> Result<bool, Busy> {
        let found = self.free_leaf(key, Wanted::Any, guard)?;
        let (locked, old) = found.expect("any key is wanted");
        let was_there = old.is_some();
        self.change(locked, old, KeyStep::Put(record), (key, None), guard);
        Ok(was_there)
    }

    /// [Removes](crate::Records::remove) a record, which is not read if its slot has a summary
    /// (SLOT-1). An absent key takes no lock.
    pub(super) fn remove_any(&self, key: &[u8], guard: &Guard) -> Result<bool, Busy> {
        let Some((locked, old)) = self.free_leaf(key, Wanted::Present, guard)? else {
            return Ok(false);
        };
        let was_there = old.is_some();
        self.change(locked, old, KeyStep::Remove, (key, None), guard);
        Ok(was_there)
    }

    /// Takes the lock of the base node of `key`, without time limit, and finds its leaf and slot.
    pub(super) fn lock_leaf<'g>(&'g self, key: &[u8], guard: &'g Guard) -> LockedLeaf<'g, R> {
        let take = |base: &'g Base<R>| Some(base.lock(&self.gate));
        let locked = self.root().lock_leaf(key, Wanted::Any, take, guard);
        locked.ok().flatten().expect("this way of locking waits")
    }

    /// Locks the leaf of a key that no batch holds, and returns it with the record in the key's
    /// slot.
    #[inline]
    fn free_leaf<'g>(
        &'g self,
        key: &[u8],
        wanted: Wanted,
        guard: &'g Guard,
    ) -> Result<Option<FreeLeaf<'g, R>>, Busy> {
        let mut wait = HeldKeyWait::new();
        loop {
            let take = |base: &'g Base<R>| self.lock(base);
            let Some(locked) = self.root().lock_leaf(key, wanted, take, guard)? else {
                return Ok(None);
            };
            // A simple record has no stamp (SLOT-1).
            match locked.old(guard) {
                Some(Old::Seen(record)) if record.is_held() => {}
                old => return Ok(Some((locked, old))),
            }
            drop(locked);
            wait.wait()?;
        }
    }

    /// Carries out a change of a key, by a query if one is given, and ends the write.
    #[inline]
    fn change<'g>(
        &self,
        mut locked: LockedLeaf<'g, R>,
        old: Option<Old<'g, R>>,
        step: KeyStep<R>,
        (key, by): (&[u8], Option<Query>),
        guard: &'g Guard,
    ) {
        let before = locked.base.last(&locked.held, guard);
        let gone = self.carry_out(&mut locked, old, step, (key, by), guard);
        self.end_write(locked, before, gone, key, guard);
    }

    /// Carries out a decided change of a key in its locked leaf, which has `old`. Returns the
    /// record taken out of the store, for [`end_write`](Self::end_write).
    #[inline]
    pub(super) fn carry_out<'g>(
        &self,
        locked: &mut LockedLeaf<'g, R>,
        old: Option<Old<'g, R>>,
        step: KeyStep<R>,
        (key, by): (&[u8], Option<Query>),
        guard: &'g Guard,
    ) -> Option<Gone<'g, R>> {
        match step {
            KeyStep::Keep => {
                if let (Some(Old::Seen(record)), Some(at)) = (old, locked.found)
                    && record.is_held()
                {
                    // The batch has stamped the record, so it is no longer simple (SLOT-1).
                    locked.leaf.put(at, Word::of(record));
                }
                None
            }
            KeyStep::Put(record) => {
                let before = old.as_ref().map_or(Weight::NONE, Old::weight);
                locked.base.count(R::weight(&record) - before);
                self.objects.count_put(locked.base, old.as_ref(), &record);
                let old = old.or_else(|| locked.any_record(guard).map(Old::Seen));
                let (fresh, old) = self.read_points.date(&record, old, by, guard);
                locked.put_record(record, self.root(), guard);
                self.read_points.list(fresh, guard);
                old.map(Gone::Replaced)
            }
            // The batch retires the old record, once it has committed.
            KeyStep::Install(record) => {
                locked.base.count_pending(1);
                self.objects.count_put(locked.base, old.as_ref(), &record);
                locked.put_record(record, self.root(), guard);
                None
            }
            KeyStep::Remove => {
                let (Some(old), Some(at)) = (old, locked.found) else {
                    return None;
                };
                locked.base.count(Weight::NONE - old.weight());
                self.objects.count_removed(locked.base, key, &old);
                let removal = self.read_points.remove(key, old, by, guard);
                let gone = self.remove_record(locked, at, key, removal, guard);
                gone.map(Gone::Removed)
            }
        }
    }

    /// Removes the record from its key's slot, or replaces it by a removal if queries may look for
    /// it. Returns the record to retire.
    #[inline]
    fn remove_record<'r, 'g: 'r>(
        &self,
        locked: &mut LockedLeaf<'g, R>,
        at: usize,
        key: &[u8],
        removal: Removal<'r, R>,
        guard: &'g Guard,
    ) -> Option<Old<'r, R>> {
        match removal {
            Removal::Plain(old) => {
                locked.take_out(at, key, self.root(), guard);
                Some(old)
            }
            Removal::By(removal, fresh, old) => {
                locked.put_record(removal, self.root(), guard);
                self.read_points.list(fresh, guard);
                old
            }
        }
    }

    /// Ends a write: adapts if needed, unlocks, and then retires the record that the write took
    /// out. Only then, because a thread that retires may also free other records, of any size.
    /// `before` is the spot of the previous write.
    #[inline]
    pub(super) fn end_write(
        &self,
        locked: LockedLeaf<'_, R>,
        before: Spot<'_, R>,
        gone: Option<Gone<'_, R>>,
        key: &[u8],
        guard: &Guard,
    ) {
        let removed = matches!(gone, Some(Gone::Removed(_)));
        locked.base.set_writer(guard);
        self.routes.adapt_after(locked, before, removed, key, guard);
        if let Some(Gone::Replaced(old) | Gone::Removed(old)) = gone {
            // SAFETY: the record was taken out of its leaf under the lock that was held (CATREE-1),
            // so no thread that pins from now on can reach it.
            unsafe { old.retire(guard) };
        }
    }
}

impl<R: Release> Stepwise<R> for CaTree<R> {
    fn step<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        trip: &mut Trip,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> KeyStep<R>,
    ) -> Result<(), Busy> {
        let found = self.free_leaf(key, Wanted::Any, guard)?;
        let (locked, _) = found.expect("any key is wanted");
        // The decision is about the record itself, so it is read even if its slot has a summary.
        let here = locked.any_record(guard);
        if trip.comes_to(ptr::from_ref(locked.base).addr()) {
            locked.held.count(SPANNING_COST);
        }
        let there = here.filter(|record| !record.is_removal());
        let by = trip.query();
        self.change(locked, there.map(Old::Seen), decide(here), (key, by), guard);
        Ok(())
    }

    fn read_points(&self) -> Option<&ReadPoints<R>> {
        Some(&self.read_points)
    }

    fn prefetch_records(&self, keys: &[&[u8]], guard: &Guard) {
        self.root().prefetch_leaves(keys, guard);
    }

    fn commit(
        &self,
        key: &[u8],
        (weight, stay): (Weight, u32),
        guard: &Guard,
        commit: &mut dyn FnMut(),
    ) {
        let locked = self.lock_leaf(key, guard);
        commit();
        locked.base.count(weight);
        locked.base.count_pending(stay.wrapping_neg().cast_signed());
    }

    fn exchange(&self, installed: &Record<R>, other: Option<&Record<R>>, guard: &Guard) {
        let key = installed.key();
        let mut locked = self.lock_leaf(key, guard);
        let at = locked.found.expect("a pending record stays in the store");
        let old = Old::Seen(installed);
        // The batch still has a pending record if the other one is stamped.
        if !other.is_some_and(Record::is_held) {
            locked.base.count_pending(-1);
        }
        match other {
            None => {
                self.objects.count_removed(locked.base, key, &old);
                locked.take_out(at, key, self.root(), guard);
            }
            Some(removal) if removal.is_removal() => {
                self.objects.count_removed(locked.base, key, &old);
                if removal.version(guard).is_some() {
                    return locked.leaf.put(at, Word::of(removal));
                }
                // The removal's version was reclaimed while it was not in its slot.
                locked.take_out(at, key, self.root(), guard);
                drop(locked);
                // SAFETY: only the batch could reach the removal, and this is its end for the key.
                unsafe { record::retire(ptr::from_ref(removal).cast_mut(), guard) };
            }
            Some(record) => {
                self.objects.count_put(locked.base, Some(&old), record);
                locked.leaf.put(at, Word::of(record));
            }
        }
    }

    fn remove_held(
        &self,
        hold: &Record<R>,
        before: Option<&Record<R>>,
        removed_at: RemovedAt,
        guard: &Guard,
    ) {
        let key = hold.key();
        let mut locked = self.lock_leaf(key, guard);
        let at = locked.found.expect("a pending record stays in the store");
        let Some(before) = before.filter(|before| !before.is_removal()) else {
            drop(locked);
            return self.exchange(hold, before, guard);
        };
        let held = Old::Seen(hold);
        locked.base.count_pending(-1);
        locked.base.count(removed_at.weight_of(before));
        self.objects.count_removed(locked.base, key, &held);
        let old = Old::Seen(before);
        let removal = self.read_points.remove_held(key, old, removed_at, guard);
        let gone = self.remove_record(&mut locked, at, key, removal, guard);
        drop(locked);
        if let Some(before) = gone {
            // SAFETY: the record before was in the store until the hold replaced it, and the hold
            // has just been taken out (BATCH-3).
            unsafe { before.retire(guard) };
        }
    }
}

impl<R: Release> TakeOut<R> for CaTree<R> {
    fn take_out(&self, removal: &Record<R>, guard: &Guard, is_out: &mut dyn FnMut(bool)) {
        let key = removal.key();
        let mut locked = self.lock_leaf(key, guard);
        let there = locked.any_record(guard);
        let is_there = there.is_some_and(|there| ptr::eq(there, removal));
        if is_there && let Some(at) = locked.found {
            locked.take_out(at, key, self.root(), guard);
        }
        is_out(is_there);
    }
}
