//! The table itself: its creation and its end.

use super::bucket::Bucket;
use super::directory::Directory;
use super::seed::Seed;
use super::stripes::StripeSet;
use crate::figures::Totals;
use crate::forcing::Forcing;
use crate::identity::Identity;
use crate::lazy::Lazy;
use crate::read_points::ReadPoints;
use crate::record::{Release, Weight, free_alone};
use ats_sync::shim::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use ats_sync::{Census, Guard, Lock, pin};
use std::sync::OnceLock;

/// An unordered store of records; see the documentation of [`hash`](super).
///
/// The fields that readers load come first; rarely written ones are made on first use, on a cache
/// line of their own. Small, because many programs have thousands of tables with a few records
/// each.
#[repr(C)]
pub struct HashTable<R: Release> {
    pub(super) directory: Directory<R>,
    pub(super) stripes: StripeSet,
    pub(super) seed: Seed,
    pub(super) identity: Identity,
    pub(super) forcing: Forcing,
    /// The clock, and the versions that snapshot queries may read.
    pub(super) read_points: ReadPoints<R>,
    /// Number of buckets emptied by `free_some`.
    drained: usize,
    pub(super) rare: Lazy<Rare>,
}

/// Rarely written data, used by other operations than the fields above. Aligned, so that their
/// writes do not disturb readers.
#[repr(align(64))]
pub(super) struct Rare {
    /// Number of fixations.
    pub(super) fixed: AtomicUsize,
    /// Number of buckets when the table became fixed.
    pub(super) slots: AtomicUsize,
    /// The resize lock, held while the number of buckets or of locks changes.
    pub(super) resizing: Lock,
    /// The census, made when a glance fails for the first time. A thread that takes a census also
    /// takes the resize lock, and no stripe.
    pub(super) census: OnceLock<Box<Census<(Totals, u64)>>>,
    /// Number of lines behind the first ones of buckets.
    lines: AtomicI64,
    /// Position at which [`update_end`](crate::Records::update_end) has found its last record.
    /// Buckets before it are likely empty. Without it, each call would begin with all buckets that
    /// earlier calls have emptied.
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
    /// Creates an empty table of about one kilobyte.
    pub fn new() -> Self {
        Self {
            directory: Directory::new(),
            stripes: StripeSet::new(),
            seed: Seed::random(),
            identity: Identity::new(),
            forcing: Forcing::default(),
            read_points: ReadPoints::new(),
            drained: 0,
            rare: Lazy::new(),
        }
    }

    /// Frees about `count` records (and at least one bucket). Returns `true` if the table is empty
    /// now. So a huge table can be freed in slices; dropping it frees the rest at once.
    pub fn free_some(&mut self, count: usize) -> bool {
        let mut guard = pin();
        // Threads may remember records that are now freed without a grace period.
        self.identity = Identity::new();
        let mut freed = 0;
        while self.drained < self.directory.active() {
            if freed >= count {
                return false;
            }
            freed += self.drain_bucket(self.drained, &guard);
            self.drained += 1;
            // Otherwise all retired records would wait for this guard.
            guard.repin();
        }
        // Records may have been added to buckets that had been emptied.
        if self.stripes.weight(&guard) != Weight::NONE {
            self.drained = 0;
        }
        self.drained != 0
    }

    /// Empties a bucket. Returns the number of its records.
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
            // shows that no reference to it is left, because references to records borrow the
            // table, too. The moments live as long as the table.
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

    /// Returns the number of lines behind the first ones of buckets.
    pub(super) fn lines(&self) -> usize {
        let lines = self
            .rare
            .get()
            .map(|rare| rare.lines.load(Ordering::Relaxed));
        usize::try_from(lines.unwrap_or(0)).unwrap_or(0)
    }

    /// Returns the rarely written data, which are made on first use.
    pub(super) fn rare(&self) -> &Rare {
        self.rare.get_or_make()
    }

    #[inline]
    pub(super) fn is_fixed(&self) -> bool {
        let rare = self.rare.get();
        rare.is_some_and(|rare| rare.fixed.load(Ordering::Acquire) > 0)
    }

    /// Returns a bucket that cannot become inactive: its lock or the resize lock is held, or the
    /// access to the table is exclusive.
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
        // Twice, because records may have been added after `free_some` had begun.
        if !self.free_some(usize::MAX) {
            self.free_some(usize::MAX);
        }
    }
}
