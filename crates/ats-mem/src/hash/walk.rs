//! The order of the table, and walks in it.
//!
//! The records are ordered by their hash *with its bits reversed*, and by key where hashes are
//! equal. This order does not depend on the layout: a bucket holds an interval of it, because the
//! low bits, which select the bucket, come first; a split divides the interval in two; a join
//! unites two neighbours. (Split-ordered lists, Shalev and Shavit, 2006, rest on the same fact.) So
//! a walk needs only the key it has reached, continues correctly while the table grows or shrinks,
//! and meets every key at most once, and every lasting key exactly once.
//!
//! The price: consecutive buckets are not adjacent in memory, and the records of a bucket have to
//! be sorted, a handful at a time.

use super::bucket::Bucket;
use super::directory::depth_of;
use super::line::{Full, Word};
use super::table::HashTable;
use crate::read_points::When;
use crate::record::{Record, Release};
use crate::records::NoSuchKey;
use ats_sync::Guard;
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// A position in the order.
#[derive(Clone, Copy)]
pub(super) enum Position<'k> {
    /// Before all hashes with this reversed value.
    At(u64),
    /// After this key, with its reversed hash.
    Behind(u64, &'k [u8]),
}

impl<'k> Position<'k> {
    pub(super) const START: Self = Self::At(0);

    pub(super) fn behind(hash: u64, key: &'k [u8]) -> Self {
        Self::Behind(hash.reverse_bits(), key)
    }

    fn reversed_hash(self) -> u64 {
        match self {
            Self::At(reversed) | Self::Behind(reversed, _) => reversed,
        }
    }

    /// Compares the position with `key`, which has this reversed hash. A position equals the key
    /// that it follows.
    #[inline]
    fn order(self, reversed: u64, key: &[u8]) -> Ordering {
        match self {
            Self::At(here) if here <= reversed => Ordering::Less,
            Self::At(_) => Ordering::Greater,
            Self::Behind(here, behind) => (here, behind).cmp(&(reversed, key)),
        }
    }
}

/// Returns the record of a word of a bucket that a query at this read point sees.
#[inline(always)]
pub(super) fn resolve_word<'g, R: Release>(
    word: Word,
    record: &'g Record<R>,
    when: When,
    guard: &'g Guard,
) -> Option<&'g Record<R>> {
    match (word.is_deleted(), when.is_now()) {
        (false, true) => record.resolve(guard),
        (false, false) => record.resolve_at(when, guard),
        // A marked record is deleted, but a removal leads to the record before.
        (true, false) if record.is_removal() => record.resolve_at(when, guard),
        (true, _) => None,
    }
}

/// The records of one interval in order, each as of one moment.
type Found<'g, R> = Vec<(u64, &'g Record<R>)>;

/// The step from a position to the next record, within the interval of one bucket.
struct Step<'g, R: Release> {
    first: Option<&'g Record<R>>,
    /// `true` if the position follows a known key.
    is_known: bool,
    /// Start of the next interval; `None` at the end of the table.
    end: Option<u64>,
}

/// Positions ahead of a walk, whose buckets and records are prefetched, because consecutive buckets
/// are not adjacent in memory. If the table changes meanwhile, they may be wrong, which is
/// harmless.
struct Scouts {
    /// Position from which buckets are prefetched; `None` beyond the end of the table.
    far: Option<u64>,
    /// Position from which records are prefetched.
    near: Option<u64>,
}

/// Number of buckets prefetched ahead of a walk; records are prefetched half as far.
const AHEAD: usize = 10;

impl Scouts {
    fn new<R: Release>(table: &HashTable<R>, position: u64) -> Self {
        let ahead = |from, steps| (0..steps).try_fold(from, |at, _| table.interval_after(at));
        let near = ahead(position, AHEAD / 2);
        Scouts {
            far: near.and_then(|near| ahead(near, AHEAD - AHEAD / 2)),
            near,
        }
    }

    /// Advances both positions by one bucket.
    #[inline]
    fn go_on<R: Release>(&mut self, table: &HashTable<R>, guard: &Guard) {
        let bucket_at = |position: u64| table.directory.view().bucket(position.reverse_bits());
        if let Some(position) = self.far {
            table.directory.prefetch(bucket_at(position));
            self.far = table.interval_after(position);
        }
        if let Some(position) = self.near {
            if let Some(bucket) = table.directory.bucket(bucket_at(position), guard) {
                bucket.prefetch_all_records::<2>();
            }
            self.near = table.interval_after(position);
        }
    }
}

impl<R: Release> HashTable<R> {
    /// Returns `true` if a walk may continue from the key of this word. `is_fixed` was read before
    /// the word.
    #[inline]
    fn is_known(word: Word, record: &Record<R>, is_fixed: bool, guard: &Guard) -> bool {
        if word.is_deleted() {
            is_fixed && !word.is_unknown()
        } else {
            record.resolve(guard).is_some()
        }
    }

    /// Returns the position after `key`, which must be known.
    pub(super) fn behind<'k>(
        &self,
        key: &'k [u8],
        guard: &Guard,
    ) -> Result<Position<'k>, NoSuchKey> {
        let (hash, is_fixed) = (self.seed.hash(key), self.is_fixed());
        let known = self.search(key, hash, guard, |word, record| {
            Self::is_known(word, record, is_fixed, guard).then_some(())
        });
        known.map(|()| Position::behind(hash, key)).ok_or(NoSuchKey)
    }

    /// Returns the first record after `position`.
    pub(super) fn successor<'g>(
        &'g self,
        position: Position<'_>,
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        let mut position = position;
        loop {
            let step = self.step(position, guard);
            match (step.first, step.end) {
                (Some(first), _) => return Some(first),
                (None, end) => position = Position::At(end?),
            }
        }
    }

    /// Returns the first record after `key`, which must be known. Nearly always one bucket has
    /// both.
    pub(super) fn successor_of<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Record<R>>, NoSuchKey> {
        let step = self.step(Position::behind(self.seed.hash(key), key), guard);
        match (step.is_known, step.first, step.end) {
            (false, _, _) => Err(NoSuchKey),
            (true, None, Some(end)) => Ok(self.successor(Position::At(end), guard)),
            (true, first, _) => Ok(first),
        }
    }

    /// Visits the records after `position` in order until `visit` breaks.
    pub(super) fn walk<'g>(
        &'g self,
        position: Position<'_>,
        when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        let end = self.walk_until(position, when, guard, visit, &mut || {
            ControlFlow::Continue(())
        });
        debug_assert_eq!(end, None);
    }

    /// Visits the records after `position` in order until `visit` breaks, or `pause`, which is
    /// called after each bucket; then it returns the position to continue from.
    pub(super) fn walk_until<'g>(
        &'g self,
        position: Position<'_>,
        when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<u64> {
        let mut found = Found::new();
        let mut position = position;
        let mut scouts = Scouts::new(self, position.reversed_hash());
        loop {
            scouts.go_on(self, guard);
            let end = self.gather(position, when, guard, &mut found);
            for (_, record) in found.drain(..) {
                if visit(record).is_break() {
                    return None;
                }
            }
            let end = end?;
            if pause().is_break() {
                return Some(end);
            }
            position = Position::At(end);
        }
    }

    /// Visits the records of one of `slots` slots: those whose hash would lead to bucket `slot` if
    /// the table had `slots` buckets. These are adjacent in the order of the table for any number
    /// of buckets.
    pub(super) fn walk_slot<'g>(
        &'g self,
        slot: usize,
        slots: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>),
    ) {
        let first = (slot as u64).reverse_bits();
        let last = first | (u64::MAX >> depth_of(slot, slots));
        self.walk(Position::At(first), When::NOW, guard, &mut |record| {
            if self.seed.hash(record.key()).reverse_bits() > last {
                return ControlFlow::Break(());
            }
            visit(record);
            ControlFlow::Continue(())
        });
    }

    /// Returns the start of the interval of the next bucket at this moment; `None` at the end of
    /// the table.
    #[inline]
    fn interval_after(&self, position: u64) -> Option<u64> {
        let view = self.directory.view();
        let bucket = view.bucket(position.reverse_bits());
        (position | (u64::MAX >> view.depth(bucket))).checked_add(1)
    }

    /// Reads the bucket of `position`, which may be gone, and its records up to the end of the
    /// interval; repeats this until none of them has moved meanwhile. As in `search`, only a miss
    /// has to be confirmed. Returns the result of the last attempt, and the start of the next
    /// interval, `None` at the end of the table.
    fn look_at_interval<'g, T>(
        &'g self,
        position: Position<'_>,
        guard: &'g Guard,
        mut look: impl FnMut(Option<Bucket<'g, R>>, u64) -> T,
    ) -> (T, Option<u64>) {
        loop {
            let view = self.directory.view();
            let bucket = view.bucket(position.reversed_hash().reverse_bits());
            let last = position.reversed_hash() | (u64::MAX >> view.depth(bucket));
            let found = look(self.directory.bucket(bucket, guard), last);
            if self.directory.confirms_bucket(view, bucket) {
                return (found, last.checked_add(1));
            }
        }
    }

    /// Collects the records from `position` to the end of the interval of its bucket in `found`,
    /// in order. Returns the start of the next interval, `None` at the end of the table.
    fn gather<'g>(
        &'g self,
        position: Position<'_>,
        when: When,
        guard: &'g Guard,
        found: &mut Found<'g, R>,
    ) -> Option<u64> {
        let ((), end) = self.look_at_interval(position, guard, |bucket, last| {
            found.clear();
            if let Some(bucket) = bucket {
                self.collect(bucket, (position, last), when, guard, found);
            }
        });
        if found.len() > 1 {
            found.sort_unstable_by(|a, b| {
                let by_hash = a.0.cmp(&b.0);
                by_hash.then_with(|| a.1.key().cmp(b.1.key()))
            });
            // A record that is being moved within its bucket can be met twice.
            found.dedup_by(|a, b| a.0 == b.0 && a.1.key() == b.1.key());
        }
        end
    }

    /// Returns the step from `position` at this moment.
    fn step<'g>(&'g self, position: Position<'_>, guard: &'g Guard) -> Step<'g, R> {
        let is_fixed = self.is_fixed();
        let ((first, is_known), end) = self.look_at_interval(position, guard, |bucket, last| {
            let (mut first, mut is_known) = (None::<(u64, &Record<R>)>, false);
            let visit = |_, word: Full<'g, R>| {
                let record = word.record();
                let reversed = self.seed.hash(record.key()).reverse_bits();
                match position.order(reversed, record.key()) {
                    Ordering::Greater => {}
                    Ordering::Equal => is_known |= Self::is_known(*word, record, is_fixed, guard),
                    Ordering::Less => {
                        let is_first = first.is_none_or(|(other, first)| {
                            (reversed, record.key()) < (other, first.key())
                        });
                        if is_first && reversed <= last {
                            let seen = resolve_word(*word, record, When::NOW, guard);
                            first = seen.map(|record| (reversed, record)).or(first);
                        }
                    }
                }
            };
            if let Some(bucket) = bucket {
                bucket.for_each(visit);
            }
            (first.map(|(_, record)| record), is_known)
        });
        Step {
            first,
            is_known,
            end,
        }
    }

    fn collect<'g>(
        &'g self,
        bucket: Bucket<'g, R>,
        (position, last): (Position<'_>, u64),
        when: When,
        guard: &'g Guard,
        found: &mut Found<'g, R>,
    ) {
        bucket.for_each(|_, word| {
            if word.is_deleted() && when.is_now() {
                return;
            }
            let record = word.record();
            let reversed = self.seed.hash(record.key()).reverse_bits();
            if reversed <= last
                && position.order(reversed, record.key()).is_lt()
                && let Some(record) = resolve_word(*word, record, when, guard)
            {
                found.push((reversed, record));
            }
        });
    }
}
