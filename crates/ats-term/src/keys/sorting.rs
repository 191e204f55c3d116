//! The maps that are being written, and the sorting of their keys.

use super::folds::{Folds, Part};

/// Cost of a comparison besides its bytes.
pub(super) const COMPARISON: usize = 4;

/// A map that is being written.
pub(super) struct Map<M> {
    /// Start of its pairs; those of inner maps come after them.
    pub(super) first: usize,
    /// The end of its pairs, and the next pair whose key or value is to be written.
    pub(super) end: usize,
    pub(super) next: usize,
    /// The number of its fold, if the map is inside a key.
    pub(super) fold: Option<usize>,
    /// The mark of the map, unless a fun has captured it.
    pub(super) begun: Option<M>,
}

/// Memory for writing maps.
pub(super) struct Sorting<T, M> {
    pub(super) maps: Vec<Map<M>>,
    /// Pairs of the unfinished maps, and for each pair the marks before key and value.
    pub(super) pairs: Vec<(T, T)>,
    pub(super) marks: Vec<(M, M)>,
    /// Start of each begun key in the output, and the number of folds before it, for the maps whose
    /// keys are being written.
    pub(super) starts: Vec<(usize, usize)>,
    /// Folds, which occur only in keys of unfinished maps.
    pub(super) folds: Folds,
    /// Buffer for the keys that are being sorted.
    keys: Vec<(Part, usize)>,
}

impl<T, M> Default for Sorting<T, M> {
    fn default() -> Self {
        Sorting {
            maps: Vec::new(),
            pairs: Vec::new(),
            marks: Vec::new(),
            starts: Vec::new(),
            folds: Folds::default(),
            keys: Vec::new(),
        }
    }
}

impl<T: Copy, M: Copy> Sorting<T, M> {
    /// Sorts the keys of the innermost map, which are the end of the output, and its pairs alike.
    /// Adds its work to `work`. Stops halfway and returns `false` if that exceeds `limit`.
    pub(super) fn sort_keys(&mut self, out: &mut Vec<u8>, work: &mut usize, limit: usize) -> bool {
        let Some(&Map {
            first, end, fold, ..
        }) = self.maps.last()
        else {
            return true;
        };
        let starts = &self.starts[self.starts.len() - (end - first)..];
        let start = starts.first().map_or(0, |start| start.0);
        let out_end = out.len();
        let last_end = (out_end, self.folds.len());
        let ends = starts.iter().skip(1).chain([&last_end]);
        let parts = starts.iter().zip(ends).map(|(start, end)| Part {
            start: start.0,
            end: end.0,
            folds: (start.1, end.1),
        });
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        keys.extend(parts.zip(first..));
        self.starts.truncate(self.starts.len() - (end - first));
        let folds = &mut self.folds;
        let mut compare = |a: &(Part, usize), b: &(Part, usize)| {
            let (order, steps) = folds.compare(out, a.0, b.0);
            *work = work.saturating_add(COMPARISON + steps);
            order
        };
        let is_sorted = keys.is_sorted_by(|a, b| compare(a, b).is_le());
        if !is_sorted {
            let comparisons = keys.len() * keys.len().ilog2() as usize;
            if out_end.saturating_add(COMPARISON * comparisons) > limit {
                return false;
            }
            // A merge sort compares a key that is much larger than the others with few of them.
            keys.sort_by(compare);
            self.put_pairs_in_order(first, &keys);
        }
        let parts = keys.iter().map(|(part, _)| *part);
        match fold {
            Some(number) if !is_sorted => self.folds.fold(number, parts, out_end),
            Some(_) => {}
            None => {
                if !is_sorted || !self.folds.is_plain() {
                    let mut sorted = Vec::with_capacity(out_end - start);
                    parts.for_each(|part| self.folds.copy(out, part, &mut sorted));
                    *work = work.saturating_add(sorted.len());
                    out.truncate(start);
                    out.append(&mut sorted);
                }
                self.folds.clear();
            }
        }
        self.keys = keys;
        true
    }

    /// Reorders the pairs from `first` on by their sorted keys, each given with its number.
    fn put_pairs_in_order(&mut self, first: usize, keys: &[(Part, usize)]) {
        let end = self.pairs.len();
        for &(_, i) in keys {
            self.pairs.push(self.pairs[i]);
            self.marks.push(self.marks[i]);
        }
        self.pairs.copy_within(end.., first);
        self.marks.copy_within(end.., first);
        self.pairs.truncate(end);
        self.marks.truncate(end);
    }
}
