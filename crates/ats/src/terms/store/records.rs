//! The one interface of the records of a table: those of a store in [memory](super::memory), of a
//! store of [bytes](super::bytes), and of a [read point](crate::terms::HeldReadPoint).
//!
//! The trait has the functions of [`ats_mem::Records`], which can fail here. A store implements the
//! functions without a body, and may override the others.

use crate::terms::error::Error;
use crate::terms::lookup_result::LookupResult;
use crate::terms::value::{Rec, Values};
use ats_mem::batch;
use ats_mem::read_points::{Query, ReadPoints};
use ats_mem::{
    BatchPlan, Beside, Busy, Change, Neighbour, NoSuchKey, Passing, ReadPoint, RecordBox, ShortKey,
    Skipped, Totals, Transaction, Upkeep, Walk, When, go_on,
};
use ats_store::{Direction, End, Error as StoreError, KeyRange, SlotAnswer, WalkFrom};
use ats_sync::Guard;
use ats_term::image::Host;
use std::ops::ControlFlow;

/// A function that is called with each record.
pub(crate) type Visit<'a, 'g, H> = dyn FnMut(&'g Rec<H>) -> ControlFlow<()> + 'a;
/// A function that decides about the change of a key.
pub(crate) type Decide<'a, 'g, H> = dyn FnMut(Option<&'g Rec<H>>) -> Change<Values<H>> + 'a;
/// The result of a step from a key.
pub(crate) type StepTo<'g, H> = Result<Option<Neighbour<'g, Values<H>>>, NoSuchKey>;
/// The position at which a walk has paused, if it has.
pub(crate) type Walked = Result<Option<u64>, NoSuchKey>;

/// The records of a table.
pub(crate) trait TableRecords<H: Host>: Send + Sync {
    /// Returns `true` if the records are in key order.
    fn is_ordered(&self) -> bool;

    /// Returns the record of a key.
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error>;

    /// See [`Records::walk`](ats_mem::Records::walk).
    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Walked, Error>;

    /// See [`Provided::update`](ats_mem::Provided::update), and
    /// [`Provided::update_by`](ats_mem::Provided::update_by) for a query.
    fn update_by<'g>(
        &'g self,
        key: &[u8],
        by: Option<Query>,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error>;

    /// See [`Provided::update_batch`](ats_mem::Provided::update_batch), or
    /// [`Provided::update_long_batch`](ats_mem::Provided::update_long_batch) without a guard.
    fn update_batch(
        &self,
        keys: &[&[u8]],
        guard: Option<&Guard>,
        plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error>;

    /// Returns the store in which transactions hold keys. They see its
    /// [living](TableRecords::living) records, and make changes that are
    /// [dated](TableRecords::dated_if_it_fits).
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] by default.
    fn stepwise(&self) -> Result<&dyn batch::Stepwise<Values<H>>, Error> {
        Err(Error::Storage(StoreError::Unsupported))
    }

    /// Runs a transaction in a store that has no [records in memory](TableRecords::stepwise): see
    /// [`Provided::transact`](ats_mem::Provided::transact).
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] by default.
    fn transact(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn Transaction<Values<H>>,
    ) -> Result<bool, Error> {
        let _ = (keys, plan);
        Err(Error::Storage(StoreError::Unsupported))
    }

    /// Returns the record of a held key, unless its objects have expired.
    fn living<'r>(&self, record: Option<&'r Rec<H>>) -> Option<&'r Rec<H>> {
        record
    }

    /// Returns the change of a held key that has this record, as the store makes it; `None` if it
    /// puts more than the store may have.
    fn dated_if_it_fits(
        &self,
        key: &[u8],
        found: Option<&Rec<H>>,
        change: Change<Values<H>>,
    ) -> Option<Change<Values<H>>> {
        let _ = (key, found);
        Some(change)
    }

    /// Ends a call that has changed held keys, and holds none any more.
    ///
    /// # Errors
    /// [`Error::Bound`] if a change [put more](TableRecords::dated_if_it_fits) than the store may
    /// have.
    fn after_held(&self, is_larger: bool) -> Result<(), Error> {
        let _ = is_larger;
        Ok(())
    }

    /// See [`Records::update_end`](ats_mem::Records::update_end).
    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error>;

    /// Returns the number of objects at one moment.
    fn objects(&self) -> Result<usize, Error>;

    /// Returns the approximate memory of the records, in bytes.
    fn about_bytes(&self) -> usize;

    /// Returns the approximate number of records, if they can be counted without a look at each.
    fn about_len(&self) -> Option<usize> {
        None
    }

    /// Changes one key like [`update_by`](TableRecords::update_by), by a decision that may take
    /// long: no lock is held meanwhile, only the key. A store of bytes decides itself how long it
    /// holds more.
    fn update_alone<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        self.update_by(key, None, guard, decide)
    }

    /// Puts a record of a key, which replaces any current one.
    #[inline]
    fn put(&self, key: &[u8], record: RecordBox<Values<H>>, guard: &Guard) -> Result<(), Error> {
        let mut record = Some(record);
        self.update_by(key, None, guard, &mut |_| {
            Change::Put(record.take().expect("put once"))
        })
    }

    /// Removes all objects of a key. [Cells](crate::terms::cells) need not be stopped: a change
    /// that comes too late counts as done before.
    #[inline]
    fn remove(&self, key: &[u8], guard: &Guard) -> Result<(), Error> {
        self.update_by(key, None, guard, &mut |current| match current {
            Some(_) => Change::Remove,
            None => Change::Keep,
        })
    }

    /// Returns the record of a key that a query of a moment sees.
    fn get_at<'g>(
        &'g self,
        key: &[u8],
        when: When,
        guard: &'g Guard,
    ) -> Result<Option<&'g Rec<H>>, Error> {
        let _ = when;
        self.get(key, guard)
    }

    /// Returns the same as [`get`](TableRecords::get), for a key that the process has likely asked
    /// for shortly before.
    #[inline]
    fn get_again<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        self.get(key, guard)
    }

    /// Returns `true` if there is a record of a key, without the effects that reading it has.
    #[inline]
    fn has_key(&self, key: &[u8], guard: &Guard) -> Result<bool, Error> {
        Ok(self.get(key, guard)?.is_some())
    }

    /// Hints that a call for this key will follow.
    #[inline]
    fn prefetch(&self, key: &[u8]) {
        let _ = key;
    }

    /// Hints that look-ups of these keys will follow.
    fn prefetch_records(&self, keys: &[&[u8]], guard: &Guard) {
        let _ = (keys, guard);
    }

    /// See [`Records::beside`](ats_mem::Records::beside).
    fn beside<'g>(
        &'g self,
        key: Option<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
    ) -> Result<Beside<'g, Values<H>>, Error> {
        let from = key.map_or(WalkFrom::Start, WalkFrom::Known);
        let walk = Walk {
            from,
            direction,
            when: When::NOW,
        };
        let mut first = None;
        let mut visit = |record| {
            first = Some(record);
            ControlFlow::Break(())
        };
        let walked = self.walk(walk, guard, &mut visit, &mut go_on)?;
        Ok(walked.map(|_never_paused| first))
    }

    /// See [`Records::neighbour`](ats_mem::Records::neighbour).
    fn neighbour<'g>(
        &'g self,
        key: &[u8],
        direction: Direction,
        guard: &'g Guard,
        will_do: &dyn Fn(&ShortKey) -> bool,
    ) -> Result<StepTo<'g, H>, Error> {
        let _ = will_do;
        let found = self.beside(Some(key), direction, guard)?;
        Ok(found.map(|record| record.map(Neighbour::Record)))
    }

    /// See [`Records::slot`](ats_mem::Records::slot). The slots of records without order are their
    /// keys, one by one, if there is nothing better. O(index).
    fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Rec<H>),
    ) -> Result<SlotAnswer, Error> {
        let all = KeyRange::default();
        let skipped = self.skip(all, Direction::Up, index, guard, &mut go_on)?;
        Ok(skipped.slot(index, visit))
    }

    /// See [`Records::skip`](ats_mem::Records::skip).
    fn skip<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Skipped<'g, Values<H>>, Error> {
        let now = (When::NOW, guard);
        self.skip_by_walking(key_range, direction, most, now, pause)
    }

    /// Skips objects like [`skip`](TableRecords::skip) by a look at each record, as of a moment or
    /// of now.
    fn skip_by_walking<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        (when, guard): (When, &'g Guard),
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Skipped<'g, Values<H>>, Error> {
        let (is_ordered, mut passing) =
            (self.is_ordered(), Passing::new(key_range, direction, most));
        let mut visit = |record| {
            let objects = if is_ordered {
                LookupResult::new(record).count()
            } else {
                1
            };
            passing.pass(record, objects, pause)
        };
        let walk = Walk::of_range(key_range, direction).at(when);
        let walked = self.walk(walk, guard, &mut visit, &mut go_on)?;
        debug_assert_eq!(walked, Ok(None), "no key must be known");
        Ok(passing.end())
    }

    /// See [`Records::skip_at_once`](ats_mem::Records::skip_at_once).
    fn skip_at_once<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
    ) -> Option<Skipped<'g, Values<H>>> {
        let _ = (key_range, direction, most, guard);
        None
    }

    /// Returns the number of objects and bytes at one moment, if they are in memory.
    fn totals(&self) -> Result<Option<Totals>, Error> {
        Ok(None)
    }

    /// Returns the moments of the records, if queries can read one.
    #[inline]
    fn read_points(&self) -> Option<&ReadPoints<Values<H>>> {
        None
    }

    /// See [`Records::begin`](ats_mem::Records::begin).
    fn begin(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<Option<ReadPoint>, Error> {
        let _ = prepare;
        Ok(None)
    }

    /// See [`Records::fix`](ats_mem::Records::fix).
    fn fix(&self) {}

    /// See [`Records::unfix`](ats_mem::Records::unfix).
    fn unfix(&self) {}

    /// See [`Records::upkeep`](ats_mem::Records::upkeep).
    fn upkeep(&self, work: Upkeep, budget: usize, guard: &Guard) -> bool {
        let _ = (work, budget, guard);
        true
    }

    /// See [`Records::force_adaptation`](ats_mem::Records::force_adaptation).
    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        let _ = (splits, joins);
    }
}
