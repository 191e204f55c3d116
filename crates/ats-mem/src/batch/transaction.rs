//! Transactions: batches that decide about their keys together, when all are held. A transaction
//! over several stores is a group of batches: see [`batch`](super).

use super::block::Ending;
use super::pinning::{PIECE, Pinning};
use super::run::{Open, visible};
use super::stepwise::{KeyStep, Stepwise, Trip};
use crate::change::{Busy, Change};
use crate::read_points::CommitTime;
use crate::record::entry::Installed;
use crate::record::{Record, Release};
use std::ptr;

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

/// Number of stores of a transaction at most: the commit enters each of them before it leaves the
/// first one.
pub const MOST_STORES: usize = 64;

/// The part of a transaction over several stores that concerns one of them.
pub struct Part<'a, R: Release> {
    /// The store, which lives until the transaction has ended, without a guard.
    pub store: &'a dyn Stepwise<R>,
    /// The keys: distinct, and ascending bytewise.
    pub keys: &'a [&'a [u8]],
    /// The decisions about these keys.
    pub plan: &'a mut dyn Transaction<R>,
}

/// The decision about a transaction over several stores as a whole.
pub trait Decision {
    /// Decides about all stores, after the plan of each has [decided](Transaction::decide): all
    /// keys of all stores are held. Returns `false` if nothing is to be changed. Called once.
    fn decide(&mut self) -> bool;

    /// Confirms the decision when all changes are made, immediately before they become visible.
    /// Returns `false` if everything is to be undone. Called at most once.
    fn confirm(&mut self) -> bool;
}

/// The decision about a transaction of which the plan of its only store decides.
struct Agreed;

impl Decision for Agreed {
    fn decide(&mut self) -> bool {
        true
    }

    fn confirm(&mut self) -> bool {
        true
    }
}

/// Runs a transaction like [`Provided::transact`](crate::Provided::transact) over several stores,
/// as one step: once a reader has seen a change in one store, every reader that looks afterwards
/// sees all of them in all stores. All stores are different, and up to [`MOST_STORES`].
///
/// A plan is told whether its part is released before the keys of its store are released; other
/// stores may have released theirs then.
///
/// # Panics
/// If a store is there twice, or there are too many.
pub fn transact_all<R: Release>(
    parts: &mut [Part<'_, R>],
    decision: &mut dyn Decision,
) -> Result<bool, Busy> {
    let address = |part: &Part<'_, R>| ptr::from_ref(part.store).addr();
    assert!(parts.len() <= MOST_STORES, "a transaction of many stores");
    // The one order in which all threads take stores.
    parts.sort_unstable_by_key(address);
    assert!(
        parts
            .windows(2)
            .all(|pair| address(&pair[0]) < address(&pair[1])),
        "each store is there once"
    );
    if let [only] = parts {
        return run(&mut [Member::of_part(only)], decision);
    }
    // The members are dropped in this order, the leader last (BATCH-7).
    let mut members: Vec<_> = parts.iter_mut().map(Member::of_part).collect();
    if let Some((leader, others)) = members.split_last_mut() {
        for other in others {
            other.open.batch.follow(&leader.open.batch);
        }
    }
    run(&mut members, decision)
}

/// [`Provided::transact`](crate::Provided::transact) for any store that can step.
pub(crate) fn transact<R: Release, S: Stepwise<R> + ?Sized>(
    store: &S,
    keys: &[&[u8]],
    pinning: Pinning<'_>,
    plan: &mut dyn Transaction<R>,
) -> Result<bool, Busy> {
    run(&mut [Member::new(store, keys, pinning, plan)], &mut Agreed)
}

/// Runs a transaction over stores that ascend by their addresses. The caller drops the members in
/// this order, which aborts them unless they have committed.
#[inline(always)]
fn run<R: Release, S: Stepwise<R> + ?Sized>(
    members: &mut [Member<'_, R, S>],
    decision: &mut dyn Decision,
) -> Result<bool, Busy> {
    for member in &mut *members {
        member.hold()?;
    }
    if !members.iter_mut().all(Member::decide) || !decision.decide() {
        return Ok(false);
    }
    if !members.iter_mut().all(Member::settle) || !decision.confirm() {
        return Ok(false);
    }
    // The thread is pinned when the state changes: the readers that can no longer see the records
    // before are pinned no later than these are retired. A pin may free memory, so all are made
    // before the first lock is taken.
    for member in &mut *members {
        member.open.pinning.guard();
    }
    commit(members);
    for member in members.iter_mut().skip(1) {
        member.open.pinning.pause();
    }
    members.iter_mut().for_each(Member::release);
    Ok(true)
}

/// Commits the batches, each inside the commit of the one before.
fn commit<R: Release, S: Stepwise<R> + ?Sized>(members: &mut [Member<'_, R, S>]) {
    let Some((member, others)) = members.split_first_mut() else {
        return;
    };
    let Open {
        batch,
        ended,
        store,
        pinning,
    } = &mut member.open;
    *ended = true;
    let guard = pinning.guard();
    member.time = batch.commit(*store, guard, &mut || commit(others));
}

/// The part of a running transaction that concerns one store.
struct Member<'a, R: Release, S: Stepwise<R> + ?Sized> {
    /// The plan, declared before the batch: it is dropped before an abort releases the keys.
    plan: Releasing<'a, R>,
    open: Open<'a, R, S>,
    keys: &'a [&'a [u8]],
    /// The time of the commit.
    time: CommitTime,
}

/// A plan that is told of its end when this is dropped, if it was not told before.
struct Releasing<'a, R: Release>(Option<&'a mut dyn Transaction<R>>);

impl<'a, R: Release> Releasing<'a, R> {
    fn plan(&mut self) -> &mut (dyn Transaction<R> + 'a) {
        &mut **self.0.as_mut().expect("it is told in the end only")
    }

    fn release(&mut self, has_committed: bool) {
        if let Some(plan) = self.0.take() {
            plan.release(has_committed);
        }
    }
}

impl<R: Release> Drop for Releasing<'_, R> {
    fn drop(&mut self) {
        self.release(false);
    }
}

impl<'a, R: Release> Member<'a, R, dyn Stepwise<R> + 'a> {
    fn of_part(part: &'a mut Part<'_, R>) -> Self {
        Member::new(part.store, part.keys, Pinning::Own(None), part.plan)
    }
}

impl<'a, R: Release, S: Stepwise<R> + ?Sized> Member<'a, R, S> {
    #[inline(always)]
    fn new(
        store: &'a S,
        keys: &'a [&'a [u8]],
        pinning: Pinning<'a>,
        plan: &'a mut dyn Transaction<R>,
    ) -> Self {
        debug_assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "keys ascend");
        Member {
            plan: Releasing(Some(plan)),
            open: Open::new(store, keys.len(), pinning),
            keys,
            time: CommitTime(None),
        }
    }

    /// Holds all keys. The thread is not pinned afterwards if the batch pins for itself.
    fn hold(&mut self) -> Result<(), Busy> {
        let (open, plan) = (&mut self.open, self.plan.plan());
        let mut trip = Trip::new();
        for (piece, some) in self.keys.chunks(PIECE).enumerate() {
            open.pinning.pause();
            open.store.prefetch_batch(some, open.pinning.guard());
            for (at, key) in some.iter().enumerate() {
                let may_change = plan.may_change(piece * PIECE + at);
                open.hold(key, may_change, &mut trip)?;
            }
        }
        open.pinning.pause();
        Ok(())
    }

    /// Lets the plan decide. Returns `false` if nothing is to be changed.
    fn decide(&mut self) -> bool {
        let entries = self.open.batch.entries();
        // SAFETY: the keys are held, so the records before live, pinned or not (BATCH-3).
        let found = |index: usize| visible(unsafe { entries[index].before() });
        self.plan.plan().decide(&found)
    }

    /// Makes the changes of all keys. Returns `false` if the batch is to be aborted.
    fn settle(&mut self) -> bool {
        let (open, plan) = (&mut self.open, self.plan.plan());
        for index in 0..self.keys.len() {
            if index % PIECE == PIECE - 1 {
                open.pinning.pause();
            }
            if plan.may_change(index) && !open.settle(index, plan) {
                return false;
            }
        }
        true
    }

    /// Releases the keys of the batch, which has committed.
    fn release(&mut self) {
        self.plan.release(true);
        let Open {
            batch,
            store,
            pinning,
            ..
        } = &mut self.open;
        batch.release(Ending::Commit, self.time, *store, pinning);
        pinning.pause();
    }
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
}
