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

use super::bucket::{Bucket, Contents, FEW_SLOTS};
use super::bucket_orders::{Here, Remembered};
use super::directory::{View, depth_of};
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

/// The first record behind a position in its bucket, and `true` if the position follows a known
/// key.
type FirstBehind<'g, R> = (Option<&'g Record<R>>, bool);

/// The step from a position to the next record, within the interval of one bucket.
struct Step<'g, R: Release> {
    first: Option<&'g Record<R>>,
    /// `true` if the position follows a known key.
    is_known: bool,
    /// Start of the next interval; `None` at the end of the table.
    end: Option<u64>,
}

/// The interval of a bucket, in a view of the table.
#[derive(Clone, Copy)]
struct Interval {
    view: View,
    bucket: usize,
    /// The last reversed hash of the interval.
    last: u64,
    /// The first one.
    first: u64,
}

impl Interval {
    fn of(view: View, position: Position<'_>) -> Self {
        let reversed = position.reversed_hash();
        let bucket = view.bucket(reversed.reverse_bits());
        let rest = u64::MAX >> view.depth(bucket);
        Interval {
            view,
            bucket,
            last: reversed | rest,
            first: reversed & !rest,
        }
    }

    /// Returns the start of the next interval; `None` at the end of the table.
    #[inline]
    fn end(self) -> Option<u64> {
        self.last.checked_add(1)
    }
}

/// A record of a bucket.
struct Row<'g, R: Release> {
    reversed: u64,
    slot: u8,
    full: Full<'g, R>,
}

impl<R: Release> Clone for Row<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Release> Copy for Row<'_, R> {}

/// The records of a bucket of up to two lines, in order.
struct Order<'g, R: Release> {
    rows: [Option<Row<'g, R>>; FEW_SLOTS],
    len: usize,
}

impl<'g, R: Release> Order<'g, R> {
    fn rows(&self) -> impl Iterator<Item = Row<'g, R>> {
        self.rows[..self.len].iter().flatten().copied()
    }

    /// Returns `true` if the bucket has the records of its interval, each once. It has others while
    /// records are moved.
    fn is_settled(&self, interval: Interval) -> bool {
        let mut least = Some(interval.first);
        self.rows().all(|row| {
            let is_next = least.is_some_and(|least| row.reversed >= least);
            least = row.reversed.checked_add(1);
            is_next && row.reversed <= interval.last
        })
    }
}

/// Takes a step in a bucket whose order is remembered. Returns `None` if the position is that of an
/// unknown key, or is within the interval.
#[inline]
fn step_along<'g, R: Release>(
    remembered: &Remembered<'_, 'g, R>,
    (position, interval): (Position<'_>, Interval),
    is_fixed: bool,
    guard: &'g Guard,
) -> Option<FirstBehind<'g, R>> {
    let (slot, is_known) = match position {
        Position::At(reversed) if reversed == interval.first => (None, false),
        Position::At(_) => return None,
        Position::Behind(reversed, key) => {
            let (slot, full) = remembered.find(reversed.reverse_bits(), key)?;
            let is_known = HashTable::is_known(*full, full.record(), is_fixed, guard);
            (Some(slot), is_known)
        }
    };
    let mut records = remembered.records_behind(slot);
    let first = records.find_map(|full| resolve_word(*full, full.record(), When::NOW, guard));
    Some((first, is_known))
}

/// Returns the first of some records in order that is behind `position` and not behind `last`, and
/// whether a walk may continue from the key that the position follows.
#[inline]
fn step_over<'g, R: Release>(
    rows: impl Iterator<Item = (u64, Full<'g, R>)>,
    position: Position<'_>,
    last: u64,
    is_fixed: bool,
    guard: &'g Guard,
) -> FirstBehind<'g, R> {
    let mut is_known = false;
    for (reversed, full) in rows {
        let record = full.record();
        match position.order(reversed, record.key()) {
            Ordering::Greater => {}
            Ordering::Equal => is_known |= HashTable::is_known(*full, record, is_fixed, guard),
            Ordering::Less if reversed > last => break,
            Ordering::Less => {
                if let Some(record) = resolve_word(*full, record, When::NOW, guard) {
                    return (Some(record), is_known);
                }
            }
        }
    }
    (None, is_known)
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
            record.resolve(guard).is_some() || is_fixed && record.holds_known_key(guard)
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
            if self.reversed_hash(record) > last {
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
        Interval::of(self.directory.view(), Position::At(position)).end()
    }

    /// Reads the bucket of `position`, which may be gone, and its records up to the end of the
    /// interval; repeats this until none of them has moved meanwhile. As in `search`, only a miss
    /// has to be confirmed. Returns the result of the last attempt, and the start of the next
    /// interval, `None` at the end of the table.
    fn look_at_interval<'g, T>(
        &'g self,
        position: Position<'_>,
        guard: &'g Guard,
        mut look: impl FnMut(Option<Bucket<'g, R>>, Interval) -> T,
    ) -> (T, Option<u64>) {
        loop {
            let interval = Interval::of(self.directory.view(), position);
            let found = look(self.directory.bucket(interval.bucket, guard), interval);
            if self
                .directory
                .confirms_bucket(interval.view, interval.bucket)
            {
                return (found, interval.end());
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
        let ((), end) = self.look_at_interval(position, guard, |bucket, interval| {
            found.clear();
            if let Some(bucket) = bucket {
                self.collect(bucket, (position, interval.last), when, guard, found);
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
        let ((first, is_known), end) =
            self.look_at_interval(position, guard, |bucket, interval| {
                let Some(bucket) = bucket else {
                    return (None, false);
                };
                let here = Here {
                    identity: &self.identity,
                    view: interval.view,
                    bucket: interval.bucket,
                };
                let recalled = here.recall(bucket, guard, |remembered| {
                    step_along(&remembered, (position, interval), is_fixed, guard)
                });
                if let Some(step) = recalled {
                    return step;
                }
                if let Some(contents) = bucket.contents() {
                    let order = self.sort(bucket, &contents);
                    if order.is_settled(interval) {
                        here.remember(&contents, order.rows().map(|row| row.slot), guard);
                    }
                    let rows = order.rows().map(|row| (row.reversed, row.full));
                    return step_over(rows, position, interval.last, is_fixed, guard);
                }
                let mut rows = Vec::new();
                bucket.for_each(|_, full| rows.push((self.reversed_hash(full.record()), full)));
                rows.sort_unstable_by_key(|(reversed, full)| (*reversed, full.record().key()));
                step_over(rows.into_iter(), position, interval.last, is_fixed, guard)
            });
        Step {
            first,
            is_known,
            end,
        }
    }

    #[inline]
    pub(super) fn reversed_hash(&self, record: &Record<R>) -> u64 {
        self.seed.hash(record.key()).reverse_bits()
    }

    /// Sorts the records of a bucket.
    fn sort<'g>(&self, bucket: Bucket<'g, R>, contents: &Contents) -> Order<'g, R> {
        let mut order = Order {
            rows: [None; FEW_SLOTS],
            len: 0,
        };
        for (slot, word) in contents.words.iter().enumerate() {
            // SAFETY: the contents have just been loaded from the bucket.
            if let Some(full) = unsafe { bucket.full(*word) } {
                order.rows[order.len] = Some(Row {
                    reversed: self.reversed_hash(full.record()),
                    slot: slot as u8,
                    full,
                });
                order.len += 1;
            }
        }
        order.rows[..order.len]
            .sort_unstable_by_key(|row| row.map(|row| (row.reversed, row.full.record().key())));
        order
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
            let reversed = self.reversed_hash(record);
            if reversed <= last
                && position.order(reversed, record.key()).is_lt()
                && let Some(record) = resolve_word(*word, record, when, guard)
            {
                found.push((reversed, record));
            }
        });
    }
}
