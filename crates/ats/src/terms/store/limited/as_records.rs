//! The operations of a store with limits: those of its records, which hide what has expired, date
//! new records, and make room.

use super::Limited;
use crate::terms::error::Error;
use crate::terms::store::records::{Decide, TableRecords, Visit, Walked};
use crate::terms::value::{Rec, Values};
use ats_mem::batch;
use ats_mem::read_points::{Query, ReadPoints};
use ats_mem::{BatchPlan, Busy, Change, ReadPoint, RecordBox, Totals, Upkeep, Walk, When};
use ats_store::{End, SlotAnswer};
use ats_sync::Guard;
use ats_term::image::Host;
use std::ops::ControlFlow;

/// A plan that does not see expired records, and whose new records get deadlines.
struct Dated<'a, 'k, H: Host, S> {
    store: &'a Limited<S, H>,
    keys: &'a [&'k [u8]],
    plan: &'a mut dyn BatchPlan<Values<H>>,
    /// `true` if a new record is larger than the bound.
    is_larger: bool,
}

impl<H: Host, S: TableRecords<H>> ats_store::BatchPlan<Rec<H>, RecordBox<Values<H>>>
    for Dated<'_, '_, H, S>
{
    fn decide(&mut self, index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        let change = self.plan.decide(index, Limited::<S, H>::alive(current));
        self.within(index, current, change)
    }

    fn build(&mut self, index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        let change = self.plan.build(index, Limited::<S, H>::alive(current));
        self.within(index, current, change)
    }
}

impl<H: Host, S: TableRecords<H>> Dated<'_, '_, H, S> {
    /// Returns the change as the store makes it, or undoes the batch if the new record is larger
    /// than the bound.
    fn within(
        &mut self,
        index: usize,
        current: Option<&Rec<H>>,
        change: Change<Values<H>>,
    ) -> Change<Values<H>> {
        let dated = (self.store).dated_within(self.keys[index], current, change);
        self.is_larger |= dated.is_none();
        dated.unwrap_or(Change::Abort)
    }
}

impl<H: Host, S: TableRecords<H>> TableRecords<H> for Limited<S, H> {
    fn is_ordered(&self) -> bool {
        self.records.is_ordered()
    }

    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        Ok(self.counted(self.look_up(key, guard)?))
    }

    fn get_again<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        let found = self.records.get_again(key, guard)?;
        Ok(self.counted(found.filter(|record| self.read(record))))
    }

    fn has_key(&self, key: &[u8], guard: &Guard) -> Result<bool, Error> {
        let found = self.records.get(key, guard)?;
        Ok(found.is_some_and(|record| Self::is_alive(record)))
    }

    fn get_at<'g>(
        &'g self,
        key: &[u8],
        when: When,
        guard: &'g Guard,
    ) -> Result<Option<&'g Rec<H>>, Error> {
        let found = self.records.get_at(key, when, guard)?;
        Ok(found.filter(|record| !when.is_now() || Self::is_alive(record)))
    }

    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Walked, Error> {
        if !walk.when.is_now() {
            return self.records.walk(walk, guard, visit, pause);
        }
        let mut visit = |record: &'g Rec<H>| {
            if Self::is_alive(record) {
                visit(record)
            } else {
                ControlFlow::Continue(())
            }
        };
        self.records.walk(walk, guard, &mut visit, pause)
    }

    fn update_by<'g>(
        &'g self,
        key: &[u8],
        by: Option<Query>,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        let mut is_larger = false;
        self.records.update_by(key, by, guard, &mut |current| {
            let dated = self.dated_within(key, current, decide(Self::alive(current)));
            is_larger = dated.is_none();
            dated.unwrap_or(Change::Keep)
        })?;
        self.after_change(is_larger)
    }

    fn update_alone<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        let mut is_larger = false;
        self.records.update_alone(key, guard, &mut |current| {
            let dated = self.dated_within(key, current, decide(Self::alive(current)));
            is_larger = dated.is_none();
            dated.unwrap_or(Change::Keep)
        })?;
        self.after_change(is_larger)
    }

    fn update_batch(
        &self,
        keys: &[&[u8]],
        guard: Option<&Guard>,
        plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        let mut dated = Dated {
            store: self,
            keys,
            plan,
            is_larger: false,
        };
        let is_done = self.records.update_batch(keys, guard, &mut dated)?;
        self.after_change(dated.is_larger)?;
        Ok(is_done)
    }

    fn stepwise(&self) -> Result<&dyn batch::Stepwise<Values<H>>, Error> {
        self.records.stepwise()
    }

    fn living<'r>(&self, record: Option<&'r Rec<H>>) -> Option<&'r Rec<H>> {
        Self::alive(record)
    }

    fn dated_if_it_fits(
        &self,
        key: &[u8],
        found: Option<&Rec<H>>,
        change: Change<Values<H>>,
    ) -> Option<Change<Values<H>>> {
        self.dated_within(key, found, change)
    }

    fn after_held(&self, is_larger: bool) -> Result<(), Error> {
        self.after_change(is_larger)
    }

    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        loop {
            let mut has_expired = false;
            self.records.update_end(end, guard, &mut |current| {
                has_expired = current.is_some_and(|current| self.note_if_expired(current));
                if has_expired {
                    return Change::Remove;
                }
                let change = decide(current);
                match current {
                    Some(record) => self.dated(record.key(), current, change),
                    None => change,
                }
            })?;
            if !has_expired {
                return Ok(());
            }
        }
    }

    fn objects(&self) -> Result<usize, Error> {
        self.sweep_all()?;
        self.records.objects()
    }

    fn about_bytes(&self) -> usize {
        self.records.about_bytes() + self.bytes_of_lists()
    }

    fn about_len(&self) -> Option<usize> {
        self.records.about_len()
    }

    fn prefetch(&self, key: &[u8]) {
        self.records.prefetch(key);
    }

    fn prefetch_records(&self, keys: &[&[u8]], guard: &Guard) {
        self.records.prefetch_records(keys, guard);
    }

    fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Rec<H>),
    ) -> Result<SlotAnswer, Error> {
        if self.is_ordered() {
            // A slot is the record of that rank.
            self.sweep_all()?;
        }
        self.records.slot(index, guard, &mut |record| {
            if Self::is_alive(record) {
                visit(record);
            }
        })
    }

    fn totals(&self) -> Result<Option<Totals>, Error> {
        self.sweep_all()?;
        let totals = self.records.totals()?;
        let bytes = self.bytes_of_lists() as i64;
        Ok(totals.map(|totals| Totals {
            structure: totals.structure + bytes,
            ..totals
        }))
    }

    fn read_points(&self) -> Option<&ReadPoints<Values<H>>> {
        self.records.read_points()
    }

    fn begin(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<Option<ReadPoint>, Error> {
        self.sweep_all()?;
        self.records.begin(prepare)
    }

    fn fix(&self) {
        self.records.fix();
    }

    fn unfix(&self) {
        self.records.unfix();
    }

    fn upkeep(&self, work: Upkeep, budget: usize, guard: &Guard) -> bool {
        self.records.upkeep(work, budget, guard)
    }

    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        self.records.force_adaptation(splits, joins);
    }
}
