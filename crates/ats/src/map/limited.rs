//! The stores of maps with limits.
//!
//! They are those of [tables with limits](crate::terms::store::limited). The words of a value
//! follow a [note](crate::terms::note) of bytes.

use super::key::{self, AsKey, Key};
use super::records::{Records, retry};
use super::store::{BaseStore, Decide, MapStore, OrderedStore, Owner, Visit};
use super::value::Value;
use crate::terms::Error;
use crate::terms::TermHost;
use crate::terms::note::Dating;
use crate::terms::store::limited::{Limited, Limits, TimeLeft, milliseconds};
use crate::terms::store::records::TableRecords;
use crate::terms::value::{Values, content};
use ats_mem::{
    BatchPlan, Busy, CaTree, Change, Direction, End, NoSuchKey, Provided, ReadPoint, Record,
    RecordBox, Skipped, Transaction, Upkeep, Walk, When,
};
use ats_store::KeyRange;
use ats_sync::{Guard, pin};
use std::ops::ControlFlow;
use std::sync::Weak;
use std::time::Duration;

/// The values of records with limits.
type Noted = Values<TermHost>;

/// A store of records with limits, for maps.
pub(crate) struct LimitedStore<S>(Limited<S, TermHost>);

/// Returns the dating of a record that is inserted for a time.
pub(super) fn dating_for(time: Duration) -> Dating {
    Dating::After(milliseconds(time))
}

/// Returns the result of a call of records in memory, with too large ones taken out.
fn in_memory<T>(result: Result<T, Error>) -> Result<T, Busy> {
    result.map_err(|error| {
        debug_assert_eq!(error, Error::Busy);
        Busy
    })
}

fn found<T>(result: Result<T, Error>) -> T {
    result.expect("records in memory can be read")
}

impl<S: BaseStore<Noted>> LimitedStore<S> {
    /// Returns an empty store.
    pub(crate) fn new(limits: Limits) -> Self {
        LimitedStore(Limited::new(S::empty(), limits, None))
    }

    /// Returns the change that is made instead of one that a decision has made: a record that is
    /// too large is removed as soon as it is inserted.
    fn fitting(
        &self,
        current: Option<&Record<Noted>>,
        change: Change<Noted>,
        is_too_large: &mut bool,
    ) -> Change<Noted> {
        *is_too_large = matches!(&change, Change::Put(record) if self.0.is_too_large(record));
        match (*is_too_large, current) {
            (false, _) => change,
            (true, Some(_)) => Change::Remove,
            (true, None) => Change::Keep,
        }
    }

    fn count_if_evicted(&self, is_too_large: bool) {
        if is_too_large {
            self.0.count_evicted();
        }
    }
}

/// A plan that inserts no record that is too large.
struct Fitting<'a, S> {
    store: &'a LimitedStore<S>,
    plan: &'a mut dyn BatchPlan<Noted>,
    /// The number of records that are too large.
    too_large: u64,
    /// The index of a key with a record, which must be removed first.
    in_the_way: Option<usize>,
}

impl<S: BaseStore<Noted>> ats_store::BatchPlan<Record<Noted>, RecordBox<Noted>> for Fitting<'_, S> {
    fn decide(&mut self, index: usize, current: Option<&Record<Noted>>) -> Change<Noted> {
        let change = self.plan.decide(index, current);
        let mut is_too_large = false;
        match self.store.fitting(current, change, &mut is_too_large) {
            Change::Remove => {
                self.in_the_way = Some(index);
                Change::Abort
            }
            change => {
                self.too_large += u64::from(is_too_large);
                change
            }
        }
    }

    fn build(&mut self, index: usize, current: Option<&Record<Noted>>) -> Change<Noted> {
        self.plan.build(index, current)
    }
}

/// A transaction that sees no expired record, inserts no record that is too large, and gives the
/// others deadlines.
struct FittingTransaction<'a, 'k, S> {
    store: &'a LimitedStore<S>,
    keys: &'a [&'k [u8]],
    plan: &'a mut dyn Transaction<Noted>,
    /// The number of records that are too large.
    too_large: u64,
}

impl<S: BaseStore<Noted>> Transaction<Noted> for FittingTransaction<'_, '_, S> {
    fn may_change(&self, index: usize) -> bool {
        self.plan.may_change(index)
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Record<Noted>>) -> bool {
        self.plan.decide(&|index| self.store.0.living(found(index)))
    }

    fn change(&mut self, index: usize, record: Option<&Record<Noted>>) -> Change<Noted> {
        // An expired record is left to the sweeps, which count it.
        let found = self.store.0.living(record);
        let change = self.plan.change(index, found);
        let mut is_too_large = false;
        let change = self.store.fitting(found, change, &mut is_too_large);
        self.too_large += u64::from(is_too_large);
        // A record that does not fit was taken out.
        let dated = self
            .store
            .0
            .dated_if_it_fits(self.keys[index], record, change);
        dated.unwrap_or(Change::Abort)
    }

    fn release(&mut self, has_committed: bool) {
        if has_committed {
            (0..self.too_large).for_each(|_| self.store.0.count_evicted());
        }
        self.plan.release(has_committed);
    }
}

impl<S: BaseStore<Noted>> MapStore for LimitedStore<S> {
    type Of = Noted;

    fn another(&self) -> Self {
        Self::new(self.0.limits())
    }

    fn set_owner<O: Owner>(&mut self, owner: Weak<O>) {
        self.0.records_mut().set_owner(owner.clone());
        self.0.set_owner(owner);
    }

    #[inline]
    fn record(key: &[u8], words: &[u64], dating: Dating) -> RecordBox<Noted> {
        RecordBox::in_parts(key, [&[dating.word_of_bytes()], words], false)
    }

    #[inline]
    fn words(record: &Record<Noted>) -> &[u64] {
        content(record)
    }

    #[inline]
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<Noted>> {
        found(self.0.look_up(key, guard))
    }

    fn has_key(&self, key: &[u8], guard: &Guard) -> bool {
        found(TableRecords::has_key(&self.0, key, guard))
    }

    fn get_at<'g>(&'g self, key: &[u8], when: When, guard: &'g Guard) -> Option<&'g Record<Noted>> {
        found(TableRecords::get_at(&self.0, key, when, guard))
    }

    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, Noted>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, NoSuchKey> {
        found(TableRecords::walk(&self.0, walk, guard, visit, pause))
    }

    fn update<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, Noted>,
    ) -> Result<(), Busy> {
        let mut is_too_large = false;
        let mut decide = |current| {
            let change = decide(current);
            self.fitting(current, change, &mut is_too_large)
        };
        in_memory(self.0.update_by(key, None, guard, &mut decide))?;
        self.count_if_evicted(is_too_large);
        Ok(())
    }

    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, Noted>,
    ) -> Result<(), Busy> {
        in_memory(TableRecords::update_end(&self.0, end, guard, decide))
    }

    fn update_long_batch(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<Noted>,
    ) -> Result<bool, Busy> {
        loop {
            let mut fitting = Fitting {
                store: self,
                plan,
                too_large: 0,
                in_the_way: None,
            };
            let is_done = in_memory(self.0.update_batch(keys, None, &mut fitting))?;
            if let Some(index) = fitting.in_the_way {
                // A record may be evicted at any time. The batch then holds the key without one.
                if self.remove(keys[index], &pin())? {
                    self.0.count_evicted();
                }
                continue;
            }
            if is_done {
                (0..fitting.too_large).for_each(|_| self.0.count_evicted());
            }
            return Ok(is_done);
        }
    }

    fn transact(&self, keys: &[&[u8]], plan: &mut dyn Transaction<Noted>) -> Result<bool, Busy> {
        let mut fitting = FittingTransaction {
            store: self,
            keys,
            plan,
            too_large: 0,
        };
        let is_done = Provided::transact(self.0.records(), keys, None, &mut fitting)?;
        in_memory(self.0.after_held(false))?;
        Ok(is_done)
    }

    fn put(&self, key: &[u8], record: RecordBox<Noted>, guard: &Guard) -> Result<bool, Busy> {
        let (mut record, mut was_there) = (Some(record), false);
        self.update(key, guard, &mut |current| {
            was_there = current.is_some();
            record.take().map_or(Change::Keep, Change::Put)
        })?;
        Ok(was_there)
    }

    fn remove(&self, key: &[u8], guard: &Guard) -> Result<bool, Busy> {
        let mut was_there = false;
        self.update(key, guard, &mut |current| {
            was_there = current.is_some();
            current.map_or(Change::Keep, |_| Change::Remove)
        })?;
        Ok(was_there)
    }

    fn count(&self) -> Result<usize, Busy> {
        in_memory(self.0.objects())
    }

    fn about_len(&self) -> usize {
        self.0.about_len().unwrap_or(0)
    }

    fn bytes(&self) -> usize {
        self.0.about_bytes()
    }

    fn begin(&self) -> Result<ReadPoint, Busy> {
        let begun = in_memory(TableRecords::begin(&self.0, &mut || Ok(true)))?;
        Ok(begun.expect("the stores of maps have moments"))
    }

    fn end(&self, read_point: ReadPoint) {
        if let Some(read_points) = TableRecords::read_points(&self.0) {
            read_points.end(read_point);
        }
    }

    fn reclaim(&self, budget: usize, guard: &Guard) -> bool {
        let is_swept = self.0.sweep_slice(budget);
        self.0.upkeep(Upkeep::Queries, budget, guard) && is_swept
    }

    fn join_idle(&self, guard: &Guard) -> bool {
        let is_one_part = self.0.upkeep(Upkeep::Parts, 0, guard);
        self.0.tidy_lists() && is_one_part
    }

    fn free_some(&mut self, budget: usize) -> bool {
        self.0.records_mut().free_some(budget)
    }
}

impl OrderedStore for LimitedStore<CaTree<Noted>> {
    fn at_end<'g>(&'g self, direction: Direction, guard: &'g Guard) -> Option<&'g Record<Noted>> {
        found(TableRecords::beside(&self.0, None, direction, guard))
            .ok()
            .flatten()
    }

    fn skip_at_once<'g>(
        &'g self,
        range: KeyRange<'_>,
        most: usize,
        guard: &'g Guard,
    ) -> Option<Skipped<'g, Noted>> {
        // The moment of the count is that at which nothing was left that had expired.
        self.0.sweep_all().ok()?;
        self.0
            .records()
            .skip_at_once(range, Direction::Up, most, guard)
    }

    fn skip<'g>(
        &'g self,
        range: KeyRange<'_>,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Skipped<'g, Noted> {
        let records = self.0.records();
        ats_mem::Records::skip(records, range, Direction::Up, most, guard, pause)
    }
}

impl<S: BaseStore<Noted>, K: Key, V: Value> Records<LimitedStore<S>, K, V> {
    pub(super) fn time_left(&self, key: &impl AsKey<K>) -> Option<TimeLeft> {
        key::with_bytes(key, |key| {
            let guard = pin();
            let limited = &self.store().get(&guard).0;
            let record = found(TableRecords::get(limited.records(), key, &guard));
            let left = record.and_then(Limited::<S, TermHost>::time_left);
            left.map(|(left, _)| left)
        })
    }

    pub(super) fn touch(&self, key: &impl AsKey<K>, dating: Dating) -> bool {
        key::with_bytes(key, |key| {
            retry(|| {
                let guard = pin();
                in_memory(self.store().get(&guard).0.touch(key, dating, &guard))
            })
        })
    }

    pub(super) fn expired(&self) -> u64 {
        self.store().get(&pin()).0.expired()
    }

    pub(super) fn evicted(&self) -> u64 {
        self.store().get(&pin()).0.evicted()
    }
}
