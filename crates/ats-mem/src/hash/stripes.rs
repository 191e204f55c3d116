//! The locks of the buckets: as many as the contention asks for.
//!
//! Lock number `i` of `n` (a power of two) guards all buckets whose low bits are `i`. A bucket and
//! the one it is split into differ in a higher bit, so they have the same lock. Beside each lock
//! stand the number and the size of the records it guards, so that counting costs no atomic
//! read-modify-write and no further cache line.
//!
//! # Invariants
//! - STRIPES-1. An array of stripes is replaced only while all its locks are held. So a thread that
//!   holds a lock and finds its array still in place holds the right one, and the array stays.
//! - STRIPES-2. `n * MIN_BUCKETS_PER_STRIPE` is at most the number of active buckets, so that a
//!   split never concerns two locks. A census holds the resize lock, so the array stays, too.
//! - STRIPES-3. The sum of what the stripes have counted is exact while no lock is held. The count
//!   of one of them is not: when locks become more, it is not known which of the records under one
//!   lock are under which of the two.
//!
//! # How full the table is
//! What one stripe has counted tells how full the table is, if all of them are alike. With a few
//! dozen records each they are not: by chance, and by STRIPES-3. So that a stripe is only a reason
//! to have a look at all of them, under the resize lock; and it remembers by how much it deviates
//! from the mean, so that it is no reason a second time before its records have changed. A table
//! whose stripes disagreed would grow and shrink for ever.

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
use ats_sync::{CachePadded, Gate, Guard, Lock};
use std::sync::{Mutex, PoisonError};

const MAX_STRIPES: usize = 1024;

/// Contention statistics above this ask for more locks: that of the contention adapting trees.
const SPLIT_ABOVE: i32 = 1000;
/// Statistics as low as they get ask for fewer: twenty thousand acquisitions without waiting.
const JOIN_AT: i32 = -STATISTICS_LIMIT;

/// The advice that follows from the contention on a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    Keep,
    Double,
    Halve,
}

/// One lock with what it guards.
pub(super) struct Stripe {
    lock: Lock,
    /// Records in the buckets, of which some may be pending, and removals that queries look
    /// through. Written by the holder of the lock only.
    records: AtomicI64,
    /// The number of objects that readers see, and the bytes of those that are kept for walks.
    /// Written by the holder of the lock only.
    objects: AtomicI64,
    bytes: AtomicI64,
    /// The number of records above the mean of all stripes when that was looked at. Written by the
    /// holder of the resize lock only. Whatever it is, the table is right, so models need not try.
    surplus: Hint,
    /// The number of times that the lock was taken at once, and after waiting. Written by the
    /// holder of the lock only.
    uncontended: AtomicU64,
    contended: AtomicU64,
    /// Hashes of records that were deleted while the table was fixed. The mutex is never contended:
    /// it is taken under the lock. It keeps the list out of unsafe code.
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

    /// Counts an acquisition. For the holder of the lock.
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

/// All locks of a table.
pub(super) enum Stripes {
    /// One, as most tables have.
    One(SlabBox<Lines<Stripe>>),
    /// A power of two.
    Many(Box<[CachePadded<Stripe>]>),
}

/// On cache lines of its own.
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

    /// Number of all records.
    fn records(&self) -> i64 {
        let records = |stripe: &Stripe| stripe.records.load(Ordering::Relaxed);
        self.parts().map(records).sum()
    }

    /// Has a stripe remember by how much it deviates from the mean of so many records.
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
    /// Counts records that come or go, and what becomes visible or is no longer.
    #[inline]
    pub(super) fn add(&self, records: i64, weight: Weight) {
        self.stripe.add(records, weight);
    }

    /// The number of records of the table if all stripes have changed like this one. Exact if there
    /// is only one.
    pub(super) fn estimate(&self) -> usize {
        let records = self.stripe.records.load(Ordering::Relaxed);
        let mean = records - self.stripe.surplus.load(Ordering::Relaxed);
        usize::try_from(mean).unwrap_or(0) * self.count
    }

    /// One of the hashes that this lock guards.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Remembers that a record of this hash has to be purged.
    pub(super) fn remember_deleted(&self, hash: u64) {
        self.stripe.lock_deleted().push(hash);
    }

    /// Up to `most` of the hashes remembered so far; forgets them.
    pub(super) fn take_deleted(&self, most: usize) -> Vec<u64> {
        let mut deleted = self.stripe.lock_deleted();
        let keep = deleted.len().saturating_sub(most);
        let taken = deleted.split_off(keep);
        if keep == 0 {
            *deleted = Vec::new();
        }
        taken
    }

    /// Pretends contention.
    #[cfg(all(test, not(loom)))]
    pub(super) fn contend(&self, cost: i32) {
        self.held.count(cost);
    }

    /// Returns the advice of more locks, or fewer, in a table of `active` buckets.
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
    count <= MAX_STRIPES && count * MIN_BUCKETS_PER_STRIPE <= active
}

/// The place of the present array.
pub(super) struct StripeSet {
    present: AtomicPtr<Stripes>,
    /// The gate that writers pass, and a census closes.
    gate: Gate,
    /// The number of times that the array was replaced by a larger one, and by a smaller one.
    /// Written by the holder of the resize lock.
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
        // SAFETY: the pointer is never null. A replaced array is retired (STRIPES-1), so one that
        // is loaded under a guard lives as long.
        unsafe { &*self.present.load(Ordering::Acquire) }
    }

    /// Asks the processor to fetch the lock of a hash, which another one may have.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64, guard: &Guard) {
        prefetch_to_write(self.present(guard).of(hash));
    }

    /// Locks the buckets of a hash, or all that share the low bits of a bucket number.
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

    /// Number of locks.
    pub(super) fn count(&self, guard: &Guard) -> usize {
        self.present(guard).len()
    }

    /// Number of all records, exact when no thread writes.
    pub(super) fn records(&self, guard: &Guard) -> usize {
        usize::try_from(self.present(guard).records()).unwrap_or(0)
    }

    /// The totals that readers see, exact when no thread writes.
    pub(super) fn weight(&self, guard: &Guard) -> Weight {
        let mut weight = Weight::NONE;
        self.present(guard)
            .parts()
            .for_each(|one| weight += one.weight());
        weight
    }

    /// The totals that readers see at one moment, if no thread writes for a while.
    pub(super) fn glance(
        &self,
        between: Option<&mut dyn FnMut()>,
        guard: &Guard,
    ) -> Option<Weight> {
        let stripes = self.present(guard);
        let weight = self.gate.glance(|| stripes.parts(), count, between)?;
        // If this array is still in its place, it was all the time.
        std::ptr::eq(self.present.load(Ordering::Relaxed), stripes).then_some(weight)
    }

    /// The totals that readers see at one moment. For the holder of the resize lock.
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

    /// The number of all records. If there are several stripes, that of this hash, which was not
    /// like the others, remembers by how much it deviates. For the holder of the resize lock.
    pub(super) fn survey(&self, hash: u64, guard: &Guard) -> usize {
        let stripes = self.present(guard);
        let records = stripes.records();
        if stripes.len() > 1 {
            stripes.note_surplus(stripes.of(hash), records);
        }
        usize::try_from(records).unwrap_or(0)
    }

    /// The figures of the locks in [`Buckets`].
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

    /// Bytes of the locks themselves.
    pub(super) fn bytes(&self, guard: &Guard) -> usize {
        self.present(guard).bytes()
    }

    /// Replaces the array by one of twice or half the size, unless that would break STRIPES-2. The
    /// caller holds the resize lock, and no stripe.
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
        // In ascending order; every other thread holds one lock at most, so no circle is possible.
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

/// Gives what one old stripe counted to the new ones. The number of its records that belong to each
/// of two successors is not known, so they get half each (STRIPES-3).
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

/// Adds what one stripe has.
fn count(weight: &mut Weight, stripe: &Stripe) {
    *weight += stripe.weight();
}

impl Drop for StripeSet {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of a box, and no other thread has the set.
        drop(unsafe { Box::from_raw(self.present.load(Ordering::Relaxed)) });
    }
}
