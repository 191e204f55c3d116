//! The functions that all stores of records share, made of those that a store must give.

use crate::batch::{self, Pinning, Transaction, Trip};
use crate::change::{BatchPlan, Busy, Change, DecideMany};
use crate::figures::Memory;
use crate::passing::go_on;
use crate::read_points::{Query, ReadPoint, When};
use crate::record::{Record, Release};
use crate::records::{Beside, NoSuchKey, Records, Upkeep};
use crate::walk::Walk;
use ats_store::{Direction, WalkFrom};
use ats_sync::Guard;
use std::ops::ControlFlow;

/// The functions of every store of [`Records`].
pub trait Provided<R: Release>: Records<R> {
    /// Changes one key atomically.
    ///
    /// `decide` sees the current record and returns the change; it runs under a lock, at most once,
    /// and must not call the store. If it panics, nothing has changed. After `Put` or `Remove` the
    /// old record may still be read by `decide`'s caller until the guard goes.
    fn update<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        batch::update(self, key, Trip::new(), guard, decide)
    }

    /// Changes one key like [`update`](Provided::update), as a change that a query makes. The query
    /// has come to the key, and does not need the record that it replaces or removes any more. So
    /// if no other query runs, the old record is not kept, and the query would find the new one. If
    /// the query has ended, this is the change of any other writer.
    fn update_by<'g>(
        &'g self,
        key: &[u8],
        query: Query,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        batch::update(self, key, Trip::by(query), guard, decide)
    }

    /// Changes one key like [`update`](Provided::update), by a decision that may take long:
    /// `decide` runs without any lock.
    ///
    /// Meanwhile readers of the key find the old record, and its other writers are [`Busy`] after a
    /// while. All other keys go on. Costs three visits to the lock of the key, and a block of
    /// memory.
    fn update_alone<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        batch::update_alone(self, key, guard, decide)
    }

    /// Changes several keys as one: every reader sees all of the changes or none.
    ///
    /// `keys` are distinct and ascending bytewise. Returns `Ok(false)` if the plan answered
    /// `Abort`, after which nothing has changed. `Err(Busy)` also leaves nothing changed, and the
    /// plan may then be asked again for all keys by a later attempt. If it panics, nothing has
    /// changed either.
    ///
    /// From the decision about a key until the batch ends no other writer changes it, also if it is
    /// kept: so all decisions are right at the moment at which the changes become visible. Words of
    /// a value that their owner [changes in place](Record::value_words) may change meanwhile, as
    /// those of any record.
    fn update_batch(
        &self,
        keys: &[&[u8]],
        guard: &Guard,
        plan: &mut dyn BatchPlan<R>,
    ) -> Result<bool, Busy> {
        batch::update_batch(self, keys, Pinning::Callers(guard), plan)
    }

    /// Changes any number of keys like [`update_batch`](Provided::update_batch): pins for some
    /// hundred keys at a time, and not at all while the plan builds. The caller is not pinned, and
    /// keeps the store alive.
    fn update_long_batch(&self, keys: &[&[u8]], plan: &mut dyn BatchPlan<R>) -> Result<bool, Busy> {
        batch::update_batch(self, keys, Pinning::Own(None), plan)
    }

    /// Reads several keys, and changes them by a decision about all of them, as one: no other
    /// writer changes one of them between its reading and the moment at which all changes become
    /// visible. `keys` are distinct and ascending bytewise.
    ///
    /// Returns `Ok(false)` if the plan wants no change, or answers `Abort`; after that, or
    /// `Err(Busy)`, or a panic of the plan, nothing has changed. Costs a block of memory and three
    /// visits to the lock of each key that may change, and one for each other key.
    ///
    /// Without a guard, it pins for some hundred keys at a time, and not at all while the plan
    /// decides. The caller is not pinned then, and keeps the store alive.
    ///
    /// [`transact_all`](batch::transact_all) does so over several stores.
    fn transact(
        &self,
        keys: &[&[u8]],
        guard: Option<&Guard>,
        plan: &mut dyn Transaction<R>,
    ) -> Result<bool, Busy> {
        let pinning = guard.map_or(Pinning::Own(None), Pinning::Callers);
        batch::transact(self, keys, pinning, plan)
    }

    /// Changes several keys like [`update_batch`](Provided::update_batch), by a closure.
    fn update_many(
        &self,
        keys: &[&[u8]],
        guard: &Guard,
        mut decide: &mut DecideMany<'_, R>,
    ) -> Result<bool, Busy> {
        self.update_batch(keys, guard, &mut decide)
    }

    /// Returns the first record in the order of the store.
    #[inline]
    fn first<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>> {
        self.beside(None, Direction::Up, guard).ok().flatten()
    }

    /// Returns the last record in the order of the store. Unordered stores return `first`.
    #[inline]
    fn last<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>> {
        self.beside(None, Direction::Down, guard).ok().flatten()
    }

    /// Returns the record after `key`. Ordered stores accept any key; unordered ones need a key
    /// that is present, or was deleted since the table was fixed.
    #[inline]
    fn next<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Beside<'g, R> {
        self.beside(Some(key), Direction::Up, guard)
    }

    /// Returns the record before `key`. Unordered stores return the same as `next`.
    #[inline]
    fn prev<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Beside<'g, R> {
        self.beside(Some(key), Direction::Down, guard)
    }

    /// Visits the records of a walk that does not pause until `visit` breaks: see
    /// [`walk`](Records::walk).
    fn visit<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) -> Result<(), NoSuchKey> {
        self.walk(walk, guard, visit, &mut go_on)
            .map(|_never_paused| ())
    }

    /// Visits the records after `after`, or all, in the order of the store until `visit` breaks.
    fn scan<'g>(
        &'g self,
        after: Option<&[u8]>,
        when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) -> Result<(), NoSuchKey> {
        let from = after.map_or(WalkFrom::Start, WalkFrom::Known);
        self.visit(Walk::up(from).at(when), guard, visit)
    }

    /// Ends a query. The caller then has the records that were kept for it
    /// [given back](Upkeep::Queries).
    fn end(&self, read_point: ReadPoint) {
        if let Some(read_points) = self.read_points() {
            read_points.end(read_point);
        }
    }

    /// [Gives back](Upkeep::Queries) up to about `budget` records that were kept for queries.
    fn reclaim(&self, budget: usize, guard: &Guard) -> bool {
        self.upkeep(Upkeep::Queries, budget, guard)
    }

    /// Removes up to about `budget` deleted records that were kept [for walks](Upkeep::Walks).
    fn tidy(&self, budget: usize, guard: &Guard) -> bool {
        self.upkeep(Upkeep::Walks, budget, guard)
    }

    /// Joins [parts](Upkeep::Parts) that no writer came to.
    fn join_idle(&self, guard: &Guard) -> bool {
        self.upkeep(Upkeep::Parts, 0, guard)
    }

    /// Returns the approximate number of objects: see [`estimate`](Records::estimate).
    fn len(&self) -> usize {
        usize::try_from(self.estimate().objects).unwrap_or(0)
    }

    /// Returns `true` if there is no object.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the approximate memory in bytes: see [`estimate`](Records::estimate).
    fn memory(&self) -> Memory {
        let totals = self.estimate();
        Memory {
            records: usize::try_from(totals.bytes).unwrap_or(0),
            structure: usize::try_from(totals.structure).unwrap_or(0),
        }
    }

    /// Returns the sum of [`memory`](Provided::memory).
    fn bytes(&self) -> usize {
        let Memory { records, structure } = self.memory();
        records + structure
    }
}

impl<R: Release, S: Records<R> + ?Sized> Provided<R> for S {}
