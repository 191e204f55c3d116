//! The table itself: how it is made, and how it is freed.

use super::bucket::Bucket;
use super::directory::Directory;
use super::seed::Seed;
use super::stripes::StripeSet;
use crate::figures::Totals;
use crate::forcing::Forcing;
use crate::lazy::Lazy;
use crate::moments::Moments;
use crate::record::{Release, Weight, free_alone};
use ats_sync::shim::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use ats_sync::{Census, Guard, Lock, pin};
use std::sync::OnceLock;

/// An unordered store of records; see the documentation of [`hash`](super).
///
/// The fields that readers look at come first; those that are written now and then are made when
/// they are needed, on a line of their own. Small, since many programs have thousands of tables
/// with a few records each.
#[repr(C)]
pub struct HashTable<R: Release> {
    pub(super) directory: Directory<R>,
    pub(super) stripes: StripeSet,
    pub(super) seed: Seed,
    pub(super) forcing: Forcing,
    /// The clock, and what queries of one moment may read.
    pub(super) moments: Moments<R>,
    /// Buckets emptied by `free_some`.
    drained: usize,
    pub(super) rare: Lazy<Rare>,
}

/// The data that are written now and then, by other operations than those that read the other
/// fields. Aligned, so that these do not notice.
#[repr(align(64))]
pub(super) struct Rare {
    /// The number of fixations.
    pub(super) fixed: AtomicUsize,
    /// The number of buckets when the table became fixed.
    pub(super) slots: AtomicUsize,
    /// A thread holds it while it changes the number of buckets or of locks.
    pub(super) resizing: Lock,
    /// Made by the first that does not get by with a glance. Its holder takes the resize lock, and
    /// no stripe.
    pub(super) census: OnceLock<Box<Census<(Totals, u64)>>>,
    /// Lines behind the first ones of buckets.
    lines: AtomicI64,
    /// The place in the order of the table at which [`update_end`](crate::Records::update_end)
    /// found the last record. Before that there is likely nothing; if it were not remembered, each
    /// would begin with all the buckets that those before it have emptied.
    pub(super) taken: AtomicU64,
}

impl Default for Rare {
    fn default() -> Self {
        Rare {
            fixed: AtomicUsize::new(0),
            slots: AtomicUsize::new(0),
            resizing: Lock::new(),
            census: OnceLock::new(),
            lines: AtomicI64::new(0),
            taken: AtomicU64::new(0),
        }
    }
}

impl<R: Release> HashTable<R> {
    /// An empty table. About one kilobyte.
    pub fn new() -> Self {
        Self {
            directory: Directory::new(),
            stripes: StripeSet::new(),
            seed: Seed::random(),
            forcing: Forcing::default(),
            moments: Moments::new(),
            drained: 0,
            rare: Lazy::new(),
        }
    }

    /// Removes about `count` records (and at least one bucket) for good. Returns whether the table
    /// is empty now. For getting rid of a huge table in slices; dropping it does the rest at once.
    pub fn free_some(&mut self, count: usize) -> bool {
        let mut guard = pin();
        let mut freed = 0;
        while self.drained < self.directory.active() {
            if freed >= count {
                return false;
            }
            freed += self.drain_bucket(self.drained, &guard);
            self.drained += 1;
            // Otherwise all of it would wait for this guard.
            guard.repin();
        }
        // Records may have been added to buckets that had been emptied.
        if self.stripes.weight(&guard) != Weight::NONE {
            self.drained = 0;
        }
        self.drained != 0
    }

    /// Empties a bucket. Returns how many records were in it.
    fn drain_bucket(&mut self, bucket: usize, guard: &Guard) -> usize {
        let contents = self.active_bucket(bucket, guard);
        if contents.is_bare() {
            return 0;
        }
        let locked = self.stripes.lock(bucket as u64, guard);
        let mut freed = 0;
        contents.for_each(|slot, word| {
            contents.clear(slot);
            locked.add(-i64::from(word.is_counted()), Weight::NONE - word.weight());
            // SAFETY: the record was just taken out of its only slot (HASH-2). The exclusive borrow
            // shows that no reference to it is left: those handed out are borrowed from the table,
            // too. The moments are there as long as the table.
            unsafe { free_alone(word.pointer::<R>()) };
            freed += 1;
        });
        // SAFETY: the exclusive borrow shows that no other thread uses the table (HASH-5).
        self.add_lines(-(unsafe { contents.free_lines() } as i64));
        freed
    }

    pub(super) fn add_lines(&self, lines: i64) {
        if lines != 0 {
            self.rare().lines.fetch_add(lines, Ordering::Relaxed);
        }
    }

    /// The number of lines behind the first ones of buckets.
    pub(super) fn lines(&self) -> usize {
        let lines = self
            .rare
            .get()
            .map(|rare| rare.lines.load(Ordering::Relaxed));
        usize::try_from(lines.unwrap_or(0)).unwrap_or(0)
    }

    /// The data that are written now and then. A table has it from when that is so.
    pub(super) fn rare(&self) -> &Rare {
        self.rare.get_or_make()
    }

    #[inline]
    pub(super) fn is_fixed(&self) -> bool {
        let rare = self.rare.get();
        rare.is_some_and(|rare| rare.fixed.load(Ordering::Acquire) > 0)
    }

    /// A bucket that cannot become inactive: its lock or the resize lock is held, or the table is
    /// had exclusively.
    #[inline]
    pub(super) fn active_bucket<'g>(&'g self, bucket: usize, guard: &'g Guard) -> Bucket<'g, R> {
        let bucket = self.directory.bucket(bucket, guard);
        bucket.expect("an active bucket has memory")
    }
}

impl<R: Release> Default for HashTable<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Release> Drop for HashTable<R> {
    fn drop(&mut self) {
        // Twice, for records that were added after `free_some` had begun.
        if !self.free_some(usize::MAX) {
            self.free_some(usize::MAX);
        }
    }
}
