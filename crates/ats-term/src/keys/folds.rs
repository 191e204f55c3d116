//! Map keys written out of order, and bytes that contain such keys.
//!
//! The keys of a map are sorted once they are written. If their bytes were moved then, those of a
//! key nested `n` maps deep would be moved `n` times. So the order of a map inside a key of another
//! map is only recorded, as a *fold*; its bytes are not moved. The keys of the outermost map are
//! moved once at the end, which resolves every fold in them.
//!
//! Sorting has to compare bytes that contain folds. A [`Cursor`] reads them in sorted order without
//! reading ahead, so a comparison takes time proportional to the *smaller* key at most. So a byte
//! is compared, for a map around it, only if its key is not the largest of that map, and a byte can
//! be in such keys of at most log n maps. This bounds the work for a term of size n by O(n log n)
//! for maps with a bounded number of keys, however deep they are nested.

use std::cmp::Ordering;

/// A range of the output that contains whole terms, and the folds in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The first fold that starts at or after `start`, and the first that starts at or after `end`.
    pub(super) folds: (usize, usize),
}

impl Part {
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    fn is_plain(&self) -> bool {
        self.folds.0 == self.folds.1
    }
}

/// The keys of a map inside a key of another map.
#[derive(Clone, Copy, Debug)]
struct Fold {
    start: usize,
    end: usize,
    /// The first fold that starts after the keys.
    next: usize,
    /// The keys in order, as a range of [`Folds::parts`]. Empty if they were written in order.
    parts: (usize, usize),
}

/// The folds of an output, by their start.
#[derive(Default)]
pub(super) struct Folds {
    folds: Vec<Fold>,
    parts: Vec<Part>,
    left: Cursor,
    right: Cursor,
}

impl Folds {
    /// Returns the number of folds.
    pub(super) fn len(&self) -> usize {
        self.folds.len()
    }

    /// Records the start of keys that may have to be folded, and returns the number of their fold.
    pub(super) fn begin(&mut self, start: usize) -> usize {
        self.folds.push(Fold {
            start,
            end: start,
            next: self.folds.len() + 1,
            parts: (0, 0),
        });
        self.folds.len() - 1
    }

    /// Records the order of the keys of a fold. The parts cover all bytes since
    /// [`begin`](Folds::begin).
    pub(super) fn fold(&mut self, number: usize, sorted: impl Iterator<Item = Part>, end: usize) {
        let first = self.parts.len();
        self.parts.extend(sorted);
        let parts = (first, self.parts.len());
        let next = self.folds.len();
        let fold = &mut self.folds[number];
        *fold = Fold {
            start: fold.start,
            end,
            next,
            parts,
        };
    }

    /// Discards all folds: no part of the output contains one.
    pub(super) fn clear(&mut self) {
        self.folds.clear();
        self.parts.clear();
    }

    /// Returns `true` if no keys are out of order.
    pub(super) fn is_plain(&self) -> bool {
        self.parts.is_empty()
    }

    /// Compares the bytes of two parts, and returns the work done. O(the shorter part).
    pub(super) fn compare(&mut self, bytes: &[u8], a: Part, b: Part) -> (Ordering, usize) {
        if a.is_plain() && b.is_plain() {
            let order = bytes[a.start..a.end].cmp(&bytes[b.start..b.end]);
            return (order, a.len().min(b.len()) / 8);
        }
        let (mut left, mut right) = (
            std::mem::take(&mut self.left),
            std::mem::take(&mut self.right),
        );
        left.start(a);
        right.start(b);
        let compared = self.compare_folded(bytes, &mut left, &mut right);
        (self.left, self.right) = (left, right);
        compared
    }

    fn compare_folded(
        &self,
        bytes: &[u8],
        left: &mut Cursor,
        right: &mut Cursor,
    ) -> (Ordering, usize) {
        let (mut a, mut b): (&[u8], &[u8]) = (&[], &[]);
        let mut work = 0;
        loop {
            if a.is_empty() {
                a = left.chunk(self).map_or(&[], |(from, to)| &bytes[from..to]);
                work += 1;
            }
            if b.is_empty() {
                b = right.chunk(self).map_or(&[], |(from, to)| &bytes[from..to]);
                work += 1;
            }
            if a.is_empty() || b.is_empty() {
                return (a.len().cmp(&b.len()), work);
            }
            let common = a.len().min(b.len());
            work += common;
            match a[..common].cmp(&b[..common]) {
                Ordering::Equal => (a, b) = (&a[common..], &b[common..]),
                order => return (order, work),
            }
        }
    }

    /// Appends the bytes of a part in sorted order. O(size of the part).
    pub(super) fn copy(&mut self, bytes: &[u8], part: Part, out: &mut Vec<u8>) {
        if part.is_plain() {
            return out.extend_from_slice(&bytes[part.start..part.end]);
        }
        let mut cursor = std::mem::take(&mut self.left);
        cursor.start(part);
        while let Some((from, to)) = cursor.chunk(self) {
            out.extend_from_slice(&bytes[from..to]);
        }
        self.left = cursor;
    }
}

/// A reader of the bytes of a part, in sorted order.
#[derive(Default)]
struct Cursor {
    /// Ranges still to be read; the next one is last.
    stack: Vec<Level>,
}

enum Level {
    /// Bytes, and the first fold that may be in them.
    Bytes { at: usize, end: usize, fold: usize },
    /// Keys, as a range of [`Folds::parts`].
    Parts { next: usize, end: usize },
}

impl Cursor {
    fn start(&mut self, part: Part) {
        self.stack.clear();
        self.push(part);
    }

    fn push(&mut self, part: Part) {
        self.stack.push(Level::Bytes {
            at: part.start,
            end: part.end,
            fold: part.folds.0,
        });
    }

    /// Returns the next bytes, at least one. They reach to the next map at most, so this takes O(1)
    /// plus the levels left or entered.
    fn chunk(&mut self, folds: &Folds) -> Option<(usize, usize)> {
        loop {
            match self.stack.last_mut()? {
                Level::Parts { next, end } => {
                    let part = folds.parts[*next];
                    *next += 1;
                    if next == end {
                        self.stack.pop();
                    }
                    self.push(part);
                }
                Level::Bytes { at, end, fold } => {
                    let (from, to) = (*at, *end);
                    if from == to {
                        self.stack.pop();
                        continue;
                    }
                    let Some(next) = folds.folds.get(*fold).filter(|next| next.start < to) else {
                        self.stack.pop();
                        return Some((from, to));
                    };
                    if from < next.start {
                        *at = next.start;
                        return Some((from, next.start));
                    }
                    let (first, last) = next.parts;
                    if first == last {
                        // A map written in order needs no fold; those inside have numbers of their
                        // own.
                        *fold += 1;
                        continue;
                    }
                    (*at, *fold) = (next.end, next.next);
                    if next.end == to {
                        self.stack.pop();
                    }
                    self.stack.push(Level::Parts {
                        next: first,
                        end: last,
                    });
                }
            }
        }
    }
}
