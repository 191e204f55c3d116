//! The one interface of the stores of maps in memory: those of plain records, here, and
//! [those with limits](super::limited).
//!
//! Functions of single keys are always inlined into their callers, so that only the call of the
//! store of records remains.

use crate::terms::note::Dating;
use crate::terms::store::limited::OnFirstEntry;
use ats_mem::{
    BatchPlan, Busy, CaTree, Change, Direction, End, HashTable, NoSuchKey, OnFirstSplit, Plain,
    Provided, ReadPoint, Record, RecordBox, Records, Release, Skipped, Transaction, Upkeep, Walk,
    When, go_on,
};
use ats_store::KeyRange;
use ats_sync::Guard;
use std::ops::ControlFlow;
use std::sync::Weak;

/// A function that decides about the change of a key.
pub(crate) type Decide<'a, 'g, R> = dyn FnMut(Option<&'g Record<R>>) -> Change<R> + 'a;
/// A function that is called with each record.
pub(crate) type Visit<'a, 'g, R> = dyn FnMut(&'g Record<R>) -> ControlFlow<()> + 'a;

/// The owner of a store, who visits it in the background.
pub(crate) trait Owner: OnFirstSplit + OnFirstEntry + 'static {}

/// A store for maps. Its functions are those of [`Records`], if they have the same names.
pub(crate) trait MapStore: Send + Sync + Sized + 'static {
    /// The resources of its records.
    type Of: Release;

    /// Returns an empty store with the same limits.
    fn another(&self) -> Self;

    /// Sets the owner, who visits the store in the background.
    fn set_owner<O: Owner>(&mut self, owner: Weak<O>);

    /// Returns a record. Only a store with limits looks at the dating.
    fn record(key: &[u8], words: &[u64], dating: Dating) -> RecordBox<Self::Of>;

    /// Returns the words of the value of a record.
    fn words(record: &Record<Self::Of>) -> &[u64];

    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<Self::Of>>;

    /// Returns `true` if there is a record of a key, without the effects that reading it has.
    fn has_key(&self, key: &[u8], guard: &Guard) -> bool;

    fn get_at<'g>(
        &'g self,
        key: &[u8],
        when: When,
        guard: &'g Guard,
    ) -> Option<&'g Record<Self::Of>>;

    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, Self::Of>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, NoSuchKey>;

    fn update<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, Self::Of>,
    ) -> Result<(), Busy>;

    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, Self::Of>,
    ) -> Result<(), Busy>;

    fn update_long_batch(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<Self::Of>,
    ) -> Result<bool, Busy>;

    fn transact(&self, keys: &[&[u8]], plan: &mut dyn Transaction<Self::Of>) -> Result<bool, Busy>;

    fn put(&self, key: &[u8], record: RecordBox<Self::Of>, guard: &Guard) -> Result<bool, Busy>;

    fn remove(&self, key: &[u8], guard: &Guard) -> Result<bool, Busy>;

    /// Returns the number of records at one moment.
    fn count(&self) -> Result<usize, Busy>;

    /// Returns the approximate number of records.
    fn about_len(&self) -> usize;

    /// Returns the approximate memory in bytes.
    fn bytes(&self) -> usize;

    /// Begins a moment.
    fn begin(&self) -> Result<ReadPoint, Busy>;

    fn end(&self, read_point: ReadPoint);

    /// Removes up to about `budget` records that were kept for moments, or have expired. Returns
    /// `true` if none is left.
    fn reclaim(&self, budget: usize, guard: &Guard) -> bool;

    /// Does other work in the background. Returns `true` if nothing is left to do.
    fn join_idle(&self, guard: &Guard) -> bool;

    /// Frees up to about `budget` records. Returns `true` when none is left.
    fn free_some(&mut self, budget: usize) -> bool;

    /// Visits the records of a walk that does not pause.
    fn visit<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, Self::Of>,
    ) -> Result<(), NoSuchKey> {
        self.walk(walk, guard, visit, &mut go_on)
            .map(|_never_paused| ())
    }
}

/// A store for maps in the order of their keys.
pub(crate) trait OrderedStore: MapStore {
    /// Returns the record at an end.
    fn at_end<'g>(&'g self, direction: Direction, guard: &'g Guard)
    -> Option<&'g Record<Self::Of>>;

    fn skip_at_once<'g>(
        &'g self,
        range: KeyRange<'_>,
        most: usize,
        guard: &'g Guard,
    ) -> Option<Skipped<'g, Self::Of>>;

    fn skip<'g>(
        &'g self,
        range: KeyRange<'_>,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Skipped<'g, Self::Of>;
}

/// The functions in which trees and hash tables differ.
pub(crate) trait BaseStore<R: Release>: Records<R> + Sized + 'static {
    /// Returns an empty store.
    fn empty() -> Self;

    /// Sets the owner, who visits the store in the background.
    fn set_owner<O: Owner>(&mut self, owner: Weak<O>);

    /// Frees up to about `budget` records. Returns `true` when none is left.
    fn free_some(&mut self, budget: usize) -> bool;
}

impl<R: Release> BaseStore<R> for CaTree<R> {
    fn empty() -> Self {
        CaTree::new()
    }

    fn set_owner<O: Owner>(&mut self, owner: Weak<O>) {
        self.on_first_split(owner);
    }

    fn free_some(&mut self, budget: usize) -> bool {
        CaTree::free_some(self, budget)
    }
}

impl<R: Release> BaseStore<R> for HashTable<R> {
    fn empty() -> Self {
        HashTable::new()
    }

    fn set_owner<O: Owner>(&mut self, _owner: Weak<O>) {}

    fn free_some(&mut self, budget: usize) -> bool {
        HashTable::free_some(self, budget)
    }
}

impl<S: BaseStore<Plain>> MapStore for S {
    type Of = Plain;

    fn another(&self) -> Self {
        S::empty()
    }

    fn set_owner<O: Owner>(&mut self, owner: Weak<O>) {
        BaseStore::set_owner(self, owner);
    }

    #[inline(always)]
    fn record(key: &[u8], words: &[u64], _dating: Dating) -> RecordBox<Plain> {
        RecordBox::new(key, words, false)
    }

    #[inline(always)]
    fn words(record: &Record<Plain>) -> &[u64] {
        record.value()
    }

    #[inline(always)]
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<Plain>> {
        Records::get(self, key, guard)
    }

    #[inline(always)]
    fn has_key(&self, key: &[u8], guard: &Guard) -> bool {
        Records::get(self, key, guard).is_some()
    }

    #[inline(always)]
    fn get_at<'g>(&'g self, key: &[u8], when: When, guard: &'g Guard) -> Option<&'g Record<Plain>> {
        Records::get_at(self, key, when, guard)
    }

    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, Plain>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, NoSuchKey> {
        Records::walk(self, walk, guard, visit, pause)
    }

    #[inline(always)]
    fn update<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, Plain>,
    ) -> Result<(), Busy> {
        Provided::update(self, key, guard, decide)
    }

    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, Plain>,
    ) -> Result<(), Busy> {
        Records::update_end(self, end, guard, decide)
    }

    fn update_long_batch(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<Plain>,
    ) -> Result<bool, Busy> {
        Provided::update_long_batch(self, keys, plan)
    }

    fn transact(&self, keys: &[&[u8]], plan: &mut dyn Transaction<Plain>) -> Result<bool, Busy> {
        Provided::transact(self, keys, None, plan)
    }

    #[inline(always)]
    fn put(&self, key: &[u8], record: RecordBox<Plain>, guard: &Guard) -> Result<bool, Busy> {
        Records::put(self, key, record, guard)
    }

    #[inline(always)]
    fn remove(&self, key: &[u8], guard: &Guard) -> Result<bool, Busy> {
        Records::remove(self, key, guard)
    }

    fn count(&self) -> Result<usize, Busy> {
        let totals = Records::totals(self)?;
        Ok(usize::try_from(totals.objects).unwrap_or(0))
    }

    fn about_len(&self) -> usize {
        Provided::len(self)
    }

    fn bytes(&self) -> usize {
        Provided::bytes(self)
    }

    fn begin(&self) -> Result<ReadPoint, Busy> {
        let begun = Records::begin(self, &mut || Ok(true))?;
        Ok(begun.expect("the stores of maps have moments"))
    }

    fn end(&self, read_point: ReadPoint) {
        Provided::end(self, read_point);
    }

    fn reclaim(&self, budget: usize, guard: &Guard) -> bool {
        self.upkeep(Upkeep::Queries, budget, guard)
    }

    fn join_idle(&self, guard: &Guard) -> bool {
        self.upkeep(Upkeep::Parts, 0, guard)
    }

    fn free_some(&mut self, budget: usize) -> bool {
        BaseStore::free_some(self, budget)
    }
}

impl OrderedStore for CaTree<Plain> {
    fn at_end<'g>(&'g self, direction: Direction, guard: &'g Guard) -> Option<&'g Record<Plain>> {
        Records::beside(self, None, direction, guard).ok().flatten()
    }

    fn skip_at_once<'g>(
        &'g self,
        range: KeyRange<'_>,
        most: usize,
        guard: &'g Guard,
    ) -> Option<Skipped<'g, Plain>> {
        Records::skip_at_once(self, range, Direction::Up, most, guard)
    }

    fn skip<'g>(
        &'g self,
        range: KeyRange<'_>,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Skipped<'g, Plain> {
        Records::skip(self, range, Direction::Up, most, guard, pause)
    }
}
