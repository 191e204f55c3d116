//! The order of the table, and walking in it.
//!
//! The records are ordered by their hash *with its bits reversed*, and by key where hashes are
//! equal. This order does not depend on the layout: a bucket holds an interval of it, since the low
//! bits, which name the bucket, come first; a split cuts the interval in two; a join glues two
//! neighbours. (Split-ordered lists, Shalev and Shavit, 2006, rest on the same fact.) So a walk
//! needs no more than the key it has come to, goes on correctly however the table grows or shrinks
//! meanwhile, and meets every key at most once, and every key that stays exactly once.
//!
//! The price: consecutive buckets are not neighbours in memory, and within a bucket the records
//! have to be put in order, a handful at a time.

use super::bucket::Bucket;
use super::directory::depth_of;
use super::line::{Full, Word};
use super::table::HashTable;
use crate::moments::When;
use crate::record::{Record, Release};
use crate::records::NoSuchKey;
use ats_sync::Guard;
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// A place in the order.
#[derive(Clone, Copy)]
pub(super) enum Place<'k> {
    /// Before all hashes of this reversed value.
    At(u64),
    /// Behind this key, whose reversed hash is given.
    Behind(u64, &'k [u8]),
}

impl<'k> Place<'k> {
    pub(super) const START: Self = Self::At(0);

    pub(super) fn behind(hash: u64, key: &'k [u8]) -> Self {
        Self::Behind(hash.reverse_bits(), key)
    }

    fn reversed_hash(self) -> u64 {
        match self {
            Self::At(reversed) | Self::Behind(reversed, _) => reversed,
        }
    }

    /// The order of the place and of `key`, which has this reversed hash. A place is equal to the
    /// key that it is behind.
    #[inline]
    fn order(self, reversed: u64, key: &[u8]) -> Ordering {
        match self {
            Self::At(here) if here <= reversed => Ordering::Less,
            Self::At(_) => Ordering::Greater,
            Self::Behind(here, behind) => (here, behind).cmp(&(reversed, key)),
        }
    }
}

/// The record that a query of this moment sees of what is in a slot.
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
        // It was removed when it was marked, except that a removal leads to what was there before.
        (true, false) if record.is_removal() => record.resolve_at(when, guard),
        (true, _) => None,
    }
}

/// The records of one interval in order, as of one moment each.
type Found<'g, R> = Vec<(u64, &'g Record<R>)>;

/// The step from a place to the first record behind it, within the interval of one bucket.
struct Step<'g, R: Release> {
    first: Option<&'g Record<R>>,
    /// `true` if the place is behind a key that is known.
    is_known: bool,
    /// The beginning of the next interval; `None` at the end of the table.
    end: Option<u64>,
}

/// Places ahead of a walk, whose buckets and records are asked for before it comes to them:
/// consecutive buckets are not neighbours in memory. If the table changes meanwhile, they may be
/// somewhere else, which does no harm.
struct Scouts {
    /// The place from which buckets are asked for; `None` beyond the end of the table.
    far: Option<u64>,
    /// The place from which records are asked for.
    near: Option<u64>,
}

/// The number of buckets that are asked for ahead of a walk; the records of those half as far.
const AHEAD: usize = 10;

impl Scouts {
    fn new<R: Release>(table: &HashTable<R>, place: u64) -> Self {
        let ahead =
            |place, steps| (0..steps).try_fold(place, |place, _| table.interval_after(place));
        let near = ahead(place, AHEAD / 2);
        Scouts {
            far: near.and_then(|near| ahead(near, AHEAD - AHEAD / 2)),
            near,
        }
    }

    /// Each goes on by one bucket.
    #[inline]
    fn go_on<R: Release>(&mut self, table: &HashTable<R>, guard: &Guard) {
        let bucket_at = |place: u64| table.directory.view().bucket(place.reverse_bits());
        if let Some(place) = self.far {
            table.directory.prefetch(bucket_at(place));
            self.far = table.interval_after(place);
        }
        if let Some(place) = self.near {
            if let Some(bucket) = table.directory.bucket(bucket_at(place), guard) {
                bucket.prefetch_all_records::<2>();
            }
            self.near = table.interval_after(place);
        }
    }
}

impl<R: Release> HashTable<R> {
    /// Returns `true` if a walk may continue from the key of this slot. `is_fixed` was read before
    /// the slot.
    #[inline]
    fn is_known(word: Word, record: &Record<R>, is_fixed: bool, guard: &Guard) -> bool {
        match word.is_deleted() {
            true => is_fixed && !word.is_unknown(),
            false => record.resolve(guard).is_some(),
        }
    }

    /// The place behind `key`, which must be known.
    pub(super) fn behind<'k>(&self, key: &'k [u8], guard: &Guard) -> Result<Place<'k>, NoSuchKey> {
        let (hash, is_fixed) = (self.seed.hash(key), self.is_fixed());
        let known = self.search(key, hash, guard, |word, record| {
            Self::is_known(word, record, is_fixed, guard).then_some(())
        });
        known.map(|()| Place::behind(hash, key)).ok_or(NoSuchKey)
    }

    /// The first record behind `place`.
    pub(super) fn successor<'g>(
        &'g self,
        place: Place<'_>,
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        let mut place = place;
        loop {
            let step = self.step(place, guard);
            match (step.first, step.end) {
                (Some(first), _) => return Some(first),
                (None, end) => place = Place::At(end?),
            }
        }
    }

    /// The first record behind `key`, which must be known. Nearly always one bucket has both.
    pub(super) fn successor_of<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Record<R>>, NoSuchKey> {
        let step = self.step(Place::behind(self.seed.hash(key), key), guard);
        match (step.is_known, step.first, step.end) {
            (false, _, _) => Err(NoSuchKey),
            (true, None, Some(end)) => Ok(self.successor(Place::At(end), guard)),
            (true, first, _) => Ok(first),
        }
    }

    /// Visits the records behind `place` in order until `visit` breaks.
    pub(super) fn walk<'g>(
        &'g self,
        place: Place<'_>,
        when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        let end = self.walk_until(place, when, guard, visit, &mut || ControlFlow::Continue(()));
        debug_assert_eq!(end, None);
    }

    /// Visits the records behind `place` in order until `visit` breaks, or `pause`, which is asked
    /// after each bucket; then it returns where to go on.
    pub(super) fn walk_until<'g>(
        &'g self,
        place: Place<'_>,
        when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<u64> {
        let mut found = Found::new();
        let mut place = place;
        let mut scouts = Scouts::new(self, place.reversed_hash());
        loop {
            scouts.go_on(self, guard);
            let end = self.gather(place, when, guard, &mut found);
            for (_, record) in found.drain(..) {
                if visit(record).is_break() {
                    return None;
                }
            }
            let end = end?;
            if pause().is_break() {
                return Some(end);
            }
            place = Place::At(end);
        }
    }

    /// Visits the records of one of so many slots: those whose hash would lead to bucket `slot` if
    /// the table had `slots` buckets. These are neighbours in the order of the table, whatever
    /// buckets it has.
    pub(super) fn walk_slot<'g>(
        &'g self,
        slot: usize,
        slots: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>),
    ) {
        let first = (slot as u64).reverse_bits();
        let last = first | (u64::MAX >> depth_of(slot, slots));
        self.walk(Place::At(first), When::NOW, guard, &mut |record| {
            if self.seed.hash(record.key()).reverse_bits() > last {
                return ControlFlow::Break(());
            }
            visit(record);
            ControlFlow::Continue(())
        });
    }

    /// The beginning of the interval of the next bucket, at this moment; `None` at the end of the
    /// table.
    #[inline]
    fn interval_after(&self, place: u64) -> Option<u64> {
        let view = self.directory.view();
        let bucket = view.bucket(place.reverse_bits());
        (place | (u64::MAX >> view.depth(bucket))).checked_add(1)
    }

    /// Looks at the bucket of `place`, which may be gone, and at its records up to the end of the
    /// interval: again, until none of these was somewhere else meanwhile. As in `search`, a miss is
    /// what has to be confirmed. Returns what the last look has found, and where the next interval
    /// begins, `None` at the end of the table.
    fn look_at_interval<'g, T>(
        &'g self,
        place: Place<'_>,
        guard: &'g Guard,
        mut look: impl FnMut(Option<Bucket<'g, R>>, u64) -> T,
    ) -> (T, Option<u64>) {
        loop {
            let view = self.directory.view();
            let bucket = view.bucket(place.reversed_hash().reverse_bits());
            let last = place.reversed_hash() | (u64::MAX >> view.depth(bucket));
            let found = look(self.directory.bucket(bucket, guard), last);
            if self.directory.confirms_bucket(view, bucket) {
                return (found, last.checked_add(1));
            }
        }
    }

    /// Puts the records from `place` to the end of the interval of its bucket into `found`, in
    /// order. Returns where the next interval begins, `None` at the end of the table.
    fn gather<'g>(
        &'g self,
        place: Place<'_>,
        when: When,
        guard: &'g Guard,
        found: &mut Found<'g, R>,
    ) -> Option<u64> {
        let ((), end) = self.look_at_interval(place, guard, |bucket, last| {
            found.clear();
            if let Some(bucket) = bucket {
                self.collect(bucket, (place, last), when, guard, found);
            }
        });
        if found.len() > 1 {
            found.sort_unstable_by(|a, b| {
                let by_hash = a.0.cmp(&b.0);
                by_hash.then_with(|| a.1.key().cmp(b.1.key()))
            });
            // A record that is being moved within its bucket can be met in both places.
            found.dedup_by(|a, b| a.0 == b.0 && a.1.key() == b.1.key());
        }
        end
    }

    /// The step from `place` as of now.
    fn step<'g>(&'g self, place: Place<'_>, guard: &'g Guard) -> Step<'g, R> {
        let is_fixed = self.is_fixed();
        let ((first, is_known), end) = self.look_at_interval(place, guard, |bucket, last| {
            let (mut first, mut is_known) = (None::<(u64, &Record<R>)>, false);
            let visit = |_, word: Full<'g, R>| {
                let record = word.record();
                let reversed = self.seed.hash(record.key()).reverse_bits();
                match place.order(reversed, record.key()) {
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
        (place, last): (Place<'_>, u64),
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
                && place.order(reversed, record.key()).is_lt()
                && let Some(record) = resolve_word(*word, record, when, guard)
            {
                found.push((reversed, record));
            }
        });
    }
}
