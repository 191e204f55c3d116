//! Sets of order keys as sorted ranges.
//!
//! # Invariant
//! - RANGE-1. The intervals of [`Ranges`] ascend, none is empty, and between two of them there is a
//!   gap.

use super::interval::Interval;
use super::outline::Front;
use ats_term::order::Class;

/// A set of order keys: ascending intervals with gaps between them.
#[derive(Clone, Debug)]
pub struct Ranges(Vec<Interval>);

impl Ranges {
    pub(super) fn one(interval: Interval) -> Ranges {
        Ranges(vec![interval])
    }

    /// Returns the ranges of the terms of these classes.
    pub(super) fn classes(classes: &[Class]) -> Ranges {
        Ranges::union_of(
            classes
                .iter()
                .map(|&class| Interval::class(class))
                .collect(),
        )
    }

    /// Unites intervals, which are in any order. O(n log n).
    pub(super) fn union_of(mut intervals: Vec<Interval>) -> Ranges {
        intervals.sort_by(|a, b| a.from.bytes.cmp(&b.from.bytes));
        let mut ranges: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match ranges.last_mut() {
                Some(last) if last.touches(&interval) => last.join(interval),
                _ => ranges.push(interval),
            }
        }
        Ranges(ranges)
    }

    /// Unites both sets. O(sum of the sizes), or for a single interval O(log n) plus the shift of
    /// those behind it.
    pub(super) fn union(mut self, mut other: Ranges) -> Ranges {
        if other.0.len() == 1 {
            other
                .0
                .into_iter()
                .for_each(|interval| self.insert(interval));
            return self;
        }
        self.0.append(&mut other.0);
        Ranges::union_of(self.0)
    }

    fn insert(&mut self, interval: Interval) {
        let at = (self.0).partition_point(|other| other.from.bytes <= interval.from.bytes);
        let joined = match at.checked_sub(1) {
            Some(before) if self.0[before].touches(&interval) => {
                self.0[before].join(interval);
                before
            }
            _ => {
                self.0.insert(at, interval);
                at
            }
        };
        let behind = &self.0[joined + 1..];
        let touched = behind
            .iter()
            .take_while(|next| self.0[joined].touches(next))
            .count();
        let touched: Vec<Interval> = self.0.drain(joined + 1..=joined + touched).collect();
        for next in touched {
            self.0[joined].join(next);
        }
    }

    /// Intersects both sets. O(sum of the sizes).
    pub(super) fn intersection(&self, other: &Ranges) -> Ranges {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut found = Vec::new();
        while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
            found.extend(left.meet(right));
            // The interval that ends first cannot meet another one.
            if left.compare_ends(right).is_le() {
                a.next();
            } else {
                b.next();
            }
        }
        Ranges(found)
    }

    /// Returns the complement. O(n).
    pub(super) fn complement(&self) -> Ranges {
        let mut found = Vec::new();
        let mut from = Some(Interval::everything().from);
        for interval in &self.0 {
            if let Some(from) = from.take().filter(|from| from.bytes < interval.from.bytes) {
                found.push(Interval {
                    from,
                    to: Some(interval.from.clone()),
                    point: false,
                });
            }
            from.clone_from(&interval.to);
        }
        found.extend(from.map(|from| Interval {
            from,
            to: None,
            point: false,
        }));
        Ranges(found)
    }

    /// Returns the ranges of the terms that begin with `front` and continue as these.
    pub(super) fn behind(&self, front: &Front) -> Ranges {
        let intervals = self.0.iter().map(|interval| interval.behind(front));
        Ranges::union_of(intervals.collect())
    }

    /// Returns a superset with at most `most` intervals, at least one.
    pub(super) fn coarsen(mut self, most: usize) -> Ranges {
        while self.0.len() > most.max(1) {
            let mut pairs = self.0.into_iter();
            let mut merged = Vec::with_capacity(pairs.len() / 2 + 1);
            while let Some(mut first) = pairs.next() {
                pairs
                    .next()
                    .into_iter()
                    .for_each(|second| first.join(second));
                merged.push(first);
            }
            self.0 = merged;
        }
        self
    }

    pub(super) fn into_intervals(self) -> Vec<Interval> {
        self.0
    }

    /// Returns `true` if both sets have the same keys; the outlines may differ.
    pub(super) fn is_same(&self, other: &Ranges) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a.is_same(b))
    }

    /// Returns the intervals in ascending order. O(1) for each.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Interval> + ExactSizeIterator {
        self.0.iter()
    }

    /// Returns the number of intervals. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if the set is empty. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if the set has every key. O(1).
    #[must_use]
    pub fn is_everything(&self) -> bool {
        matches!(&*self.0, [all] if all.from.bytes.is_empty() && all.to.is_none())
    }

    /// Returns `true` if an order key is in the set. O(log n).
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        let after = self
            .0
            .partition_point(|interval| *interval.from.bytes <= *key);
        after > 0 && self.0[after - 1].contains(key)
    }
}
