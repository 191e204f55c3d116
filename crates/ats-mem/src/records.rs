//! The one interface behind which record stores are exchanged: what a store must give.
//!
//! A table needs little of a store: find a record, change one key atomically, change several keys
//! as one, and walk. The meaning of the bytes is the table's business. Two stores implement it
//! here, [`CaTree`](crate::catree::CaTree) (ordered by key bytes) and
//! [`HashTable`](crate::hash::HashTable); others can. A store gives [`Stepwise`], from which
//! batches are made, and the first functions of [`Records`]; the others have a body, for stores
//! that can do no better. [`Provided`](crate::Provided) has what callers use besides.

use crate::batch::{self, Stepwise};
use crate::change::{Busy, Change};
use crate::figures::Totals;
use crate::moments::{Moment, When};
use crate::passing::{Passing, go_on};
use crate::record::{Record, RecordBox, Release};
use crate::short_key::ShortKey;
use crate::walk::Walk;
use ats_store::{Direction, End, KeyRange, SlotAnswer, WalkFrom};
use ats_sync::Guard;
use std::ops::ControlFlow;

/// The key given to a walk of an unordered store is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchKey;

/// The outcome of [skipping](Records::skip) records.
pub type Skipped<'g, R> = ats_store::Skipped<&'g Record<R>>;

/// The record beside a key, if there is one.
pub type Beside<'g, R> = Result<Option<&'g Record<R>>, NoSuchKey>;

/// The place to which a walk has come: see [`Records::neighbour`].
pub enum Neighbour<'g, R: Release> {
    /// A key alone, which was said to do. Its record was not looked at.
    Key(ShortKey),
    /// A record.
    Record(&'g Record<R>),
}

/// Work that is put off until nobody waits for it: see [`Records::upkeep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Remove what was kept for walks, unless the store is [fixed](Records::fix). To be asked for
    /// after [`unfix`](Records::unfix), as often as it takes.
    Walks,
    /// Give back records that were kept for queries, and that no query needs any more. To be asked
    /// for after [`end`](crate::Provided::end), as often as it takes, and now and then while
    /// queries run.
    Queries,
    /// Let parts that no writer came to since the last call drift together: the decay by which a
    /// store that is only read, or not used, gets fewer parts again. A bounded amount of work,
    /// whatever the budget; to be asked for now and then.
    Parts,
}

/// The number of times that a caller that needs a number of one moment [counts](Records::skip) a
/// range, after which it asks for that [at once](Records::skip_at_once) again. When that did not
/// help, it walks over the records of a [moment](Records::begin).
pub const COUNTINGS: u32 = 3;

/// A store of records.
///
/// `get`, changes and batches are linearizable. Walks are not snapshots, unless they show a moment:
/// they look at one key after the other, each as of the moment it is looked at. So a key that was
/// there throughout is not passed over, a key that was missing throughout is not returned, and a
/// walk sees every write that had returned before it began. But what [`beside`](Records::beside)
/// returns need not have been the next record at any single moment.
///
/// Readers (`get` and the walks) take no lock, write no shared memory and never wait. References
/// handed out live as long as the guard.
pub trait Records<R: Release>: Stepwise<R> + Send + Sync {
    /// Returns `true` if the order of the store is that of its keys. Then walks begin at any key
    /// and go in both directions.
    fn is_ordered(&self) -> bool;

    /// The record of `key`, as of the last committed write.
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>>;

    /// Visits records in the order of the store until `visit` breaks. Also asks `pause` now and
    /// then, at least after so much work as finding a few records is, whether there were any or
    /// not, unless parts without records are never large; if that breaks, returns a position at
    /// which another walk goes on.
    ///
    /// A key that is present throughout the walks that go on from each other is met exactly once.
    /// `visit` must not call the store. [`NoSuchKey`] only of [`WalkFrom::Known`].
    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, NoSuchKey>;

    /// Changes the record at an end of the store atomically.
    ///
    /// Like [`update`](crate::Provided::update), but of the key that is the first, or the last, at
    /// the moment of the change: `decide` sees its record, or nothing if the store is empty at that
    /// moment, after which it can change nothing. A new record must have the same key.
    ///
    /// An unordered store has no end. There `decide` sees *some* record, and nothing only if no
    /// record was there throughout the call. Removing all records by and by takes O(1) for each,
    /// amortised.
    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy>;

    /// The number of objects, and of the bytes that they take, at one moment between the begin and
    /// the end of the call: all that readers have seen before is in it, and all that is in it
    /// readers see afterwards. The objects of a batch are in it together. O(parts with a lock of
    /// their own).
    ///
    /// Writers do not pay for it. While many threads write, it keeps them from entering the store
    /// for the time of a look at each part. [`Busy`] if a thread that must not wait for long would
    /// have to.
    fn totals(&self) -> Result<Totals, Busy>;

    /// The same, about: exact when no update is running, else within what the updates that run
    /// change. Keeps no thread waiting. O(parts with a lock of their own).
    fn estimate(&self) -> Totals;

    /// The record of `key` that a query of a moment sees.
    fn get_at<'g>(&'g self, key: &[u8], when: When, guard: &'g Guard) -> Option<&'g Record<R>> {
        let _ = when;
        self.get(key, guard)
    }

    /// Does what [`get`](Records::get) does, for a key that the thread has likely asked for by this
    /// function shortly before.
    #[inline]
    fn get_again<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        self.get(key, guard)
    }

    /// Says that a call for this key will follow, so that what it will touch can be fetched
    /// meanwhile. A hint.
    #[inline]
    fn prefetch(&self, key: &[u8]) {
        let _ = key;
    }

    /// Puts a record of `key`, whatever is there. Like [`update`](crate::Provided::update) with a
    /// decision that does not look at the current record, so that a store need not look at it
    /// either. Returns `true` if there was one.
    fn put(&self, key: &[u8], record: RecordBox<R>, guard: &Guard) -> Result<bool, Busy> {
        batch::put(self, key, record, guard)
    }

    /// Removes the record of `key`. Returns `true` if there was one.
    fn remove(&self, key: &[u8], guard: &Guard) -> Result<bool, Busy> {
        batch::remove(self, key, guard)
    }

    /// The record next to a key in a direction, or the first or the last one. An unordered store
    /// needs a key that is there, or was deleted since it was fixed, and goes up in any case.
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

    /// Does what [`beside`](Records::beside) does. Returns the key alone if the store can tell it
    /// without a look at its record, and if `will_do` says of the key, after it was found, that it
    /// will do.
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
    /// store do not depend on what is inserted meanwhile. In a store that has an order a slot is
    /// the record at that place.
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

    /// Does what [`skip`](Records::skip) does by a look at each record, as of a moment or of now.
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

    /// Does what [`skip`](Records::skip) does, as of one moment between the begin and the end of
    /// the call: it counts all objects that readers saw then, those of a batch together. Never
    /// pauses.
    ///
    /// `None` if the store cannot tell within some fifty microseconds: it has not counted enough of
    /// the range, which `skip` does; or batches are open all the time; or it has no such ability.
    /// Meanwhile all writers wait. O(log n) and O(parts with a lock of their own).
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
    /// moment until it is [ended](crate::Provided::end): all that was done before this call, all of
    /// a batch or nothing of it, and nothing that comes after the call.
    ///
    /// Records that writers replace or remove meanwhile stay in memory until then. Costs as much as
    /// [`totals`](Records::totals). `None` if the store has no moments: then a query sees each key
    /// as of the moment at which it comes to it.
    ///
    /// If no query runs that has prepared, `prepare` is called first, after which
    /// [`Moments::are_read`](crate::moments::Moments::are_read) says that one does: it can wait for
    /// threads that change values in place without a lock, and returns `true`. A query that does
    /// not need these values as of its moment need not, and returns `false`.
    ///
    /// [`Busy`] as for `totals`, or if `prepare` says so.
    fn begin(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<Option<Moment>, Busy> {
        let _ = prepare;
        Ok(None)
    }

    /// Starts a period in which a walk returns every record that stays, exactly once, and may
    /// continue from a key that was deleted meanwhile. Nests. Waits for removals that have begun. A
    /// store that has an order needs to do nothing for that.
    fn fix(&self) {}

    /// Ends a period started by [`fix`](Records::fix).
    fn unfix(&self) {}

    /// Does up to about `budget` records' worth of work that was put off. Returns `true` if nothing
    /// is left to do.
    fn upkeep(&self, work: Upkeep, budget: usize, guard: &Guard) -> bool {
        let _ = (work, budget, guard);
        true
    }

    /// For tests: from now on one of `splits` writes forces a split of the part it writes to, and
    /// one of `joins` a join; 0 is never. A store that hashes doubles or halves the number of its
    /// locks instead, and gets a few buckets more or less than it should have.
    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        let _ = (splits, joins);
    }
}
