//! Transactions: batches that decide about their keys together, when all are held.

use super::block::Ending;
use super::pinning::{PIECE, Pinning};
use super::run::{Open, visible};
use super::stepwise::{KeyStep, Stepwise, Trip};
use crate::change::{Busy, Change};
use crate::record::entry::Installed;
use crate::record::{Record, Release};

/// The decisions of a transaction about its keys, which are named by their indices.
pub trait Transaction<R: Release> {
    /// Returns `true` if the key may change. All others stay as they are. The answer is always the
    /// same.
    fn may_change(&self, index: usize) -> bool;

    /// Decides about all keys, by the records of all of them. Returns `false` if
    /// nothing is to be changed. Called once, with no lock but that of the keys.
    ///
    /// The records stay as they are until [`release`](Self::release) is called.
    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Record<R>>) -> bool;

    /// Returns the change of a key that may change, and has this record. Called after a decision,
    /// once for each of them in ascending order, unless it answers [`Abort`](Change::Abort) before,
    /// which undoes everything. [`Later`](Change::Later) is no answer.
    fn change(&mut self, index: usize, found: Option<&Record<R>>) -> Change<R>;

    /// Notes that the transaction has committed, or else aborts, and that its keys are released
    /// next. Called once, in any case.
    fn release(&mut self, has_committed: bool);
}

/// A transaction that is released when this is dropped.
struct Releasing<'p, R: Release> {
    plan: &'p mut dyn Transaction<R>,
    has_committed: bool,
}

impl<R: Release> Drop for Releasing<'_, R> {
    fn drop(&mut self) {
        self.plan.release(self.has_committed);
    }
}

/// [`Provided::transact`](crate::Provided::transact) for any store that can step.
pub(crate) fn transact<R: Release, S: Stepwise<R> + ?Sized>(
    store: &S,
    keys: &[&[u8]],
    pinning: Pinning<'_>,
    plan: &mut dyn Transaction<R>,
) -> Result<bool, Busy> {
    debug_assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "keys ascend");
    let mut open = Open::new(store, keys.len(), pinning);
    // Declared behind the batch, so it is dropped before the keys are released by an abort.
    let mut plan = Releasing {
        plan,
        has_committed: false,
    };
    let mut trip = Trip::new();
    for (piece, some) in keys.chunks(PIECE).enumerate() {
        open.pinning.pause();
        store.prefetch_batch(some, open.pinning.guard());
        for (at, key) in some.iter().enumerate() {
            let may_change = plan.plan.may_change(piece * PIECE + at);
            open.hold(key, may_change, &mut trip)?;
        }
    }
    open.pinning.pause();
    let entries = open.batch.entries();
    // SAFETY: the keys are held, so the records before live, pinned or not (BATCH-3).
    let found = |index: usize| visible(unsafe { entries[index].before() });
    if !plan.plan.decide(&found) {
        return Ok(false);
    }
    for index in 0..keys.len() {
        if index % PIECE == PIECE - 1 {
            open.pinning.pause();
        }
        if plan.plan.may_change(index) && !open.settle(index, plan.plan) {
            return Ok(false);
        }
    }
    open.commit_before_release(|| {
        plan.has_committed = true;
        drop(plan);
    });
    Ok(true)
}

impl<R: Release, S: Stepwise<R> + ?Sized> Open<'_, R, S> {
    /// Holds the next key, or keeps it.
    fn hold(&mut self, key: &[u8], may_change: bool, trip: &mut Trip) -> Result<(), Busy> {
        let Open {
            batch,
            store,
            pinning,
            ..
        } = self;
        store.step(key, pinning.guard(), trip, &mut |current| {
            if may_change {
                KeyStep::Install(batch.hold(key, current))
            } else {
                batch.keep(key, current)
            }
        })
    }

    /// Makes the change of a key that is held. Returns `false` if the batch is to be aborted.
    fn settle(&mut self, index: usize, plan: &mut dyn Transaction<R>) -> bool {
        let entry = &self.batch.entries()[index];
        let Installed::Hold(hold) = entry.load_installed() else {
            unreachable!("a key that may change was held");
        };
        // SAFETY: the key is held, so the record before lives, pinned or not (BATCH-3).
        let before = visible(unsafe { entry.before() });
        match (plan.change(index, before), before) {
            (Change::Put(record), _) => self.replace_hold(index, hold, record),
            (Change::Remove, Some(before)) => self.batch.remove(index, hold, before),
            (Change::Keep | Change::Remove, _) => {}
            (Change::Abort | Change::Later, _) => return false,
        }
        true
    }

    /// Commits, calls `committed`, and releases the keys.
    fn commit_before_release(mut self, committed: impl FnOnce()) {
        self.ended = true;
        let time = self
            .batch
            .conclude(Ending::Commit, self.store, &mut self.pinning);
        committed();
        self.batch
            .release(Ending::Commit, time, self.store, &mut self.pinning);
    }
}
