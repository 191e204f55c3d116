//! The one interface behind which record stores are exchanged.
//!
//! A table needs little of a store: find a record, change one key atomically, change several keys
//! as one, and walk. The meaning of the bytes is the table's business. Two stores implement it
//! here, [`CaTree`](crate::catree::CaTree) (ordered by key bytes) and
//! [`HashTable`](crate::hash::HashTable); other crates may add more.
//!
//! A store implements [`Stepwise`], on which batches are built, and the first functions of
//! [`Records`]. The others have a body, for stores that cannot do better.
//! [`Provided`](crate::Provided) has further functions for callers, made of these.

use crate::batch::{self, Stepwise};
use crate::change::{Busy, Change};
use crate::figures::Totals;
use crate::passing::{Passing, go_on};
use crate::read_points::{ReadPoint, When};
use crate::record::{Record, RecordBox, Release};
use crate::short_key::ShortKey;
use crate::walk::Walk;
use ats_store::{Direction, End, KeyRange, SlotAnswer, WalkFrom};
use ats_sync::Guard;
use std::ops::ControlFlow;

/// The error that the key given to a walk of an unordered store is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchKey;

/// The outcome of [skipping](Records::skip) records.
pub type Skipped<'g, R> = ats_store::Skipped<&'g Record<R>>;

/// The record beside a key, if there is one.
pub type Beside<'g, R> = Result<Option<&'g Record<R>>, NoSuchKey>;

/// The key or the record to which a walk has come: see [`Records::neighbour`].
pub enum Neighbour<'g, R: Release> {
    /// The key that the caller was shown and has accepted. Its record was not read.
    Key,
    /// A record.
    Record(&'g Record<R>),
}

/// Work that is put off until nobody waits for it: see [`Records::upkeep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// The removal of deleted records that were kept for walks, unless the store is
    /// [fixed](Records::fix). The owner asks for it after [`unfix`](Records::unfix), until nothing
    /// is left.
    Walks,
    /// The return of records that were kept for queries, and that no query needs any more. The
    /// owner asks for it after [`end`](crate::Provided::end), until nothing is left, and now and
    /// then while queries run.
    Queries,
    /// A join of parts to which no writer came since the last call: the decay by which a store that
    /// is only read, or not used, gets fewer parts again. A bounded amount of work, for any budget.
    /// The owner asks for it now and then.
    Parts,
}

/// The number of times that a caller that needs the count of one moment [counts](Records::skip) a
/// range, each time before it asks for the count [at once](Records::skip_at_once) again. If that
/// did not help, it walks over the records of a [read point](Records::begin).
pub const COUNTINGS: u32 = 3;

/// A store of records.
///
/// `get`, changes and batches are linearizable. Walks are not snapshots, unless they show a moment:
/// they read one key after the other, each as of the moment at which it is read. So a walk does not
/// miss a key that was present throughout, does not return a key that was absent throughout, and
/// sees every write that had returned before it began. But the record that
/// [`beside`](Records::beside) returns need not have been the next one at any single moment.
///
/// Readers (`get` and the walks) take no lock, write no shared memory and never wait. References
/// handed out live as long as the guard.
pub trait Records<R: Release>: Stepwise<R> + Send + Sync {
    /// Returns `true` if the order of the store is that of its keys. Then walks begin at any key
    /// and go in both directions.
    fn is_ordered(&self) -> bool;

    /// Returns the record of `key`, as of the last committed write.
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>>;

    /// Visits records in the order of the store until `visit` breaks. Also asks `pause` now and
    /// then, at least after as much work as finding a few records takes, even if it found none,
    /// unless parts without records are never large; if that breaks, returns a position at which
    /// another walk goes on.
    ///
    /// A key that is present throughout the walks that go on from each other is met exactly once.
    /// `visit` must not call the store. Fails with [`NoSuchKey`] only from [`WalkFrom::Known`].
    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, NoSuchKey>;

    /// Changes the record at an end of the store atomically.
    ///
    /// Works like [`update`](crate::Provided::update) of the key that is the first, or the last, at
    /// the moment of the change: `decide` sees its record, or nothing if the store is empty at that
    /// moment, after which it can change nothing. A new record must have the same key.
    ///
    /// An unordered store has no end. Its `decide` sees *some* record, and nothing only if no
    /// record was there throughout the call. Removing all records by and by takes O(1) for each,
    /// amortised.
    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy>;

    /// Returns the number of objects, and of the bytes that they take, at one moment between the
    /// begin and the end of the call: the totals include every change that readers have seen
    /// before, and readers see every included change afterwards. They include all objects of a
    /// batch or none. O(parts with a lock of their own).
    ///
    /// Writers do not pay for it when no such call runs. While many threads write, a call keeps
    /// them from entering the store while it reads the counts of each part. Fails with [`Busy`] if
    /// a thread that must not wait for long would have to.
    fn totals(&self) -> Result<Totals, Busy>;

    /// Returns approximate [`totals`](Records::totals): exact if no update is running, else off by
    /// at most the changes of the updates that run. Keeps no thread waiting. O(parts with a lock of
    /// their own).
    fn estimate(&self) -> Totals;

    /// Returns the record of `key` that a query of a moment sees.
    fn get_at<'g>(&'g self, key: &[u8], when: When, guard: &'g Guard) -> Option<&'g Record<R>> {
        let _ = when;
        self.get(key, guard)
    }

    /// Returns the same as [`get`](Records::get), for a key that the thread has likely asked for by
    /// this function shortly before.
    #[inline]
    fn get_again<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        self.get(key, guard)
    }

    /// Hints that a call for this key will follow, so that the memory that it will touch can be
    /// fetched meanwhile.
    #[inline]
    fn prefetch(&self, key: &[u8]) {
        let _ = key;
    }

    /// Puts a record of `key`, which replaces any current one. Works like
    /// [`update`](crate::Provided::update) with a decision that does not look at the current
    /// record, so that a store need not look at it either. Returns `true` if there was one.
    fn put(&self, key: &[u8], record: RecordBox<R>, guard: &Guard) -> Result<bool, Busy> {
        batch::put(self, key, record, guard)
    }

    /// Removes the record of `key`. Returns `true` if there was one.
    fn remove(&self, key: &[u8], guard: &Guard) -> Result<bool, Busy> {
        batch::remove(self, key, guard)
    }

    /// Returns the record next to a key in a direction, or the first or the last one. An unordered
    /// store needs a key that is present, or was deleted since it was fixed, and goes up in any
    /// case.
    fn beside<'g>(
        &'g self,
        key: Option<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
    ) -> Beside<'g, R> {
        let mut first = None;
        let from = key.map_or(WalkFrom::Start, WalkFrom::Known);
        let walk = Walk {
            from,
            direction,
            when: When::NOW,
        };
        let mut visit = |record| {
            first = Some(record);
            ControlFlow::Break(())
        };
        self.walk(walk, guard, &mut visit, &mut go_on)?;
        Ok(first)
    }

    /// Returns the neighbour of a key, like [`beside`](Records::beside): its key alone if the store
    /// knows it without a look at the record and `will_do` accepts the key found, else its record.
    fn neighbour<'g>(
        &'g self,
        key: &[u8],
        direction: Direction,
        guard: &'g Guard,
        will_do: &dyn Fn(&ShortKey) -> bool,
    ) -> Result<Option<Neighbour<'g, R>>, NoSuchKey> {
        let _ = will_do;
        let found = self.beside(Some(key), direction, guard)?;
        Ok(found.map(Neighbour::Record))
    }

    /// Visits the records of slot `index`: the slots, numbered from 0, divide the store, and each
    /// record is in one of them. The number and the content of the slots of a [fixed](Records::fix)
    /// store do not depend on insertions made meanwhile. In a store that has an order a slot is the
    /// record of that rank.
    fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>),
    ) -> SlotAnswer {
        let all = KeyRange::default();
        self.skip(all, Direction::Up, index, guard, &mut go_on)
            .slot(index, visit)
    }

    /// Passes over `most` objects of a range of a store that has an order, or all if they are not
    /// more, from its low end upwards or from its high end downwards, and comes to the next: so it
    /// counts them, or finds the n-th. Asks `pause` now and then, and ends if that breaks.
    ///
    /// The count is exact if no thread writes meanwhile. Otherwise it is off by at most the number
    /// of updates that run meanwhile. The records of a batch count before they can be read. The
    /// record that is returned is always in the range. O(records passed), if a store can do no
    /// better.
    fn skip<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Skipped<'g, R> {
        let now = (When::NOW, guard);
        self.skip_by_walking(key_range, direction, most, now, pause)
    }

    /// Skips objects like [`skip`](Records::skip) by a look at each record, as of a moment or of
    /// now.
    fn skip_by_walking<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        (when, guard): (When, &'g Guard),
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Skipped<'g, R> {
        let mut passing = Passing::new(key_range, direction, most);
        let walk = Walk::of_range(key_range, direction).at(when);
        let mut visit = |record| {
            let objects = R::weight(record).objects;
            passing.pass(record, usize::try_from(objects).unwrap_or(0), pause)
        };
        let walked = self.walk(walk, guard, &mut visit, &mut go_on);
        debug_assert_eq!(walked, Ok(None), "a range needs an order");
        passing.end()
    }

    /// Skips objects like [`skip`](Records::skip), as of one moment between the begin and the end
    /// of the call: it counts all objects that readers saw then, all of a batch or none. Never
    /// pauses.
    ///
    /// Returns `None` if the store cannot count within some fifty microseconds, because it has not
    /// counted enough of the range, which `skip` does, or because batches are open all the time;
    /// also if the store has no such ability. Meanwhile all writers wait. O(log n) and O(parts with
    /// a lock of their own).
    fn skip_at_once<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
    ) -> Option<Skipped<'g, R>> {
        let _ = (key_range, direction, most, guard);
        None
    }

    /// Begins a query of one moment. The functions that take a [`When`] show each key as of this
    /// moment until it is [ended](crate::Provided::end): all changes made before this call, all of
    /// a batch or nothing of it, and no change made after the call.
    ///
    /// Records that writers replace or remove meanwhile stay in memory until then. Costs as much as
    /// [`totals`](Records::totals). Returns `None` if the store has no moments: then a query sees
    /// each key as of the moment at which it comes to it.
    ///
    /// If no query runs that has prepared, `prepare` is called first, after which
    /// [`ReadPoints::are_read`](crate::read_points::ReadPoints::are_read) says that one does: it
    /// can wait for threads that change values in place without a lock, and returns `true`. A query
    /// that does not need these values as of its moment need not, and returns `false`.
    ///
    /// Fails with [`Busy`] like `totals`, or if `prepare` does.
    fn begin(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<Option<ReadPoint>, Busy> {
        let _ = prepare;
        Ok(None)
    }

    /// Starts a period in which a walk returns every record that stays, exactly once, and may
    /// continue from a key that was deleted meanwhile. Nests. Waits for removals that have begun. A
    /// store that has an order needs to do nothing for that.
    fn fix(&self) {}

    /// Ends a period started by [`fix`](Records::fix).
    fn unfix(&self) {}

    /// Does deferred work for up to about `budget` records. Returns `true` if nothing is left to
    /// do.
    fn upkeep(&self, work: Upkeep, budget: usize, guard: &Guard) -> bool {
        let _ = (work, budget, guard);
        true
    }

    /// Forces adaptation in tests: from now on one of `splits` writes forces a split of the part it
    /// writes to, and one of `joins` a join; 0 is never. A store that hashes doubles or halves the
    /// number of its locks instead, and gets a few buckets more or less than it should have.
    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        let _ = (splits, joins);
    }
}
