//! What a writer does at a leaf that it has locked.

use super::account::count_key;
use super::base::{SPANNING_COST, Spot};
use super::locked_leaf::LockedLeaf;
use super::tree::CaTree;
use crate::backend::Busy;
use crate::batch::{HeldKeyWait, KeyStep, Stepwise, Trip};
use crate::record::{self, Record, Release, Tally};
use ats_sync::Guard;
use std::ptr;

/// A record that a write took out of the store.
pub(super) enum Gone<'g, R: Release> {
    /// Another one is in its place.
    Replaced(&'g Record<R>),
    /// Its key is gone.
    Removed(&'g Record<R>),
}

impl<R: Release> CaTree<R> {
    /// Changes the record of `key` as was decided, at its locked leaf, where `current` is. Returns what it took
    /// out of the store, for [`end_write`](Self::end_write).
    #[inline]
    pub(super) fn carry_out<'g>(
        &self,
        locked: &mut LockedLeaf<'g, R>,
        current: Option<&'g Record<R>>,
        step: KeyStep<R>,
        key: &[u8],
        guard: &'g Guard,
    ) -> Option<Gone<'g, R>> {
        match step {
            KeyStep::Keep => None,
            KeyStep::Put(record) => {
                locked.base.count(Tally::of_put(&record, current));
                self.put(locked, current, record, guard);
                current.map(Gone::Replaced)
            }
            // The batch retires what was there, when it has committed.
            KeyStep::Install(record) => {
                self.put(locked, current, record, guard);
                None
            }
            KeyStep::Remove => {
                let (Some(old), Ok(at)) = (current, locked.found) else {
                    return None;
                };
                locked.base.count(Tally::NONE - R::tally(old));
                count_key(locked.base, key, -1);
                self.take_out(locked, at, key, guard);
                Some(Gone::Removed(old))
            }
        }
    }

    /// Ends a write: adapts if need be, unlocks, and retires what the write took out. Not before that, since
    /// a thread that retires also frees records that others have retired, of whatever size. `before` is
    /// where the write before this one went.
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
        self.adapt_after(locked, before, removed, key, guard);
        if let Some(Gone::Replaced(old) | Gone::Removed(old)) = gone {
            // SAFETY: it was taken out of its leaf under the lock that was held (C1).
            unsafe { record::retire(ptr::from_ref(old).cast_mut(), guard) };
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
        let mut patience = HeldKeyWait::new();
        loop {
            let mut locked =
                self.try_locked_leaf(key, |base| base.lock_patiently(&self.gate), guard)?;
            let here = locked
                .found
                .ok()
                .and_then(|at| locked.leaf.record(at, guard));
            if here.is_some_and(Record::is_held) {
                drop(locked);
                patience.wait()?;
                continue;
            }
            if trip.comes_to(ptr::from_ref(locked.base).addr()) {
                locked.held.count(SPANNING_COST);
            }
            let before = locked.base.last(&locked.held, guard);
            let gone = self.carry_out(&mut locked, here, decide(here), key, guard);
            self.end_write(locked, before, gone, key, guard);
            return Ok(());
        }
    }

    fn approach(&self, keys: &[&[u8]], guard: &Guard) {
        self.approach_leaves(keys, guard);
    }

    fn commit(&self, key: &[u8], tally: Tally, guard: &Guard, commit: &mut dyn FnMut()) {
        let locked = self.locked_leaf_for(key, guard);
        commit();
        locked.base.count(tally);
    }

    fn exchange(&self, installed: &Record<R>, other: Option<&Record<R>>, guard: &Guard) {
        let key = installed.key();
        let mut locked = self.locked_leaf_for(key, guard);
        let at = locked.found.expect("a pending record stays in the store");
        match other {
            None => {
                count_key(locked.base, key, -1);
                self.take_out(&mut locked, at, key, guard);
            }
            Some(record) => locked.leaf.put(at, record),
        }
    }

    fn remove_held(&self, hold: &Record<R>, before: Option<&Record<R>>, guard: &Guard) {
        let key = hold.key();
        let mut locked = self.locked_leaf_for(key, guard);
        let at = locked.found.expect("a pending record stays in the store");
        if let Some(before) = before {
            locked.base.count(Tally::NONE - R::tally(before));
        }
        count_key(locked.base, key, -1);
        self.take_out(&mut locked, at, key, guard);
        drop(locked);
        if let Some(before) = before {
            // SAFETY: it was in the store before the hold, which has just been taken out (B3).
            unsafe { record::retire(ptr::from_ref(before).cast_mut(), guard) };
        }
    }
}
