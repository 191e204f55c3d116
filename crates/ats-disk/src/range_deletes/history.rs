//! Ranges that were deleted one after the other, for readers as of any time.
//!
//! A reader asks for the newest range with a key, among those up to a sequence number. Ranges
//! overlap, so no order of their bounds alone answers that. Here a binary tree stands over time, a
//! forest of perfect trees that grows like a binary counter (J. Bentley and J. Saxe, *Decomposable
//! searching problems*, 1980):
//!
//! ```text
//!            [1..8]                    a node: the ranges of an interval of time, as a step function:
//!       [1..4]     [5..8]              which of them is the newest at each key
//!    [1..2] [3..4] [5..6] [7..8]
//!     1  2   3  4   5  6   7  8   9    a leaf: one range
//! ```
//!
//! The ranges up to a number are those of O(log n) nodes, mostly of the roots, since readers mostly
//! ask for all. Of each the step function is searched, from the newest to the oldest. A node is
//! made of its two halves by one walk over both. So n ranges cost O(n log n) in time and in memory,
//! besides the comparisons of keys, and a lookup O(log² n); without ranges it is one load.
//!
//! The forest is immutable. A new one replaces it as a whole, so readers never wait.

use super::set::RangeSet;
use crate::ids::Seq;
use arc_swap::ArcSwap;
use ats_store::KeyRange;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

type Key = Arc<[u8]>;

/// Ranges of deleted keys, each with a sequence number.
///
/// Readers are lock-free. Only one thread at a time inserts.
#[derive(Default)]
pub(crate) struct RangeDeletes {
    /// The number of ranges. Stored after the forest that has them.
    len: AtomicUsize,
    bytes: AtomicUsize,
    forest: ArcSwap<Forest>,
}

#[derive(Default)]
struct Forest {
    /// Perfect trees, the oldest and largest first.
    trees: Vec<Arc<Tree>>,
    /// The keys of all ranges, once a reader has asked for them.
    all: OnceLock<Arc<RangeSet>>,
}

struct Tree {
    /// The sequence number of the oldest range.
    first: Seq,
    /// The sequence number of the newest range.
    last: Seq,
    /// The number of ranges: a power of two.
    len: usize,
    /// Ascending by their keys, without equal neighbours.
    steps: Vec<Step>,
    /// The older half and the newer one; of one range there are none.
    halves: Option<[Arc<Tree>; 2]>,
}

/// Step of the newest ranges: from its key on, up to the next step, `newest` is the newest range.
struct Step {
    from: Key,
    /// The sequence number of the range; 0 if there is none.
    newest: Seq,
}

impl RangeDeletes {
    /// Returns `true` if there are none. One load.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of ranges, counting each that was inserted.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Returns the bytes of memory. O(1).
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Inserts a range, which has a greater sequence number than all before. A range without keys
    /// is left out. Amortised O(log n).
    pub(crate) fn insert(&self, range: KeyRange<'_>, seq: Seq) {
        if range.is_empty() {
            return;
        }
        let mut trees = self.forest.load().trees.clone();
        debug_assert!(trees.last().is_none_or(|newest| newest.last < seq));
        let leaf = Tree::leaf(range, seq);
        let mut bytes = leaf.bytes();
        let mut newest = Arc::new(leaf);
        while let Some(older) = trees.pop_if(|older| older.len == newest.len) {
            let tree = Tree::join(older, newest);
            bytes += tree.bytes();
            newest = Arc::new(tree);
        }
        trees.push(newest);
        self.forest.store(Arc::new(Forest {
            trees,
            all: OnceLock::new(),
        }));
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.len.fetch_add(1, Ordering::Release);
    }

    /// Returns the sequence number of the newest range with this key, of those up to `seq`. O(log²
    /// n).
    #[inline]
    pub(crate) fn newest_covering(&self, key: &[u8], seq: Seq) -> Option<Seq> {
        if self.is_empty() {
            return None;
        }
        self.search(key, seq)
    }

    fn search(&self, key: &[u8], seq: Seq) -> Option<Seq> {
        let forest = self.forest.load();
        let trees = forest.trees.iter().rev();
        trees
            .map(|tree| tree.newest_covering(key, seq))
            .find_map(|newest| newest)
    }

    /// Returns the keys that are in a range up to `seq`. O(n log n); for all ranges, only the first
    /// time after an insertion.
    pub(crate) fn set(&self, seq: Seq) -> Arc<RangeSet> {
        self.forest.load().set(seq)
    }

    /// Returns the keys that are in a range above `after` and up to `seq`. O(n log n).
    pub(crate) fn set_between(&self, after: Seq, seq: Seq) -> RangeSet {
        let forest = self.forest.load_full();
        let mut trees: Vec<_> = forest.trees.iter().map(|tree| &**tree).collect();
        let mut ranges = Vec::new();
        while let Some(tree) = trees.pop() {
            if tree.first > after && tree.last <= seq {
                ranges.extend(tree.ranges());
            } else if let Some(halves) = &tree.halves
                && tree.last > after
                && tree.first <= seq
            {
                trees.extend(halves.iter().map(|half| &**half));
            }
        }
        ranges.into_iter().collect()
    }

    /// Returns the ranges up to `seq`, to be searched as they are; `None` if there are none. O(1).
    pub(crate) fn as_of(&self, seq: Seq) -> Option<AsOf> {
        if self.is_empty() {
            return None;
        }
        let forest = self.forest.load_full();
        let oldest = forest.trees.first()?;
        (oldest.first <= seq).then_some(AsOf { forest, seq })
    }
}

/// The ranges up to a sequence number.
pub(crate) struct AsOf {
    forest: Arc<Forest>,
    seq: Seq,
}

impl AsOf {
    /// Approximate number of ranges.
    pub(super) fn len(&self) -> usize {
        self.forest.trees.iter().map(|tree| tree.len).sum()
    }

    /// Returns the set of the keys that are in a range, if it was made before.
    pub(super) fn existing_set(&self) -> Option<&Arc<RangeSet>> {
        let all = self.forest.all.get();
        all.filter(|_| self.forest.is_within(self.seq))
    }

    /// Returns the keys that are in a range.
    pub(super) fn set(&self) -> Arc<RangeSet> {
        self.forest.set(self.seq)
    }

    /// Returns a range of keys, with this one, that are all in a range. O(log² n).
    pub(super) fn find_covering(&self, key: &[u8]) -> Option<KeyRange<'_>> {
        let trees = self.forest.trees.iter().rev();
        trees
            .map(|tree| tree.find_covering(key, self.seq))
            .find_map(|found| found)
            .map(|(_, range)| range)
    }
}

impl Forest {
    /// Returns `true` if all ranges are of numbers up to this one.
    fn is_within(&self, seq: Seq) -> bool {
        self.trees.last().is_none_or(|newest| newest.last <= seq)
    }

    fn set(&self, seq: Seq) -> Arc<RangeSet> {
        if self.is_within(seq) {
            let all = self.all.get_or_init(|| Arc::new(self.make_set(seq)));
            return Arc::clone(all);
        }
        Arc::new(self.make_set(seq))
    }

    fn make_set(&self, seq: Seq) -> RangeSet {
        let mut trees: Vec<&Tree> = self.trees.iter().map(|tree| &**tree).collect();
        let mut ranges = Vec::new();
        while let Some(tree) = trees.pop() {
            if tree.last <= seq {
                ranges.extend(tree.ranges());
            } else if let Some(halves) = &tree.halves {
                trees.extend(halves.iter().map(|half| &**half));
            }
        }
        ranges.into_iter().collect()
    }
}

impl Tree {
    /// Makes a tree of one range, which is not empty.
    fn leaf(range: KeyRange<'_>, seq: Seq) -> Self {
        let low = Step {
            from: range.low.unwrap_or_default().into(),
            newest: seq,
        };
        let high = range.high.map(|high| Step {
            from: high.into(),
            newest: Seq::ZERO,
        });
        Tree {
            first: seq,
            last: seq,
            len: 1,
            steps: [low].into_iter().chain(high).collect(),
            halves: None,
        }
    }

    /// Makes a tree of two that are as large as each other.
    fn join(older: Arc<Tree>, newer: Arc<Tree>) -> Self {
        Tree {
            first: older.first,
            last: newer.last,
            len: older.len + newer.len,
            steps: overlay(&older.steps, &newer.steps),
            halves: Some([older, newer]),
        }
    }

    /// Returns the newest range with a key, of those up to `seq`.
    fn newest_covering(&self, key: &[u8], seq: Seq) -> Option<Seq> {
        self.find_covering(key, seq).map(|(newest, _)| newest)
    }

    /// Returns the newest range with a key, of those up to `seq`, and the keys around of which that
    /// is so, or some of them.
    fn find_covering(&self, key: &[u8], seq: Seq) -> Option<(Seq, KeyRange<'_>)> {
        if self.first > seq {
            return None;
        }
        let above = self.steps.partition_point(|step| &*step.from <= key);
        let step = self.steps[..above].last()?;
        if step.newest == Seq::ZERO || step.newest <= seq {
            let range = KeyRange {
                low: Some(&step.from),
                high: self.steps.get(above).map(|next| &*next.from),
            };
            return (step.newest != Seq::ZERO).then_some((step.newest, range));
        }
        let [older, newer] = self.halves.as_ref()?;
        let newer = newer.find_covering(key, seq);
        newer.or_else(|| older.find_covering(key, seq))
    }

    /// Returns the keys that are in any range.
    fn ranges(&self) -> impl Iterator<Item = KeyRange<'_>> {
        let next = self.steps[1..].iter().map(Some).chain([None]);
        let covered = self
            .steps
            .iter()
            .zip(next)
            .filter(|(step, _)| step.newest != Seq::ZERO);
        covered.map(|(step, next)| KeyRange {
            low: Some(&step.from),
            high: next.map(|next| &*next.from),
        })
    }

    /// Returns the bytes of memory, without the halves. The bytes of keys are those of the leaves.
    fn bytes(&self) -> usize {
        let keys = match self.halves {
            None => self.steps.iter().map(|step| step.from.len()).sum(),
            Some(_) => 0,
        };
        size_of::<Self>() + self.steps.capacity() * size_of::<Step>() + keys
    }
}

/// Returns the step function of both: the newer one where it has a range.
fn overlay(older: &[Step], newer: &[Step]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::with_capacity(older.len() + newer.len());
    let (mut old, mut new) = (older.iter().peekable(), newer.iter().peekable());
    let (mut of_old, mut of_new) = (Seq::ZERO, Seq::ZERO);
    loop {
        let from = match (old.peek(), new.peek()) {
            (Some(old), Some(new)) => (&old.from).min(&new.from),
            (Some(step), None) | (None, Some(step)) => &step.from,
            (None, None) => break,
        };
        if let Some(step) = old.next_if(|step| step.from == *from) {
            of_old = step.newest;
        }
        if let Some(step) = new.next_if(|step| step.from == *from) {
            of_new = step.newest;
        }
        let newest = if of_new == Seq::ZERO { of_old } else { of_new };
        if steps.last().map_or(Seq::ZERO, |last| last.newest) != newest {
            let from = Arc::clone(from);
            steps.push(Step { from, newest });
        }
    }
    steps.shrink_to_fit();
    steps
}
