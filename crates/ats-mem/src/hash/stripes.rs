//! Stripes: the locks of the buckets, as many as contention demands.
//!
//! Lock number `i` of `n` (a power of two) guards all buckets whose low bits are `i`. A bucket and
//! the one it is split into differ in a higher bit, so they have the same lock. Beside each lock
//! are the number and the size of the records it guards, so that counting costs no atomic
//! read-modify-write and no further cache line.
//!
//! # Invariants
//! - STRIPES-1. An array of stripes is replaced only while all its locks are held. So a thread that
//!   holds a lock and finds its array still installed holds the right one, and the array stays.
//! - STRIPES-2. `n * MIN_BUCKETS_PER_STRIPE` is at most the number of active buckets, so that a
//!   split never concerns two locks. A census holds the resize lock, so the array stays, too.
//! - STRIPES-3. The sum of the stripes' counts is exact while no lock is held. A single count is
//!   not: when the locks are doubled, it is unknown which of one lock's records belong to which of
//!   the two new ones.
//!
//! # How full the table is
//! The count of one stripe shows how full the table is, if all stripes are alike. With a few dozen
//! records each they are not: by chance, and by STRIPES-3. So one stripe is only a reason to read
//! all of them, under the resize lock; and it stores its deviation from the mean, so that it is no
//! reason a second time before its records have changed. Otherwise a table whose stripes disagree
//! would grow and shrink for ever.

use crate::change::Busy;
use crate::figures::Buckets;
use crate::prefetch::prefetch_to_write;
use crate::record::Weight;
use crate::slab::{self, SlabBox};
use ats_sync::census::{Part, Turn};
use ats_sync::count::atomic::AtomicI64 as Hint;
use ats_sync::lock::{Held, STATISTICS_LIMIT};
pub(super) use ats_sync::model::MIN_BUCKETS_PER_STRIPE;
use ats_sync::shim::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};
use ats_sync::thread::processors;
use ats_sync::{CachePadded, Gate, Guard, Lock};
use std::sync::{Mutex, PoisonError};

/// The most locks of a table, on a machine with 32 processors or more.
const MAX_STRIPES: usize = 1024;
/// The most locks of a table for each processor. With so many, one of 200 writes or fewer meets a
/// held lock, and each further lock makes it longer to read the size of the table.
const STRIPES_PER_PROCESSOR: usize = 32;

/// Returns the most locks of a table.
fn most_stripes() -> usize {
    (processors() * STRIPES_PER_PROCESSOR)
        .next_power_of_two()
        .min(MAX_STRIPES)
}

/// Contention statistics above which the locks are doubled, as in contention adapting trees.
const SPLIT_ABOVE: i32 = 1000;
/// Contention statistics at which the locks are halved: the minimum, after twenty thousand
/// acquisitions without waiting.
const JOIN_AT: i32 = -STATISTICS_LIMIT;

/// Advice that follows from the contention on a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    Keep,
    Double,
    Halve,
}

/// A lock, with the counts of the records it guards.
pub(super) struct Stripe {
    lock: Lock,
    /// Number of records in the buckets, including pending ones, and of removals that queries look
    /// through. Written only by the holder of the lock.
    records: AtomicI64,
    /// Number of objects visible to readers, and bytes including records kept for walks. Written
    /// only by the holder of the lock.
    objects: AtomicI64,
    bytes: AtomicI64,
    /// Number of records above the mean of all stripes when it was last computed. Written only by
    /// the holder of the resize lock. The table is correct for any value, so models need not
    /// explore it.
    surplus: Hint,
    /// Number of acquisitions without waiting, and after waiting. Written only by the holder of the
    /// lock.
    uncontended: AtomicU64,
    contended: AtomicU64,
    /// Hashes of records that were deleted while the table was fixed. The mutex is never contended,
    /// because it is taken under the lock. It avoids unsafe code for the list.
    deleted: Mutex<Vec<u64>>,
}

impl Stripe {
    fn new() -> Self {
        Self {
            lock: Lock::new(),
            records: AtomicI64::new(0),
            objects: AtomicI64::new(0),
            bytes: AtomicI64::new(0),
            surplus: Hint::new(0),
            uncontended: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            deleted: Mutex::new(Vec::new()),
        }
    }

    /// Locks the hashes of the keys that were deleted while the table was fixed.
    fn lock_deleted(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an acquisition. The caller holds the lock.
    #[inline]
    fn count(&self, waited: bool) {
        let counter = if waited {
            &self.contended
        } else {
            &self.uncontended
        };
        add(counter, 1);
    }

    #[inline]
    fn add(&self, records: i64, weight: Weight) {
        change(&self.records, records);
        change(&self.objects, weight.objects);
        change(&self.bytes, weight.bytes);
    }

    fn weight(&self) -> Weight {
        Weight {
            objects: self.objects.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

impl Part for Stripe {
    fn lock(&self) -> &Lock {
        &self.lock
    }

    fn turns(&self) -> u64 {
        self.contended.load(Ordering::Acquire) + self.uncontended.load(Ordering::Acquire)
    }
}

/// Adds to a number that only the caller changes. Release: a [census](ats_sync::census) relies on
/// it.
#[inline]
fn change(number: &AtomicI64, more: i64) {
    if more != 0 {
        number.store(number.load(Ordering::Relaxed) + more, Ordering::Release);
    }
}

/// Adds to a number that only the caller changes. Release: the turns of a census are among them.
#[inline]
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Release);
}

/// The locks of a table.
pub(super) enum Stripes {
    /// One lock, as in most tables.
    One(SlabBox<Lines<Stripe>>),
    /// Several locks, a power of two.
    Many(Box<[CachePadded<Stripe>]>),
}

/// A value on cache lines of its own.
#[repr(align(64))]
pub(super) struct Lines<T>(T);

impl Stripes {
    fn new(count: usize) -> Self {
        match count {
            1 => Stripes::One(SlabBox::new(Lines(Stripe::new()))),
            _ => Stripes::Many((0..count).map(|_| CachePadded(Stripe::new())).collect()),
        }
    }

    #[inline]
    fn of(&self, hash: u64) -> &Stripe {
        match self {
            Stripes::One(one) => &one.0,
            Stripes::Many(many) => &many[hash as usize & (many.len() - 1)],
        }
    }

    #[inline]
    fn len(&self) -> usize {
        match self {
            Stripes::One(_) => 1,
            Stripes::Many(many) => many.len(),
        }
    }

    fn parts(&self) -> impl Iterator<Item = &Stripe> {
        (0..self.len()).map(|index| self.of(index as u64))
    }

    /// Returns the number of all records.
    fn records(&self) -> i64 {
        let records = |stripe: &Stripe| stripe.records.load(Ordering::Relaxed);
        self.parts().map(records).sum()
    }

    /// Stores the deviation of a stripe from the mean of `records` records.
    fn note_surplus(&self, stripe: &Stripe, records: i64) {
        let mean = records / self.len() as i64;
        let surplus = stripe.records.load(Ordering::Relaxed) - mean;
        stripe.surplus.store(surplus, Ordering::Relaxed);
    }

    fn bytes(&self) -> usize {
        match self {
            Stripes::One(_) => slab::block_size(size_of::<Lines<Stripe>>()),
            Stripes::Many(many) => size_of_val(&**many),
        }
    }
}

/// A stripe whose lock is held.
pub(super) struct Locked<'g> {
    stripe: &'g Stripe,
    hash: u64,
    count: usize,
    held: Held<'g>,
}

impl Locked<'_> {
    /// Counts records that are added or removed, and the weight that becomes visible or invisible.
    #[inline]
    pub(super) fn add(&self, records: i64, weight: Weight) {
        self.stripe.add(records, weight);
    }

    /// Returns the number of records of the table, assuming that all stripes have changed like this
    /// one. Exact if there is only one.
    pub(super) fn estimate(&self) -> usize {
        let records = self.stripe.records.load(Ordering::Relaxed);
        let mean = records - self.stripe.surplus.load(Ordering::Relaxed);
        usize::try_from(mean).unwrap_or(0) * self.count
    }

    /// Returns one of the hashes that this lock guards.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Records that a record of this hash has to be purged.
    pub(super) fn remember_deleted(&self, hash: u64) {
        self.stripe.lock_deleted().push(hash);
    }

    /// Takes up to `most` of the hashes recorded so far.
    pub(super) fn take_deleted(&self, most: usize) -> Vec<u64> {
        let mut deleted = self.stripe.lock_deleted();
        let keep = deleted.len().saturating_sub(most);
        let taken = deleted.split_off(keep);
        if keep == 0 {
            *deleted = Vec::new();
        }
        taken
    }

    /// Simulates contention.
    #[cfg(all(test, not(loom)))]
    pub(super) fn contend(&self, cost: i32) {
        self.held.count(cost);
    }

    /// Returns the advice to double or halve the locks in a table of `active` buckets.
    pub(super) fn advice(&self, active: usize) -> Advice {
        let statistics = self.held.statistics();
        if statistics > SPLIT_ABOVE && may_have(2 * self.count, active) {
            Advice::Double
        } else if statistics <= JOIN_AT && self.count > 1 {
            Advice::Halve
        } else {
            Advice::Keep
        }
    }
}

fn may_have(count: usize, active: usize) -> bool {
    count <= most_stripes() && count * MIN_BUCKETS_PER_STRIPE <= active
}

/// The pointer to the current array of stripes.
pub(super) struct StripeSet {
    present: AtomicPtr<Stripes>,
    /// The gate that writers pass, and a census closes.
    gate: Gate,
    /// Number of times that the array was replaced by a larger one, and by a smaller one. Written
    /// by the holder of the resize lock.
    doublings: AtomicU64,
    halvings: AtomicU64,
}

impl StripeSet {
    pub(super) fn new() -> Self {
        let stripes = Box::into_raw(Box::new(Stripes::new(1)));
        Self {
            present: AtomicPtr::new(stripes),
            gate: Gate::new(),
            doublings: AtomicU64::new(0),
            halvings: AtomicU64::new(0),
        }
    }

    fn present<'g>(&self, _guard: &'g Guard) -> &'g Stripes {
        // SAFETY: the pointer is never null. A replaced array is retired (STRIPES-1), so one loaded
        // under a guard lives as long as the guard.
        unsafe { &*self.present.load(Ordering::Acquire) }
    }

    /// Prefetches the lock of a hash, which another processor may own.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64, guard: &Guard) {
        prefetch_to_write(self.present(guard).of(hash));
    }

    /// Locks the buckets of a hash, or all those with the low bits of a bucket number.
    pub(super) fn lock<'g>(&self, hash: u64, guard: &'g Guard) -> Locked<'g> {
        let locked = self.lock_by(hash, guard, |lock| Some(self.gate.enter(lock)));
        locked.expect("this way of locking waits")
    }

    /// Locks like [`lock`](Self::lock), but a thread that must not wait for long gives up after a
    /// while.
    pub(super) fn lock_within_limit<'g>(
        &self,
        hash: u64,
        guard: &'g Guard,
    ) -> Result<Locked<'g>, Busy> {
        let locked = self.lock_by(hash, guard, |lock| self.gate.enter_within_limit(lock));
        locked.ok_or(Busy)
    }

    #[inline(always)]
    fn lock_by<'g>(
        &self,
        hash: u64,
        guard: &'g Guard,
        take: impl Fn(&'g Lock) -> Option<(Held<'g>, bool)>,
    ) -> Option<Locked<'g>> {
        loop {
            let stripes = self.present(guard);
            let stripe = stripes.of(hash);
            let (held, waited) = take(&stripe.lock)?;
            // The lock orders this load after a replacement, which held the lock (STRIPES-1).
            if std::ptr::eq(self.present.load(Ordering::Relaxed), stripes) {
                stripe.count(waited);
                return Some(Locked {
                    stripe,
                    hash,
                    count: stripes.len(),
                    held,
                });
            }
        }
    }

    /// Returns the number of locks.
    pub(super) fn count(&self, guard: &Guard) -> usize {
        self.present(guard).len()
    }

    /// Returns the number of all records, exact if no thread writes.
    pub(super) fn records(&self, guard: &Guard) -> usize {
        usize::try_from(self.present(guard).records()).unwrap_or(0)
    }

    /// Returns the totals visible to readers, exact if no thread writes.
    pub(super) fn weight(&self, guard: &Guard) -> Weight {
        let mut weight = Weight::NONE;
        self.present(guard)
            .parts()
            .for_each(|one| weight += one.weight());
        weight
    }

    /// Returns the totals visible to readers at one moment, if no thread writes for a while.
    pub(super) fn glance(
        &self,
        between: Option<&mut dyn FnMut()>,
        guard: &Guard,
    ) -> Option<Weight> {
        let stripes = self.present(guard);
        let weight = self.gate.glance(|| stripes.parts(), count, between)?;
        // An array that is still installed was installed all the time.
        std::ptr::eq(self.present.load(Ordering::Relaxed), stripes).then_some(weight)
    }

    /// Returns the totals visible to readers at one moment. The caller holds the resize lock.
    pub(super) fn census(
        &self,
        turn: &mut Turn<'_>,
        at_rest: &mut dyn FnMut(),
        guard: &Guard,
    ) -> Option<Weight> {
        let stripes = self.present(guard);
        self.gate
            .close_and_sum(turn, || stripes.parts(), count, at_rest)
    }

    /// Returns the number of all records. If there are several stripes, the one of this hash, which
    /// differed from the others, stores its deviation. The caller holds the resize lock.
    pub(super) fn survey(&self, hash: u64, guard: &Guard) -> usize {
        let stripes = self.present(guard);
        let records = stripes.records();
        if stripes.len() > 1 {
            stripes.note_surplus(stripes.of(hash), records);
        }
        usize::try_from(records).unwrap_or(0)
    }

    /// Returns the statistics of the locks, as part of [`Buckets`].
    pub(super) fn statistics(&self, guard: &Guard) -> Buckets {
        let stripes = self.present(guard);
        let sum = |counter: fn(&Stripe) -> &AtomicU64| {
            let numbers = stripes
                .parts()
                .map(|one| counter(one).load(Ordering::Relaxed));
            numbers.sum()
        };
        Buckets {
            locks: stripes.len(),
            doublings: self.doublings.load(Ordering::Relaxed),
            halvings: self.halvings.load(Ordering::Relaxed),
            contended: sum(|stripe| &stripe.contended),
            uncontended: sum(|stripe| &stripe.uncontended),
            ..Buckets::default()
        }
    }

    /// Returns the bytes of the locks themselves.
    pub(super) fn bytes(&self, guard: &Guard) -> usize {
        self.present(guard).bytes()
    }

    /// Replaces the array by one of twice or half the size, unless that would violate STRIPES-2.
    /// The caller holds the resize lock, and no stripe.
    pub(super) fn adapt(&self, advice: Advice, active: usize, guard: &Guard) {
        let old = self.present(guard);
        let count = match advice {
            Advice::Keep => return,
            Advice::Double => old.len() * 2,
            Advice::Halve => old.len() / 2,
        };
        if count == 0 || (advice == Advice::Double && !may_have(count, active)) {
            return;
        }
        // Locked in ascending order; every other thread holds at most one lock, so no deadlock is
        // possible.
        let held = old.parts().map(|stripe| stripe.lock.lock());
        let held = held.collect::<Vec<_>>();
        let new = Stripes::new(count);
        for (index, stripe) in old.parts().enumerate() {
            redistribute(stripe, index, &new, old.len());
        }
        let records = new.records();
        new.parts().for_each(|one| new.note_surplus(one, records));
        add(
            match advice {
                Advice::Double => &self.doublings,
                _ => &self.halvings,
            },
            1,
        );
        let new = Box::into_raw(Box::new(new));
        let old = self.present.swap(new, Ordering::AcqRel);
        drop(held);
        // SAFETY: the array comes from a box and was just replaced, with all its locks held
        // (STRIPES-1), so no thread that pins from now on finds it.
        unsafe { guard.retire_box(old) };
    }
}

/// Distributes the counts of an old stripe to the new ones. It is unknown which of two successors
/// each record belongs to, so they get half each (STRIPES-3).
fn redistribute(stripe: &Stripe, index: usize, new: &Stripes, old_count: usize) {
    let records = stripe.records.load(Ordering::Relaxed);
    let (low, high) = (new.of(index as u64), new.of((index + old_count) as u64));
    low.add(records - records / 2, stripe.weight());
    high.add(records / 2, Weight::NONE);
    add(&low.contended, stripe.contended.load(Ordering::Relaxed));
    add(&low.uncontended, stripe.uncontended.load(Ordering::Relaxed));
    for hash in stripe.lock_deleted().drain(..) {
        new.of(hash).lock_deleted().push(hash);
    }
}

/// Adds the counts of one stripe.
fn count(weight: &mut Weight, stripe: &Stripe) {
    *weight += stripe.weight();
}

impl Drop for StripeSet {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of a box, and no other thread has the set.
        drop(unsafe { Box::from_raw(self.present.load(Ordering::Relaxed)) });
    }
}
