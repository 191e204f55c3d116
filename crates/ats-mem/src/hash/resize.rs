//! Resizing, a few buckets at a time.
//!
//! One thread at a time changes the layout; others leave the work to that one and continue. Each
//! step locks the one stripe that guards the bucket and its partner.

use super::directory::{MIN_BUCKETS, parent_of};
use super::line::Full;
use super::stripes::{Advice, Locked, MIN_BUCKETS_PER_STRIPE};
use super::table::HashTable;
use crate::forcing::Forced;
use crate::record::Release;
use ats_sync::Guard;

/// Number of records per bucket above which the table grows. A line has seven slots, and unsplit
/// buckets have up to twice the records of split ones: at four, most of them still fit one line.
const MAX_LOAD: usize = 4;
/// Number of records per bucket below which the table shrinks: half of the other, so that a table
/// of stable size does not change.
const MIN_LOAD: usize = 2;
/// Largest number of steps of an update, as long as there are few stripes.
const STEPS: usize = 8;
/// Number of stripes for each step of an update, which reads all stripes before it changes the
/// number of buckets.
const STRIPES_PER_STEP: usize = 32;

/// Returns the number of steps that an update does at once in a table of `active` buckets. Each
/// update changes the number of records by one, so one step for four updates would keep up. But a
/// step changes data that all threads read, and a thread that does several in a row disturbs the
/// others only once.
pub(super) fn steps(active: usize, stripes: usize) -> usize {
    (active / 16).clamp(1, STEPS.max(stripes / STRIPES_PER_STEP))
}

/// The direction in which the number of buckets should change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resizing {
    Stay,
    Grow,
    Shrink,
}

/// Work that an update defers until it has released its lock.
#[derive(Clone, Copy)]
pub(super) struct Chores {
    locks: Advice,
    /// The number of records, as estimated from one stripe.
    records: usize,
    /// A hash in this stripe.
    hash: u64,
}

impl Chores {
    pub(super) fn of(locked: &Locked<'_>, active: usize) -> Self {
        Self {
            locks: locked.advice(active),
            records: locked.estimate(),
            hash: locked.hash(),
        }
    }
}

/// Returns the direction of resizing for this many records in `active` buckets.
fn resizing(records: usize, active: usize) -> Resizing {
    if records > active * MAX_LOAD {
        Resizing::Grow
    } else if records < active * MIN_LOAD && active > MIN_BUCKETS {
        Resizing::Shrink
    } else {
        Resizing::Stay
    }
}

/// The records that leave a bucket: a bit for each of the first 64.
#[derive(Default)]
struct Leaving {
    bits: u64,
    len: u32,
}

impl Leaving {
    fn push(&mut self, leaves: bool) {
        if self.len < u64::BITS {
            self.bits |= u64::from(leaves) << self.len;
            self.len += 1;
        }
    }

    fn iter(&self) -> impl Iterator<Item = bool> {
        let bits = self.bits;
        (0..self.len).map(move |index| bits >> index & 1 != 0)
    }
}

impl<R: Release> HashTable<R> {
    /// Does a little of the deferred work, unless another thread is at it. The caller holds no
    /// stripe.
    #[inline]
    pub(super) fn do_chores(&self, chores: Chores, guard: &Guard) {
        let resizing = resizing(chores.records, self.directory.active());
        if resizing != Resizing::Stay || chores.locks != Advice::Keep {
            self.adapt(chores, guard);
        }
    }

    #[cold]
    fn adapt(&self, chores: Chores, guard: &Guard) {
        let Some(_resizing) = self.rare().resizing.try_lock() else {
            return;
        };
        self.stripes
            .adapt(chores.locks, self.directory.active(), guard);
        let active = self.directory.active();
        if resizing(chores.records, active) == Resizing::Stay {
            return;
        }
        let records = self.stripes.survey(chores.hash, guard);
        let steps = steps(active, self.stripes.count(guard));
        match resizing(records, active) {
            Resizing::Stay => {}
            Resizing::Grow => {
                let enough = records / MAX_LOAD + steps;
                self.grow(steps.min(enough.saturating_sub(active)), guard);
            }
            Resizing::Shrink => {
                let enough = (records / MIN_LOAD).saturating_sub(steps);
                let few = active - enough.max(MIN_BUCKETS);
                (0..steps.min(few)).for_each(|_| self.join(guard));
            }
        }
    }

    /// Changes the layout against the demand of contention and of the number of records, within
    /// bounds and unless another thread is changing it. Later writes restore the demanded layout in
    /// small steps.
    #[cold]
    pub(super) fn force(&self, forced: Forced, guard: &Guard) {
        let Some(_resizing) = self.rare().resizing.try_lock() else {
            return;
        };
        let active = self.directory.active();
        let records = self.stripes.records(guard);
        match forced {
            Forced::Split => {
                self.stripes.adapt(Advice::Double, active, guard);
                if active < 2 * MIN_BUCKETS + records {
                    self.grow(STEPS / 2, guard);
                }
            }
            Forced::Join => {
                self.stripes.adapt(Advice::Halve, active, guard);
                if active > MIN_BUCKETS && records < active * 2 * MAX_LOAD {
                    self.join(guard);
                }
            }
        }
    }

    /// Activates `steps` more buckets. The caller holds the resize lock.
    fn grow(&self, steps: usize, guard: &Guard) {
        let first = parent_of(self.directory.active());
        for step in 0..steps {
            // The next buckets are known, so the misses of their records overlap.
            (first + step + 2..first + step + 4).for_each(|ahead| self.directory.prefetch(ahead));
            if let Some(next) = self.directory.bucket(first + step + 1, guard) {
                next.prefetch_all_records::<1>();
            }
            self.split(guard);
        }
    }

    /// Activates one more bucket. The caller holds the resize lock.
    ///
    /// A reader finds each record at any moment: first the copy is published, then the number of
    /// buckets changes, then the original is cleared. A reader that missed the original, because it
    /// was cleared, finds the new number when it confirms its miss, and looks in the other bucket.
    pub(super) fn split(&self, guard: &Guard) {
        let partner = self.directory.active();
        let bucket = parent_of(partner);
        self.directory.provide(partner);
        let _locked = self.stripes.lock(bucket as u64, guard);
        self.move_apart(bucket, partner, guard);
    }

    /// Does the step itself, under the locks.
    pub(super) fn move_apart(&self, bucket: usize, partner: usize, guard: &Guard) {
        let from = self.active_bucket(bucket, guard);
        let to = self.active_bucket(partner, guard);
        // The highest bit of the new bucket's number distinguishes the two buckets.
        let bit = (partner - bucket) as u64;
        let mut leaving = Leaving::default();
        let mut lines = 0;
        from.for_each(|_, word| {
            let leaves = self.hash_of(word) & bit != 0;
            leaving.push(leaves);
            if leaves {
                lines += to.insert(*word) as i64;
            }
        });
        self.directory.set_active(partner + 1);
        let mut leaving = leaving.iter();
        from.for_each(|slot, word| {
            let leaves = leaving.next();
            if leaves.unwrap_or_else(|| self.hash_of(word) & bit != 0) {
                from.clear(slot);
            }
        });
        from.compact(|| self.directory.announce_move());
        lines -= from.unlink_empty(guard) as i64;
        self.add_lines(lines);
    }

    /// Deactivates one bucket. The caller holds the resize lock.
    ///
    /// The order is that of [`split`](Self::split). In addition the move is counted, before and
    /// after the number of buckets changes: after a join and a split, or a split and a join, that
    /// number is the old one, and a reader must notice both. See the proof in [`hash`](super).
    pub(super) fn join(&self, guard: &Guard) {
        let partner = self.directory.active() - 1;
        let bucket = parent_of(partner);
        if self.stripes.count(guard) * MIN_BUCKETS_PER_STRIPE > partner {
            self.stripes.adapt(Advice::Halve, partner, guard);
        }
        let locked = self.stripes.lock(bucket as u64, guard);
        self.move_together(bucket, partner, guard);
        drop(locked);
        self.directory.trim(guard);
    }

    /// Does the step itself, under the locks.
    pub(super) fn move_together(&self, bucket: usize, partner: usize, guard: &Guard) {
        let from = self.active_bucket(partner, guard);
        let to = self.active_bucket(bucket, guard);
        let mut lines = 0;
        from.for_each(|_, word| lines += to.insert(*word) as i64);
        self.directory.announce_move();
        self.directory.set_active(partner);
        self.directory.announce_move();
        from.for_each(|slot, _| from.clear(slot));
        lines -= from.unlink_empty(guard) as i64;
        self.add_lines(lines);
    }

    /// Returns the hash of the record in an occupied slot.
    fn hash_of(&self, word: Full<'_, R>) -> u64 {
        self.seed.hash(word.record().key())
    }
}
