//! Gaps: ranges of keys in which walks have found nothing, though there are deletes to be passed.
//!
//! The deletes of keys stay in memtables and runs until runs are compacted. A queue that is taken
//! from at one end leaves as many of them as it had records, and each search for the next record
//! walks over all of them: without help, n of them cost O(n²). So a walk that has passed many keys
//! without a value remembers the gap between two records, and later walks go past it at once. A
//! tombstone that was passed once is not passed again, so a delete costs later walks O(log n)
//! amortised. Gaps are about records, and know nothing of memtables and runs: they outlive flushes
//! and compactions, but not the process.
//!
//! # Invariants
//! - TOMBSTONE_GAPS-1. A reader at a sequence number from that of a gap on finds no record in the
//!   gap, as long as the gap is known. Nor do those that read later: a write of a record breaks the
//!   gap in which its key is before the write is published.
//! - TOMBSTONE_GAPS-2. While gaps are active, the leader of a group tells all keys that get a value
//!   or an operand before it publishes the group, and no other group is told until then. A reader
//!   takes its sequence number before it asks for a gap, so all that it must see has been told.
//! - TOMBSTONE_GAPS-3. `recent` has all keys that were told with numbers above `recent_from`. A gap
//!   that a walk at the number `s` has found is taken only if `recent_from` is `s` or less, and
//!   then it is broken at those of the recent keys that the walk has not seen.
//! - TOMBSTONE_GAPS-4. When gaps become active, `recent_from` is a number up to which all was
//!   published: that of the last write, if the lock of writers is free; else it becomes known with
//!   the next group.
//!
//! Nor does the first walk pass much, where deletes are neighbours: after some deletes, a short
//! walk around the last of them looks for a gap, and the more seldom the less it finds. So where
//! keys are deleted in their order, the gap grows with them.
//!
//! It costs a load for each write, until a walk passes many deletes for the first time. From then
//! on a write of a record takes a lock and searches, and a walk takes the lock when it begins;
//! until so many records were written without a gap being of use that nothing seems to be gained.
//! The number of gaps is bounded, and so is the memory of recent keys: when either is used up,
//! something is forgotten, and walks find it again.

use crate::ids::Seq;
use ats_store::{Direction, KeyRange, successor};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

#[cfg(test)]
mod tests;

/// A gap is worth being remembered if a walk has passed so many keys in it.
pub(crate) const LEAST_PASSED: u32 = 16;
/// The most gaps that are remembered.
const MOST_GAPS: usize = 4096;
/// After so many deletes it is looked for a gap around the last of them; and at least after so many
/// doublings of that.
const DELETES: u32 = 128;
const MOST_DOUBLINGS: u32 = 6;
/// Longer keys are not remembered as bounds.
const LONGEST_BOUND: usize = 1024;
/// The most that is kept of recent keys, in bytes.
const RECENT_BYTES: usize = 1 << 20;
/// Bytes that a recent key costs besides its own.
const RECENT_OVERHEAD: usize = 32;
/// The most writes in a gap that a walk has not seen and still remembers the gap.
const MOST_UNSEEN: usize = 64;
/// Number of gaps that are looked at to find one to be forgotten.
const CANDIDATES: usize = 8;
/// After so many records were written without a gap being of use, all are forgotten.
const MOST_UNUSED: u32 = 1 << 16;

/// A number that no walk has.
const UNKNOWN: Seq = Seq::MAX;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct TombstoneGaps {
    /// Stored to under the lock. Leaders of groups load it under the lock of writers.
    is_active: AtomicBool,
    known: Mutex<Known>,
    deletes: Deletes,
}

/// Decides after which deletes a gap is looked for around the deleted key.
#[derive(Default)]
struct Deletes {
    /// Deletes since the last look.
    since: AtomicU32,
    /// Number of times that the deletes to be waited for were doubled, since nothing was found.
    doublings: AtomicU32,
}

#[derive(Default)]
struct Known {
    /// The gaps by their lowest keys; they neither overlap nor touch.
    gaps: BTreeMap<Box<[u8]>, Gap>,
    /// Keys of records that were told, by ascending numbers (TOMBSTONE_GAPS-3).
    recent: VecDeque<(Seq, Box<[u8]>)>,
    recent_bytes: usize,
    recent_from: Seq,
    /// Number of walks that may still find gaps with these recent keys.
    walks: usize,
    /// Records that were told since a gap was of use.
    unused: u32,
}

struct Gap {
    /// The lowest key above; `None` is above all.
    high: Option<Box<[u8]>>,
    /// The number from which on readers find nothing in it.
    since: Seq,
    /// Approximate number of keys that walks have passed in it.
    passed: u32,
}

/// The bound at which a walk goes on behind a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// The bound at which the walk goes on, as of [`Cursor::seek`](crate::cursor::Cursor::seek).
    Bound(Box<[u8]>),
    /// Nowhere: there are no more records in the direction.
    End,
}

impl TombstoneGaps {
    /// Returns `true` if writers report the keys that they write.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Counts deletes of keys. If it is time to look for a gap around the last of them, how many
    /// there were since the last time.
    #[inline]
    pub(crate) fn count_deletes(&self, deletes: u32) -> Option<u32> {
        let Deletes { since, doublings } = &self.deletes;
        let count = since.fetch_add(deletes, Ordering::Relaxed) + deletes;
        let is_due = count >= DELETES << doublings.load(Ordering::Relaxed);
        is_due.then(|| since.swap(0, Ordering::Relaxed).max(deletes))
    }

    /// Says that it was looked for a gap around a deleted key, and how many keys were passed.
    pub(crate) fn note_search(&self, passed: u32) {
        let doublings = &self.deletes.doublings;
        let more = if passed >= LEAST_PASSED {
            0
        } else {
            (doublings.load(Ordering::Relaxed) + 1).min(MOST_DOUBLINGS)
        };
        doublings.store(more, Ordering::Relaxed);
    }

    /// Makes writers report the keys that they write from now on. `published` is the number of the
    /// last write, if the caller has the lock of writers.
    pub(crate) fn activate(&self, published: Option<Seq>) {
        let mut known = self.known.lock();
        if !self.is_active() {
            known.forget();
            self.is_active.store(true, Ordering::Relaxed);
        }
        if let (UNKNOWN, Some(published)) = (known.recent_from, published) {
            known.recent_from = published;
        }
    }

    /// Says that a group is told from now on, of which this is the first number. All before is
    /// published. The caller has the lock of writers.
    pub(crate) fn begin_group(&self, first_seq: Seq) {
        let mut known = self.known.lock();
        if known.unused > MOST_UNUSED {
            self.is_active.store(false, Ordering::Relaxed);
            known.forget();
            return;
        }
        if known.walks == 0 || known.recent_from > first_seq - 1 {
            known.forget_recent(first_seq - 1);
        }
    }

    /// Says that a key gets a value or an operand. The caller has begun its group.
    pub(crate) fn note_record(&self, seq: Seq, key: &[u8]) {
        let mut known = self.known.lock();
        known.unused = known.unused.saturating_add(1);
        known.break_at(key);
        known.add_recent(seq, key);
    }

    /// Begins a walk that reads at this number, and may add the gaps that it finds. Returns `true`
    /// if it may.
    pub(crate) fn begin_walk(&self, seq: Seq) -> bool {
        let mut known = self.known.lock();
        let may_add = self.is_active() && known.recent_from <= seq;
        known.walks += usize::from(may_add);
        may_add
    }

    /// Ends a walk that might add gaps.
    pub(crate) fn end_walk(&self) {
        self.known.lock().walks -= 1;
    }

    /// Adds a gap that a walk at this number has found, in which it has passed so many keys. The
    /// walk has [begun](TombstoneGaps::begin_walk).
    pub(crate) fn add(&self, range: KeyRange<'_>, seq: Seq, passed: u32) {
        let low = range.low.unwrap_or_default();
        let is_long = |bound: &[u8]| bound.len() > LONGEST_BOUND;
        if range.is_empty() || is_long(low) || range.high.is_some_and(is_long) {
            return;
        }
        let mut known = self.known.lock();
        if self.is_active() && known.recent_from <= seq {
            known.unused = 0;
            known.add(range, seq, passed);
        }
    }

    /// Finds the gap in which a walk at this number would go on, and where it goes on behind it. On
    /// the way up, the walk would go on at `bound` or above; on the way down, below it.
    pub(crate) fn find_behind(
        &self,
        direction: Direction,
        bound: Option<&[u8]>,
        seq: Seq,
    ) -> Option<Behind> {
        let mut known = self.known.lock();
        let behind = match direction {
            Direction::Up => known.behind_up(bound.unwrap_or_default(), seq),
            Direction::Down => known.behind_down(bound, seq),
        };
        if behind.is_some() {
            known.unused = 0;
        }
        behind
    }
}

impl Known {
    fn forget(&mut self) {
        self.gaps.clear();
        self.unused = 0;
        self.forget_recent(UNKNOWN);
    }

    fn forget_recent(&mut self, recent_from: Seq) {
        self.recent.clear();
        self.recent.shrink_to(64);
        self.recent_bytes = 0;
        self.recent_from = recent_from;
    }

    fn add_recent(&mut self, seq: Seq, key: &[u8]) {
        self.recent_bytes += key.len() + RECENT_OVERHEAD;
        self.recent.push_back((seq, key.into()));
        while self.recent_bytes > RECENT_BYTES
            && let Some((seq, key)) = self.recent.pop_front()
        {
            self.recent_bytes -= key.len() + RECENT_OVERHEAD;
            self.recent_from = self.recent_from.max(seq);
        }
    }

    /// Returns the gap with the highest lower bound within this limit.
    fn last_from(&self, limit: Bound<&[u8]>) -> Option<(&[u8], &Gap)> {
        let gaps = (Bound::Unbounded, limit);
        let (low, gap) = self.gaps.range::<[u8], _>(gaps).next_back()?;
        Some((low, gap))
    }

    fn behind_up(&self, from: &[u8], seq: Seq) -> Option<Behind> {
        let (_, gap) = self.last_from(Bound::Included(from))?;
        let is_in = gap.high.as_deref().is_none_or(|high| from < high);
        (is_in && gap.since <= seq).then(|| match &gap.high {
            Some(high) => Behind::Bound(high.clone()),
            None => Behind::End,
        })
    }

    fn behind_down(&self, bound: Option<&[u8]>, seq: Seq) -> Option<Behind> {
        let limit = bound.map_or(Bound::Unbounded, Bound::Excluded);
        let (low, gap) = self.last_from(limit)?;
        let is_in = match (&gap.high, bound) {
            (None, _) => true,
            (Some(high), Some(bound)) => bound <= &**high,
            (Some(_), None) => false,
        };
        (is_in && gap.since <= seq).then(|| {
            if low.is_empty() {
                Behind::End
            } else {
                Behind::Bound(low.into())
            }
        })
    }

    /// Takes a key out of the gap in which it is, of which a piece on either side may be left. It
    /// is unknown where keys were passed, so each gets the half of them.
    fn break_at(&mut self, key: &[u8]) {
        let Some((low, gap)) = self.last_from(Bound::Included(key)) else {
            return;
        };
        if gap.high.as_deref().is_some_and(|high| high <= key) {
            return;
        }
        let low: Box<[u8]> = low.into();
        let Some(gap) = self.gaps.remove(&low) else {
            return;
        };
        if key.len() >= LONGEST_BOUND {
            return;
        }
        let above = successor(key).into_boxed_slice();
        let has_below = *low < *key;
        let has_above = gap.high.as_deref().is_none_or(|high| *above < *high);
        let passed = if has_below && has_above {
            gap.passed / 2
        } else {
            gap.passed
        };
        let mut put = |low, high| {
            let piece = Gap {
                high,
                since: gap.since,
                passed,
            };
            self.put(low, piece);
        };
        if has_below {
            put(low, Some(key.into()));
        }
        if has_above {
            put(above, gap.high);
        }
    }

    fn put(&mut self, low: Box<[u8]>, gap: Gap) {
        if self.gaps.len() >= MOST_GAPS {
            let below = self
                .gaps
                .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(&*low)));
            let above = self
                .gaps
                .range::<[u8], _>((Bound::Excluded(&*low), Bound::Unbounded));
            let near = below.rev().take(CANDIDATES).chain(above.take(CANDIDATES));
            let least = near.min_by_key(|(_, gap)| gap.passed);
            if let Some(least) = least.map(|(low, _)| low.clone()) {
                self.gaps.remove(&least);
            }
        }
        self.gaps.insert(low, gap);
    }

    /// Adds a gap, as one with those that it overlaps or touches, and breaks it where the walk has
    /// not seen a write.
    fn add(&mut self, range: KeyRange<'_>, seq: Seq, passed: u32) {
        let unseen = self.recent.partition_point(|(noted, _)| *noted <= seq);
        let unseen = self.recent.range(unseen..).map(|(_, key)| key);
        let unseen = unseen.filter(|key| range.has(key)).take(MOST_UNSEEN + 1);
        let unseen: Vec<_> = unseen.cloned().collect();
        if unseen.len() > MOST_UNSEEN {
            return;
        }
        let mut all = Gap {
            high: range.high.map(Into::into),
            since: seq,
            passed,
        };
        let mut all_low: Box<[u8]> = range.low.unwrap_or_default().into();
        loop {
            let limit = all.high.as_deref();
            let last = self.last_from(limit.map_or(Bound::Unbounded, Bound::Included));
            let meets = |gap: &Gap| gap.high.as_deref().is_none_or(|high| *all_low <= *high);
            let met = last.filter(|(_, gap)| meets(gap));
            let Some(met) = met.map(|(low, _)| Box::<[u8]>::from(low)) else {
                break;
            };
            let Some(gap) = self.gaps.remove(&met) else {
                break;
            };
            all.since = all.since.max(gap.since);
            all.passed = all.passed.saturating_add(gap.passed);
            all.high = all.high.zip(gap.high).map(|(one, other)| one.max(other));
            all_low = all_low.min(met);
        }
        self.put(all_low, all);
        for key in &unseen {
            self.break_at(key);
        }
    }
}
