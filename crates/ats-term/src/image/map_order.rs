//! The canonical order of the keys of a map (I3).

use crate::Zeros;
use crate::exact::{Options, exact_key};
use crate::walk::TermRef;
use std::ops::Range;

/// Sorts the pairs of maps; keeps its buffers.
pub(super) struct MapSorter<T> {
    pairs: Vec<(T, T)>,
    bytes: Vec<u8>,
    keys: Vec<(Range<usize>, (T, T))>,
}

impl<T> MapSorter<T> {
    pub(super) const fn new() -> Self {
        Self {
            pairs: Vec::new(),
            bytes: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// The bytes of the buffer for keys.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Forgets the terms, and gives back buffers with room for more than `keep` entries.
    pub(super) fn trim(&mut self, keep: usize) {
        self.pairs.clear();
        self.pairs.shrink_to(keep);
        self.bytes.clear();
        self.bytes.shrink_to(keep);
        self.keys.clear();
        self.keys.shrink_to(keep);
    }
}

impl<T: TermRef> MapSorter<T> {
    /// The pairs of a map in canonical order.
    ///
    /// O(n log n) comparisons. Exact keys are made only if two or more keys are no immediates, so
    /// maps with atoms and small integers for keys sort by single words.
    pub(super) fn sort(&mut self, map: T, zeros: Zeros) -> &[(T, T)] {
        self.pairs.clear();
        map.map_pairs(&mut self.pairs);
        self.pairs
            .sort_unstable_by_key(|(key, _)| match key.immediate() {
                Some(word) => (false, word),
                None => (true, 0),
            });
        let immediates = self
            .pairs
            .partition_point(|(key, _)| key.immediate().is_some());
        if self.pairs.len() - immediates > 1 {
            self.sort_by_exact_key(immediates, zeros);
        }
        &self.pairs
    }

    fn sort_by_exact_key(&mut self, start: usize, zeros: Zeros) {
        let options = Options {
            zeros,
            ..Options::default()
        };
        self.bytes.clear();
        self.keys.clear();
        for pair in self.pairs.drain(start..) {
            let begin = self.bytes.len();
            exact_key(pair.0, &mut self.bytes, options);
            self.keys.push((begin..self.bytes.len(), pair));
        }
        let bytes = &self.bytes;
        self.keys
            .sort_unstable_by(|(a, _), (b, _)| bytes[a.clone()].cmp(&bytes[b.clone()]));
        self.pairs.extend(self.keys.drain(..).map(|(_, pair)| pair));
    }
}
