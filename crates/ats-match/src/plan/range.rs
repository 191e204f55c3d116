//! Sets of order keys as sorted ranges.
//!
//! # Invariants
//! - R1. The intervals of [`Ranges`] ascend, none is empty, and between two of them there is a gap.
//! - R2. An interval that is a point spans the keys that are `==` to the terms of a complete outline, which
//!   are one key: from its bytes to [`prefix_end`] of them.

use super::outline::{Front, Outline, Token};
use crate::spec::Spec;
use ats_term::image::Host;
use ats_term::order::{Class, prefix_end};
use std::cmp::Ordering;

/// A place between order keys.
#[derive(Clone, Debug)]
pub struct Cut {
    bytes: Vec<u8>,
    edge: Edge,
    outline: Outline,
}

/// On which side of the terms that an outline stands for a [`Cut`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Before the first of them.
    Before,
    /// After the last of them.
    After,
}

impl Cut {
    fn before(front: Front) -> Cut {
        Cut {
            bytes: front.bytes,
            edge: Edge::Before,
            outline: front.outline,
        }
    }

    fn after(front: Front) -> Cut {
        Cut {
            edge: Edge::After,
            ..Cut::before(front)
        }
    }

    /// The bytes: keys below them are before the cut, all others are after it. O(1).
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// On which side of the terms that [`outline`](Cut::outline) stands for. O(1).
    #[must_use]
    pub fn edge(&self) -> Edge {
        self.edge
    }

    /// What it is before or after, for people. O(1).
    #[must_use]
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    fn behind(&self, front: &Front) -> Cut {
        let mut whole = front.clone();
        whole.append(&self.bytes, &self.outline);
        Cut {
            edge: self.edge,
            ..Cut::before(whole)
        }
    }
}

/// Keys without a gap.
#[derive(Clone, Debug)]
pub struct Interval {
    from: Cut,
    /// `None`: to the end of all keys.
    to: Option<Cut>,
    point: bool,
}

impl Interval {
    /// All keys.
    pub(super) fn everything() -> Interval {
        Interval {
            from: Cut::before(Front::default()),
            to: None,
            point: false,
        }
    }

    /// The terms that begin as this.
    pub(super) fn prefix(front: &Front) -> Interval {
        Interval::everything().behind(front)
    }

    /// The one key that a complete front is.
    pub(super) fn point(front: &Front) -> Interval {
        Interval {
            point: true,
            ..Interval::prefix(front)
        }
    }

    /// The terms of a class.
    pub(super) fn class(class: Class) -> Interval {
        let (from, to) = class.bounds();
        Interval {
            from: Cut::before(Front::of_class(class, from)),
            to: to.map(|to| Cut::after(Front::of_class(class, to))),
            point: false,
        }
    }

    /// The terms before those that begin as this.
    pub(super) fn before(front: Front) -> Interval {
        Interval {
            to: Some(Cut::before(front)),
            ..Interval::everything()
        }
    }

    /// The terms after those that begin as this.
    pub(super) fn after(mut front: Front) -> Interval {
        front.bytes = prefix_end(&front.bytes);
        Interval {
            from: Cut::after(front),
            ..Interval::everything()
        }
    }

    /// The terms that begin as this, and those after them.
    pub(super) fn from_on(front: Front) -> Interval {
        Interval {
            from: Cut::before(front),
            ..Interval::everything()
        }
    }

    /// The terms that begin as this, and those before them.
    pub(super) fn up_to(mut front: Front) -> Interval {
        front.bytes = prefix_end(&front.bytes);
        Interval {
            to: Some(Cut::after(front)),
            ..Interval::everything()
        }
    }

    /// What lies between two fronts whose bytes are bounds by themselves.
    pub(super) fn between(from: Front, to: Front) -> Interval {
        Interval {
            from: Cut::before(from),
            to: Some(Cut::after(to)),
            point: false,
        }
    }

    /// The terms that begin as `front` and go on as the terms of this interval. A point stays none: what goes
    /// on behind it is not known.
    pub(super) fn behind(&self, front: &Front) -> Interval {
        let to = match &self.to {
            Some(to) => Some(to.behind(front)),
            None if front.bytes.is_empty() => None,
            None => Some(Cut {
                bytes: prefix_end(&front.bytes),
                edge: Edge::After,
                outline: front.outline.clone(),
            }),
        };
        Interval {
            from: self.from.behind(front),
            to,
            point: false,
        }
    }

    /// The lower bound, which is inclusive: its bytes are empty if there is none. O(1).
    #[must_use]
    pub fn from(&self) -> &Cut {
        &self.from
    }

    /// The upper bound, which is exclusive, if there is one. O(1).
    #[must_use]
    pub fn to(&self) -> Option<&Cut> {
        self.to.as_ref()
    }

    /// Whether it is a single order key, which is then that of [`from`](Interval::from). O(1).
    #[must_use]
    pub fn is_point(&self) -> bool {
        self.point
    }

    /// Whether an order key is in it. O(length).
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.from.bytes <= *key && self.to.as_ref().is_none_or(|to| *key < *to.bytes)
    }

    /// The interval as text: `Key =:= ...`, `Key == ...`, or a condition on `Key`. `spec` is the specification it was
    /// made from.
    #[must_use]
    pub fn show<H: Host>(&self, spec: &Spec<H>) -> String {
        let text = |cut: &Cut| cut.outline.show(spec);
        if self.point {
            let equality = if self.from.outline.looseness() == 0 {
                "=:="
            } else {
                "=="
            };
            return format!("Key {equality} {}", text(&self.from));
        }
        let lower = (!self.from.bytes.is_empty()).then(|| match self.from.edge {
            Edge::Before => format!("{} =< ", text(&self.from)),
            Edge::After => format!("{} < ", text(&self.from)),
        });
        let upper = self.to.as_ref().map(|to| match to.edge {
            Edge::Before => format!(" < {}", text(to)),
            Edge::After => format!(" =< {}", text(to)),
        });
        match (lower, upper) {
            _ if self.is_outline() => format!("Key = {}", text(&self.from)),
            (None, None) => "any Key".into(),
            (lower, upper) => {
                let (lower, upper) = (lower.unwrap_or_default(), upper.unwrap_or_default());
                format!("{lower}Key{upper}")
            }
        }
    }

    /// Whether it is just all terms of one outline.
    fn is_outline(&self) -> bool {
        let tokens = self.from.outline.tokens();
        match &self.to {
            Some(to) => {
                (self.from.edge, to.edge) == (Edge::Before, Edge::After)
                    && self.from.outline == to.outline
            }
            None => *tokens == [Token::Class(Class::Bitstring)],
        }
    }

    fn compare_ends(&self, other: &Interval) -> Ordering {
        match (&self.to, &other.to) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(a), Some(b)) => a.bytes.cmp(&b.bytes),
        }
    }

    fn is_same(&self, other: &Interval) -> bool {
        self.from.bytes == other.from.bytes && self.compare_ends(other).is_eq()
    }

    /// Whether there is no gap between this one and one that does not begin before it.
    fn touches(&self, later: &Interval) -> bool {
        self.to
            .as_ref()
            .is_none_or(|to| later.from.bytes <= to.bytes)
    }

    /// This one and all up to the end of one that does not begin before it.
    fn join(&mut self, later: Interval) {
        if self.is_same(&later) {
            // Two constants that are `==`, but may not be the same.
            if self.point && later.point && self.from.outline != later.from.outline {
                self.from.outline = std::mem::take(&mut self.from.outline).loosened();
            }
            self.point &= later.point;
        } else if self.compare_ends(&later).is_lt() {
            if self.from.bytes == later.from.bytes {
                *self = later;
            } else {
                self.to = later.to;
                self.point = false;
            }
        }
    }

    /// What is in both.
    fn meet(&self, other: &Interval) -> Option<Interval> {
        match (self.point, other.point) {
            (true, true) => {
                // Both hold, so the stricter one does.
                let stricter = self.from.outline.looseness() <= other.from.outline.looseness();
                let point = if stricter { self } else { other };
                return self.is_same(other).then(|| point.clone());
            }
            (true, false) => return other.contains(&self.from.bytes).then(|| self.clone()),
            (false, true) => return self.contains(&other.from.bytes).then(|| other.clone()),
            (false, false) => {}
        }
        let from = match self.from.bytes.cmp(&other.from.bytes) {
            Ordering::Less => other,
            _ => self,
        };
        let to = match self.compare_ends(other) {
            Ordering::Greater => other,
            _ => self,
        };
        let empty = (to.to.as_ref()).is_some_and(|to| to.bytes <= from.from.bytes);
        (!empty).then(|| Interval {
            from: from.from.clone(),
            to: to.to.clone(),
            point: false,
        })
    }
}

/// A set of order keys: ascending intervals with gaps between them.
#[derive(Clone, Debug)]
pub struct Ranges(Vec<Interval>);

impl Ranges {
    pub(super) fn one(interval: Interval) -> Ranges {
        Ranges(vec![interval])
    }

    /// The terms of these classes.
    pub(super) fn classes(classes: &[Class]) -> Ranges {
        Ranges::union_of(
            classes
                .iter()
                .map(|&class| Interval::class(class))
                .collect(),
        )
    }

    /// What is in one of these intervals, which are in any order. O(n log n).
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

    /// What is in either. O(sum of the sizes), or for a single interval O(log n) and moving those behind it.
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
        touched
            .into_iter()
            .for_each(|next| self.0[joined].join(next));
    }

    /// What is in both. O(sum of the sizes).
    pub(super) fn intersection(&self, other: &Ranges) -> Ranges {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut found = Vec::new();
        while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
            found.extend(left.meet(right));
            // The one that ends first cannot meet another.
            if left.compare_ends(right).is_le() {
                a.next();
            } else {
                b.next();
            }
        }
        Ranges(found)
    }

    /// What is not in it. O(n).
    pub(super) fn complement(&self) -> Ranges {
        let mut found = Vec::new();
        let mut from = Some(Interval::everything().from);
        for interval in &self.0 {
            if let Some(from) = from.filter(|from| from.bytes < interval.from.bytes) {
                found.push(Interval {
                    from,
                    to: Some(interval.from.clone()),
                    point: false,
                });
            }
            from = interval.to.clone();
        }
        found.extend(from.map(|from| Interval {
            from,
            to: None,
            point: false,
        }));
        Ranges(found)
    }

    /// The terms that begin as `front` and go on as these.
    pub(super) fn behind(&self, front: &Front) -> Ranges {
        let intervals = self.0.iter().map(|interval| interval.behind(front));
        Ranges::union_of(intervals.collect())
    }

    /// The same or more, with at most so many intervals, at least one.
    pub(super) fn coarsened(mut self, most: usize) -> Ranges {
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

    /// Whether the keys are the same; the outlines may differ.
    pub(super) fn is_same(&self, other: &Ranges) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a.is_same(b))
    }

    /// The intervals in ascending order. O(1) for each.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Interval> + ExactSizeIterator {
        self.0.iter()
    }

    /// How many intervals. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no key is in it. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every key is in it. O(1).
    #[must_use]
    pub fn is_everything(&self) -> bool {
        matches!(&*self.0, [all] if all.from.bytes.is_empty() && all.to.is_none())
    }

    /// Whether an order key is in it. O(log n).
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        let after = self
            .0
            .partition_point(|interval| *interval.from.bytes <= *key);
        after > 0 && self.0[after - 1].contains(key)
    }
}
