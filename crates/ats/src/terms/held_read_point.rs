//! ReadPoints of tables that are needed for longer than one call.
//!
//! A moment is *kept* until it ends: its last user drops it, a caller ends it, it becomes too old,
//! or it holds back too much memory. Readers find it through one pointer, and check that pointer
//! again after they have read.
//!
//! # Invariants
//! - HELD_READ_POINT-1. The pointer leads to the moment until the moment ends, and is null from
//!   then on. The moment is retired after it was taken out of the pointer; so a reader that finds
//!   it under a guard may use it as long as the guard lives.
//! - HELD_READ_POINT-2. The pointer is null before the moment ends for the store. So the records
//!   that a reader has found are those of the moment if the pointer, loaded afterwards, is not
//!   null.

use crate::terms::error::Error;
use crate::terms::read_point::TableReadPoint;
use crate::terms::store::Store;
use crate::terms::store::records::{Decide, TableRecords, Visit, Walked};
use crate::terms::store::store_ref::StoreRef;
use crate::terms::value::{Rec, Values};
use ats_mem::batch;
use ats_mem::read_points::Query;
use ats_mem::{BatchPlan, NoSuchKey, Walk, When, go_on};
use ats_store::{End, WalkFrom};
use ats_sync::Guard;
use ats_term::image::Host;
use std::ops::ControlFlow;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The reason why a snapshot has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The holder released the snapshot, or its last user dropped it.
    Released,
    /// The snapshot was older than its [time](HeldReadPoint::keep_for).
    Age,
    /// The snapshots of the table held back more memory than it
    /// [allows](crate::terms::Table::set_snapshot_memory), and it was the oldest.
    Memory,
}

/// The kind of reader that a moment is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A program that holds a snapshot.
    Program,
    /// A query that a program continues chunk by chunk, or abandons.
    Chunks,
    /// A running query. Its moment does not end because of the [memory](Ending::Memory) that it
    /// holds back.
    Query,
}

/// A moment of a table that is kept until it ends.
pub struct HeldReadPoint<H: Host> {
    read_point: AtomicPtr<TableReadPoint<H>>,
    when: When,
    is_ordered: bool,
    objects: usize,
    since: Instant,
    reader: Reader,
    holder: AtomicU64,
    /// The time at which the moment ends because of its age, if it does.
    deadline: Mutex<Option<Instant>>,
    ending: OnceLock<Ending>,
}

impl<H: Host> HeldReadPoint<H> {
    pub(crate) fn new(read_point: TableReadPoint<H>, reader: Reader) -> Self {
        HeldReadPoint {
            reader,
            holder: AtomicU64::new(0),
            when: read_point.when(),
            is_ordered: read_point.store().is_ordered(),
            objects: read_point.len(),
            read_point: AtomicPtr::new(Box::into_raw(Box::new(read_point))),
            since: Instant::now(),
            deadline: Mutex::new(None),
            ending: OnceLock::new(),
        }
    }

    /// Returns the read point.
    pub(crate) fn when(&self) -> When {
        self.when
    }

    /// Returns `true` if this is a moment of a store, and has not ended.
    pub(crate) fn is_of(&self, store: &Store<H>) -> bool {
        let guard = ats_sync::pin();
        self.store(&guard).is_ok_and(|own| ptr::eq(own, store))
    }

    /// Returns the kind of reader that the moment is kept for.
    pub(crate) fn reader(&self) -> Reader {
        self.reader
    }

    /// Sets the number of the program that holds the moment, which is not 0.
    /// [`kept_snapshots_of`](crate::terms::Table::kept_snapshots_of) passes it to its argument
    /// `lives`.
    pub fn set_holder(&self, holder: u64) {
        self.holder.store(holder, Ordering::Relaxed);
    }

    /// Returns the number of the program that holds the moment, if it was set.
    pub(crate) fn holder(&self) -> Option<u64> {
        Some(self.holder.load(Ordering::Relaxed)).filter(|holder| *holder != 0)
    }

    /// Returns the time since the moment began.
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Ends the moment after this time from now, and replaces any earlier deadline. The end may be
    /// a tenth of a second late.
    pub fn keep_for(&self, time: Duration) {
        *lock(&self.deadline) = Instant::now().checked_add(time);
    }

    /// Returns `true` if the moment has reached its deadline.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        lock(&self.deadline).is_some_and(|deadline| deadline <= now)
    }

    /// Returns the reason why the moment has ended, if it has. It is set before the first read
    /// fails.
    pub fn ending(&self) -> Option<Ending> {
        self.ending.get().copied()
    }

    /// Returns the store, unless the moment has ended.
    pub(crate) fn store<'g>(&self, guard: &'g Guard) -> Result<&'g Store<H>, Error> {
        self.read_point(guard).map(TableReadPoint::store)
    }

    /// Returns the moment, for a query that changes the table.
    ///
    /// # Errors
    /// [`Error::Ended`] if the moment has ended.
    pub fn read_point<'g>(&self, _guard: &'g Guard) -> Result<&'g TableReadPoint<H>, Error> {
        // SAFETY: the moment is retired after it was taken out of the pointer, so a moment that is
        // found under a guard lives as long as the guard (HELD_READ_POINT-1).
        let read_point = unsafe { self.read_point.load(Ordering::Acquire).as_ref() };
        read_point.ok_or(Error::Ended)
    }

    /// Returns a reference to the store that outlives a guard.
    fn reference(&self) -> Result<StoreRef<H>, Error> {
        self.read_point(&ats_sync::pin())
            .map(TableReadPoint::reference)
    }

    /// Fails if records that were read may not be those of the moment (HELD_READ_POINT-2).
    fn check(&self) -> Result<(), Error> {
        if self.read_point.load(Ordering::Acquire).is_null() {
            Err(Error::Ended)
        } else {
            Ok(())
        }
    }

    /// Ends the moment: reads of it fail from now on. The memory that was kept for it is freed, by
    /// this call and in the background. Does nothing if the moment has ended. Returns `true` if it
    /// had not.
    pub fn end(&self, why: Ending) -> bool {
        let is_first = self.ending.set(why).is_ok();
        let guard = ats_sync::pin();
        let raw = self.read_point.swap(ptr::null_mut(), Ordering::SeqCst);
        // SAFETY: this thread has taken the moment out of the pointer, and retires it below, under
        // a guard that it took before.
        let Some(read_point) = (unsafe { raw.as_ref() }) else {
            return is_first;
        };
        read_point.end();
        unsafe fn free<H: Host>(raw: *mut u8) {
            // SAFETY: `new` has boxed the moment, and `end` retires it once; its grace period is
            // over.
            drop(unsafe { Box::from_raw(raw.cast::<TableReadPoint<H>>()) });
        }
        // SAFETY: the moment was taken out of the pointer, so no thread that pins from now on finds
        // it (HELD_READ_POINT-1).
        unsafe { guard.retire(raw.cast(), size_of::<TableReadPoint<H>>(), free::<H>) };
        is_first
    }

    /// Returns the bytes of the keys that have changed between this moment and another moment of
    /// the same table, ascending. They may include keys that have changed back. O(m log m) for *m*
    /// keys that were changed since the earlier moment; all keys if the table was cleared between
    /// the two.
    ///
    /// Waits for writers in the table, so the calling thread must not be pinned.
    ///
    /// # Errors
    /// [`Error::Ended`] if one of the moments has ended.
    pub fn changed_keys(&self, other: &Self) -> Result<Vec<Box<[u8]>>, Error> {
        // A writer lists a replaced record only after it has replaced it.
        self.reference()?.wait_for_writers();
        let guard = ats_sync::pin();
        let (mine, theirs) = (self.store(&guard)?, other.store(&guard)?);
        let other_when = other.when;
        let mut keys: Vec<Box<[u8]>> = Vec::new();
        let mut note = |record: &Rec<H>| keys.push(record.key().into());
        if ptr::eq(mine, theirs) {
            let read_points = (self.when.min(other_when), self.when.max(other_when));
            mine.changed(read_points, &guard, &mut note);
        } else {
            let mut note = |record: &Rec<H>| {
                note(record);
                ControlFlow::Continue(())
            };
            for (store, when) in [(mine, self.when), (theirs, other_when)] {
                let all = Walk::up(WalkFrom::Start).at(when);
                let walked = store.walk(all, &guard, &mut note, &mut go_on)?;
                debug_assert_eq!(walked, Ok(None), "a walk of all");
            }
        }
        self.check()?;
        other.check()?;
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The value is complete at every moment, so a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<H: Host> Drop for HeldReadPoint<H> {
    fn drop(&mut self) {
        self.end(Ending::Released);
    }
}

impl<H: Host> TableRecords<H> for HeldReadPoint<H> {
    fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        let found = self.store(guard)?.get_at(key, self.when, guard)?;
        self.check().map(|()| found)
    }

    fn prefetch_records(&self, keys: &[&[u8]], guard: &Guard) {
        if let Ok(store) = self.store(guard) {
            store.prefetch_records(keys, guard);
        }
    }

    /// Checks before each visit that the moment has not ended.
    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Walked, Error> {
        let mut walk = walk.at(self.when);
        if let WalkFrom::Known(key) = walk.from {
            if !self.is_ordered && self.get(key, guard)?.is_none() {
                return Ok(Err(NoSuchKey));
            }
            // The store may have lost a key that exists at the moment.
            walk.from = WalkFrom::Behind(key);
        }
        let mut visit = |record| match self.check() {
            Ok(()) => visit(record),
            Err(_) => ControlFlow::Break(()),
        };
        let walked = self.store(guard)?.walk(walk, guard, &mut visit, pause);
        self.check()?;
        walked
    }

    fn update_by<'g>(
        &'g self,
        _key: &[u8],
        _by: Option<Query>,
        _guard: &'g Guard,
        _decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        Err(Error::Snapshot)
    }

    fn update_batch(
        &self,
        _keys: &[&[u8]],
        _guard: Option<&Guard>,
        _plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        Err(Error::Snapshot)
    }

    fn stepwise(&self) -> Result<&dyn batch::Stepwise<Values<H>>, Error> {
        Err(Error::Snapshot)
    }

    fn update_end<'g>(
        &'g self,
        _end: End,
        _guard: &'g Guard,
        _decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        Err(Error::Snapshot)
    }

    fn objects(&self) -> Result<usize, Error> {
        Ok(self.objects)
    }

    /// Does not count records that the store keeps for the moment.
    fn about_bytes(&self) -> usize {
        size_of::<Self>()
    }
}
