//! The canonical order of the keys of a map (IMAGE-3).
//!
//! If two or more keys of a map are no immediates, these are sorted by their exact keys. The keys
//! can contain maps, whose keys must be sorted, too, when they are written to the image. The walk
//! that makes the exact keys sorts them all at once; so it records their order, and each term is
//! walked once for this, however many maps are around it.

use crate::Zeros;
use crate::exact::{Options, exact_key_with_recorder};
use crate::keys::MapRecorder;
use crate::term_ref::TermRef;
use std::ops::Range;

/// A sorter of the pairs of maps, which keeps its buffers.
pub(super) struct MapSorter<T> {
    pairs: Vec<(T, T)>,
    bytes: Vec<u8>,
    keys: Vec<(Range<usize>, (T, T), usize)>,
    /// Maps in the keys of the map that was sorted last.
    pub(super) recorded: Recorded<T>,
    /// The mark before each of its keys that are no immediates.
    marks: Vec<usize>,
    /// Work since the last `trim`, in words of an image that could have been written instead.
    pub(super) work: usize,
}

/// Number of sorting steps that cost as much as a word of an image.
const STEPS_PER_WORD: usize = 8;

impl<T> MapSorter<T> {
    pub(super) const fn new() -> Self {
        Self {
            pairs: Vec::new(),
            bytes: Vec::new(),
            keys: Vec::new(),
            recorded: Recorded::new(),
            marks: Vec::new(),
            work: 0,
        }
    }

    /// Returns the capacity of the buffer for keys in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Drops the terms, and frees buffers with a capacity above `keep` entries.
    pub(super) fn trim(&mut self, keep: usize) {
        self.pairs.clear();
        self.pairs.shrink_to(keep);
        self.bytes.clear();
        self.bytes.shrink_to(keep);
        self.keys.clear();
        self.keys.shrink_to(keep);
        self.marks.clear();
        self.marks.shrink_to(keep);
        self.recorded.trim(keep);
        self.work = 0;
    }

    /// Returns the pairs that were sorted last.
    pub(super) fn pairs(&self) -> &[(T, T)] {
        &self.pairs
    }

    /// Returns `true` if any of the keys sorted by their bytes contain maps.
    pub(super) fn has_maps_in_keys(&self) -> bool {
        !self.recorded.maps.is_empty()
    }

    /// Returns the mark before key `i` of those that were sorted last; arbitrary for immediates,
    /// which contain no map.
    pub(super) fn key_mark(&self, i: usize) -> usize {
        let immediates = self.pairs.len() - self.marks.len();
        i.checked_sub(immediates).map_or(0, |i| self.marks[i])
    }
}

impl<T: TermRef> MapSorter<T> {
    /// Sorts the pairs of a map into canonical order. Returns `None` if that takes more work than
    /// writing about `most` words.
    ///
    /// O(n log n) comparisons. Exact keys are made only if two or more keys are no immediates, so
    /// maps with only atoms and small integers as keys are sorted by single words.
    pub(super) fn sort(&mut self, map: T, zeros: Zeros, most: usize) -> Option<()> {
        self.pairs.clear();
        self.recorded.clear();
        self.marks.clear();
        map.map_pairs(&mut self.pairs);
        let immediates = sort_immediates(&mut self.pairs);
        if self.pairs.len() - immediates > 1 {
            self.sort_by_exact_key(immediates, zeros, most)?;
        }
        Some(())
    }

    fn sort_by_exact_key(&mut self, start: usize, zeros: Zeros, most: usize) -> Option<()> {
        let options = Options {
            zeros,
            ..Options::default()
        };
        self.bytes.clear();
        self.keys.clear();
        let most = most.saturating_mul(STEPS_PER_WORD);
        let mut steps = 0usize;
        for pair in self.pairs.drain(start..) {
            let begin = self.bytes.len();
            let mark = self.recorded.mark();
            let (bytes, left) = (&mut self.bytes, most.saturating_sub(steps));
            let taken = exact_key_with_recorder(pair.0, bytes, options, left, &mut self.recorded)?;
            steps = steps.saturating_add(taken);
            self.keys.push((begin..self.bytes.len(), pair, mark));
        }
        let bytes = &self.bytes;
        let mut compared = 0usize;
        // A stable sort is a merge sort, which compares a huge key with few others.
        self.keys.sort_by(|(a, ..), (b, ..)| {
            compared += 4 + a.len().min(b.len()) / 8;
            bytes[a.clone()].cmp(&bytes[b.clone()])
        });
        self.work += steps.saturating_add(compared) / STEPS_PER_WORD;
        for (_, pair, mark) in self.keys.drain(..) {
            self.pairs.push(pair);
            self.marks.push(mark);
        }
        Some(())
    }
}

/// Moves the pairs whose keys are immediates to the front, sorted by their words, and returns their
/// number. The others keep their order.
fn sort_immediates<T: TermRef>(pairs: &mut [(T, T)]) -> usize {
    let rank = |key: T| match key.immediate() {
        Some(word) => (false, word),
        None => (true, 0),
    };
    pairs.sort_unstable_by_key(|(key, _)| rank(*key));
    pairs.partition_point(|(key, _)| key.immediate().is_some())
}

/// A pair of a map, with the marks before key and value.
#[derive(Clone, Copy)]
pub(super) struct Marked<T> {
    pub(super) key: T,
    pub(super) value: T,
    pub(super) marks: (usize, usize),
}

/// The maps of a term, with their pairs in canonical order. A mark is the number of the next map in
/// the order of the walk that makes exact keys.
pub(super) struct Recorded<T> {
    maps: Vec<RecordedMap>,
    pairs: Vec<Marked<T>>,
}

#[derive(Clone, Copy, Default)]
struct RecordedMap {
    /// Position of the first pair in `pairs`.
    start: usize,
    len: usize,
    /// The mark after the map.
    end: usize,
}

impl<T> Recorded<T> {
    const fn new() -> Self {
        Self {
            maps: Vec::new(),
            pairs: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.maps.clear();
        self.pairs.clear();
    }

    fn trim(&mut self, keep: usize) {
        self.clear();
        self.maps.shrink_to(keep);
        self.pairs.shrink_to(keep);
    }

    /// Returns the numbers of the pairs of a recorded map, and the mark after it.
    pub(super) fn map(&self, mark: usize) -> (Range<usize>, usize) {
        let map = self.maps[mark];
        (map.start..map.start + map.len, map.end)
    }

    /// Returns the pair with this number.
    pub(super) fn pair(&self, number: usize) -> Marked<T>
    where
        T: Copy,
    {
        self.pairs[number]
    }
}

impl<T: TermRef> MapRecorder<T> for Recorded<T> {
    type Mark = usize;

    fn mark(&self) -> usize {
        self.maps.len()
    }

    fn begin(&mut self, _: T) {
        self.maps.push(RecordedMap::default());
    }

    fn end(&mut self, begun: usize, pairs: &[(T, T)], marks: &[(usize, usize)]) {
        let start = self.pairs.len();
        let marked = |(&(key, value), &marks)| Marked { key, value, marks };
        self.pairs.extend(pairs.iter().zip(marks).map(marked));
        // Pairs whose keys are no immediates are sorted already; a stable sort keeps their order.
        self.pairs[start..].sort_by_key(|pair| match pair.key.immediate() {
            Some(word) => (false, word),
            None => (true, 0),
        });
        self.maps[begun] = RecordedMap {
            start,
            len: pairs.len(),
            end: self.maps.len(),
        };
    }
}
