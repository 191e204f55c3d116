//! Records in a store of [`ats_mem::Records`], whose reads cannot fail.
//!
//! Functions of single keys are always inlined into their callers, so that only the call of the
//! store remains.

use super::records::{Decide, StepTo, TableRecords, Visit, Walked};
use crate::terms::error::Error;
use crate::terms::value::{Rec, Values};
use ats_mem::batch;
use ats_mem::read_points::{Query, ReadPoints};
use ats_mem::{
    BatchPlan, Beside, Busy, Provided, ReadPoint, RecordBox, Records, ShortKey, Skipped, Totals,
    Upkeep, Walk, When,
};
use ats_store::{Direction, End, KeyRange, SlotAnswer};
use ats_sync::Guard;
use ats_term::image::Host;
use std::ops::ControlFlow;

impl<H: Host, S: Records<Values<H>>> TableRecords<H> for S {
    fn is_ordered(&self) -> bool {
        Records::is_ordered(self)
    }

    #[inline(always)]
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        Ok(Records::get(self, key, guard))
    }

    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Walked, Error> {
        Ok(Records::walk(self, walk, guard, visit, pause))
    }

    #[inline(always)]
    fn update_by<'g>(
        &'g self,
        key: &[u8],
        by: Option<Query>,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        Ok(match by {
            None => Provided::update(self, key, guard, decide),
            Some(query) => Provided::update_by(self, key, query, guard, decide),
        }?)
    }

    fn update_alone<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        Ok(Provided::update_alone(self, key, guard, decide)?)
    }

    fn update_batch(
        &self,
        keys: &[&[u8]],
        guard: Option<&Guard>,
        plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        Ok(match guard {
            Some(guard) => Provided::update_batch(self, keys, guard, plan),
            None => self.update_long_batch(keys, plan),
        }?)
    }

    fn stepwise(&self) -> Result<&dyn batch::Stepwise<Values<H>>, Error> {
        Ok(self)
    }

    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        Ok(Records::update_end(self, end, guard, decide)?)
    }

    fn objects(&self) -> Result<usize, Error> {
        let totals = Records::totals(self)?;
        Ok(usize::try_from(totals.objects).unwrap_or(0))
    }

    fn about_bytes(&self) -> usize {
        self.bytes()
    }

    fn about_len(&self) -> Option<usize> {
        Some(self.len())
    }

    #[inline(always)]
    fn put(&self, key: &[u8], record: RecordBox<Values<H>>, guard: &Guard) -> Result<(), Error> {
        Ok(Records::put(self, key, record, guard).map(drop)?)
    }

    #[inline(always)]
    fn remove(&self, key: &[u8], guard: &Guard) -> Result<(), Error> {
        Ok(Records::remove(self, key, guard).map(drop)?)
    }

    #[inline(always)]
    fn get_at<'g>(
        &'g self,
        key: &[u8],
        when: When,
        guard: &'g Guard,
    ) -> Result<Option<&'g Rec<H>>, Error> {
        Ok(Records::get_at(self, key, when, guard))
    }

    #[inline(always)]
    fn get_again<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        Ok(Records::get_again(self, key, guard))
    }

    #[inline(always)]
    fn prefetch(&self, key: &[u8]) {
        Records::prefetch(self, key);
    }

    fn prefetch_records(&self, keys: &[&[u8]], guard: &Guard) {
        batch::Stepwise::prefetch_records(self, keys, guard);
    }

    #[inline(always)]
    fn beside<'g>(
        &'g self,
        key: Option<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
    ) -> Result<Beside<'g, Values<H>>, Error> {
        Ok(Records::beside(self, key, direction, guard))
    }

    #[inline(always)]
    fn neighbour<'g>(
        &'g self,
        key: &[u8],
        direction: Direction,
        guard: &'g Guard,
        will_do: &dyn Fn(&ShortKey) -> bool,
    ) -> Result<StepTo<'g, H>, Error> {
        Ok(Records::neighbour(self, key, direction, guard, will_do))
    }

    fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Rec<H>),
    ) -> Result<SlotAnswer, Error> {
        Ok(Records::slot(self, index, guard, visit))
    }

    fn skip<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Skipped<'g, Values<H>>, Error> {
        Ok(Records::skip(
            self, key_range, direction, most, guard, pause,
        ))
    }

    fn skip_at_once<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
    ) -> Option<Skipped<'g, Values<H>>> {
        Records::skip_at_once(self, key_range, direction, most, guard)
    }

    fn totals(&self) -> Result<Option<Totals>, Error> {
        Ok(Some(Records::totals(self)?))
    }

    #[inline(always)]
    fn read_points(&self) -> Option<&ReadPoints<Values<H>>> {
        batch::Stepwise::read_points(self)
    }

    fn begin(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<Option<ReadPoint>, Error> {
        Ok(Records::begin(self, prepare)?)
    }

    fn fix(&self) {
        Records::fix(self);
    }

    fn unfix(&self) {
        Records::unfix(self);
    }

    fn upkeep(&self, work: Upkeep, budget: usize, guard: &Guard) -> bool {
        Records::upkeep(self, work, budget, guard)
    }

    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        Records::force_adaptation(self, splits, joins);
    }
}
