//! Execution of a batch: its keys are decided one after the other, then it commits or aborts.

use super::block::{Batch, Ending};
use super::pinning::{PIECE, Pinning};
use super::stepwise::{KeyStep, Stepwise, Trip};
use crate::change::{BatchPlan, Busy, Change};
use crate::read_points::RemovedAt;
use crate::record::entry::Installed;
use crate::record::{self, Record, RecordBox, Release};
use ats_sync::Guard;
use std::ptr;

/// [`Provided::update`](crate::Provided::update) and
/// [`Provided::update_by`](crate::Provided::update_by) by way of [`Stepwise::step`].
pub(crate) fn update<'g, R: Release, S: Stepwise<R> + ?Sized>(
    store: &'g S,
    key: &[u8],
    mut trip: Trip,
    guard: &'g Guard,
    decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
) -> Result<(), Busy> {
    store.step(key, guard, &mut trip, &mut |current| {
        KeyStep::of(decide(visible(current)))
    })
}

/// [`Records::put`](crate::Records::put) for a store that has nothing faster.
pub(crate) fn put<R: Release, S: Stepwise<R> + ?Sized>(
    store: &S,
    key: &[u8],
    record: RecordBox<R>,
    guard: &Guard,
) -> Result<bool, Busy> {
    let (mut record, mut was_there) = (Some(record), false);
    update(store, key, Trip::new(), guard, &mut |current| {
        was_there = current.is_some();
        Change::Put(record.take().expect("decided once"))
    })?;
    Ok(was_there)
}

/// [`Records::remove`](crate::Records::remove) for a store that has nothing faster.
pub(crate) fn remove<R: Release, S: Stepwise<R> + ?Sized>(
    store: &S,
    key: &[u8],
    guard: &Guard,
) -> Result<bool, Busy> {
    let mut was_there = false;
    update(store, key, Trip::new(), guard, &mut |current| {
        was_there = current.is_some();
        Change::Remove
    })?;
    Ok(was_there)
}

/// Returns the record that a writer sees, given the one in the slot of its key: a removal is no
/// record.
pub(super) fn visible<R: Release>(record: Option<&Record<R>>) -> Option<&Record<R>> {
    record.filter(|record| !record.is_removal())
}

/// [`Provided::update_batch`](crate::Provided::update_batch) for any store that can step.
pub(crate) fn update_batch<R: Release, S: Stepwise<R> + ?Sized>(
    store: &S,
    keys: &[&[u8]],
    pinning: Pinning<'_>,
    plan: &mut dyn BatchPlan<R>,
) -> Result<bool, Busy> {
    debug_assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "keys ascend");
    let mut open = Open::new(store, keys.len(), pinning);
    let mut trip = Trip::new();
    for (piece, some) in keys.chunks(PIECE).enumerate() {
        open.pinning.pause();
        store.prefetch_batch(some, open.pinning.guard());
        for (at, key) in some.iter().enumerate() {
            match open.decide(piece * PIECE + at, key, &mut trip, plan)? {
                Then::Next => {}
                Then::Build(index) if open.build(index, plan) => {}
                Then::Build(_) | Then::Abort => return Ok(false),
            }
        }
    }
    open.commit();
    Ok(true)
}

/// [`Provided::update_alone`](crate::Provided::update_alone) for any store that can step: a batch
/// of one key whose change is put off until no lock is held.
pub(crate) fn update_alone<'g, R: Release, S: Stepwise<R> + ?Sized>(
    store: &'g S,
    key: &[u8],
    guard: &'g Guard,
    decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
) -> Result<(), Busy> {
    let mut plan = Alone(decide);
    update_batch(store, &[key], Pinning::Callers(guard), &mut plan).map(|_| ())
}

/// The plan of a batch of one key, decided while only the key is held. The batch is pinned by a
/// guard of the lifetime `'g`.
struct Alone<'a, 'g, R: Release>(&'a mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>);

impl<R: Release> ats_store::BatchPlan<Record<R>, RecordBox<R>> for Alone<'_, '_, R> {
    fn decide(&mut self, _: usize, _: Option<&Record<R>>) -> Change<R> {
        Change::Later
    }

    fn build(&mut self, _: usize, current: Option<&Record<R>>) -> Change<R> {
        // SAFETY: the record was found under the guard of the lifetime `'g`, and is not retired
        // before its key is released (BATCH-3), so it lives as long as the guard.
        (self.0)(current.map(|record| unsafe { &*ptr::from_ref(record) }))
    }
}

/// The step after the decision about a key.
enum Then {
    Next,
    /// Make the record for the key with this index, which is held.
    Build(usize),
    Abort,
}

/// A batch that is aborted when dropped before its commit: because its plan aborted, another batch
/// was in the way, or the plan panicked. Otherwise its records would hold their keys for ever, and
/// their stamps would name freed entries.
pub(super) struct Open<'a, R: Release, S: Stepwise<R> + ?Sized> {
    pub(super) batch: Batch<R>,
    pub(super) ended: bool,
    pub(super) store: &'a S,
    pub(super) pinning: Pinning<'a>,
}

impl<'a, R: Release, S: Stepwise<R> + ?Sized> Open<'a, R, S> {
    /// Opens a batch of this many keys.
    #[inline(always)]
    pub(super) fn new(store: &'a S, keys: usize, pinning: Pinning<'a>) -> Self {
        Open {
            batch: Batch::new(keys),
            ended: false,
            store,
            pinning,
        }
    }

    #[inline]
    fn decide(
        &mut self,
        index: usize,
        key: &[u8],
        trip: &mut Trip,
        plan: &mut dyn BatchPlan<R>,
    ) -> Result<Then, Busy> {
        let Open {
            batch,
            store,
            pinning,
            ..
        } = self;
        let mut then = Then::Next;
        store.step(key, pinning.guard(), trip, &mut |current| match plan
            .decide(index, visible(current))
        {
            Change::Keep if batch.is_single() => KeyStep::Keep,
            Change::Keep => batch.keep(key, current),
            Change::Put(record) => KeyStep::Install(batch.stamp(record, current)),
            Change::Later => {
                then = Then::Build(index);
                KeyStep::Install(batch.hold(key, current))
            }
            Change::Remove | Change::Abort => {
                then = Then::Abort;
                KeyStep::Keep
            }
        })?;
        Ok(then)
    }

    /// Builds the record for the last key held. Returns `false` if the batch is to be aborted.
    #[cold]
    fn build(&mut self, index: usize, plan: &mut dyn BatchPlan<R>) -> bool {
        let entry = self.batch.last();
        // SAFETY: the key is held, so the record before lives, pinned or not (BATCH-3).
        let before = unsafe { entry.before() };
        let Installed::Hold(hold) = entry.load_installed() else {
            unreachable!("the key was held");
        };
        self.pinning.pause();
        match plan.build(index, visible(before)) {
            Change::Put(record) => self.replace_hold(self.batch.entries().len() - 1, hold, record),
            Change::Remove if self.batch.is_single() => {
                let guard = self.pinning.guard();
                self.batch.last().install(&Installed::Nothing);
                // SAFETY: a record that only holds its key stays in the store until the batch takes
                // it out (BATCH-5), which it does here.
                unsafe {
                    self.store
                        .remove_held(&*hold, before, RemovedAt::Now, guard);
                    record::retire(hold, guard);
                }
            }
            Change::Abort => return false,
            // The hold stays until the batch ends.
            Change::Keep | Change::Remove | Change::Later => {}
        }
        true
    }

    /// Replaces the hold of the key with this index by a record.
    pub(super) fn replace_hold(
        &mut self,
        index: usize,
        hold: *mut Record<R>,
        record: RecordBox<R>,
    ) {
        // SAFETY: the key is held, so the record before lives, pinned or not (BATCH-3).
        let before = unsafe { self.batch.entries()[index].before() };
        let record = self.batch.stamp_again(index, record, before).into_raw();
        let guard = self.pinning.guard();
        // SAFETY: a record that only holds its key stays in the store until the batch takes it out,
        // which it does here. The store keeps the other record until the batch ends (BATCH-5).
        unsafe {
            self.store.exchange(&*hold, Some(&*record), guard);
            record::retire(hold, guard);
        }
    }

    fn commit(mut self) {
        self.ended = true;
        self.batch
            .end(Ending::Commit, self.store, &mut self.pinning);
    }
}

impl<R: Release, S: Stepwise<R> + ?Sized> Drop for Open<'_, R, S> {
    fn drop(&mut self) {
        if !self.ended {
            self.batch.end(Ending::Abort, self.store, &mut self.pinning);
        }
    }
}
