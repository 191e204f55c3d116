//! Intervals of order keys.
//!
//! # Invariant
//! - INTERVAL-1. An interval that is a point spans the keys that are `==` to the terms of a
//!   complete outline, which are one key: from its bytes to [`prefix_end`] of them.

use super::outline::{Front, Outline, Token};
use crate::spec::Spec;
use ats_term::image::Host;
use ats_term::order::{Class, prefix_end};
use std::cmp::Ordering;

/// A bound between order keys.
#[derive(Clone, Debug)]
pub struct Boundary {
    pub(super) bytes: Vec<u8>,
    edge: Edge,
    outline: Outline,
}

/// The side of the terms of an outline on which a [`Boundary`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Before the first of these terms.
    Before,
    /// After the last of these terms.
    After,
}

impl Boundary {
    fn before(front: Front) -> Boundary {
        Boundary {
            bytes: front.bytes,
            edge: Edge::Before,
            outline: front.outline,
        }
    }

    fn after(front: Front) -> Boundary {
        Boundary {
            edge: Edge::After,
            ..Boundary::before(front)
        }
    }

    /// Returns the bytes of the bound: smaller keys are before it, all others after it. O(1).
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the side of the terms of [`outline`](Boundary::outline) on which the bound is. O(1).
    #[must_use]
    pub fn edge(&self) -> Edge {
        self.edge
    }

    /// Returns the term that the bound precedes or follows, for display. O(1).
    #[must_use]
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    fn behind(&self, front: &Front) -> Boundary {
        let mut whole = front.clone();
        whole.append(&self.bytes, &self.outline);
        Boundary {
            edge: self.edge,
            ..Boundary::before(whole)
        }
    }
}

/// A contiguous set of order keys.
#[derive(Clone, Debug)]
pub struct Interval {
    pub(super) from: Boundary,
    /// Upper bound; `None` is the end of all keys.
    pub(super) to: Option<Boundary>,
    pub(super) point: bool,
}

impl Interval {
    /// Returns the interval of all keys.
    pub(super) fn everything() -> Interval {
        Interval {
            from: Boundary::before(Front::default()),
            to: None,
            point: false,
        }
    }

    /// Returns the interval of the terms that begin like `front`.
    pub(super) fn prefix(front: &Front) -> Interval {
        Interval::everything().behind(front)
    }

    /// Returns the interval of the one key of a complete front.
    pub(super) fn point(front: &Front) -> Interval {
        Interval {
            point: true,
            ..Interval::prefix(front)
        }
    }

    /// Returns the interval of the terms of a class.
    pub(super) fn class(class: Class) -> Interval {
        let (from, to) = class.bounds();
        Interval {
            from: Boundary::before(Front::of_class(class, from)),
            to: to.map(|to| Boundary::after(Front::of_class(class, to))),
            point: false,
        }
    }

    /// Returns the interval of the terms before those that begin like `front`.
    pub(super) fn before(front: Front) -> Interval {
        Interval {
            to: Some(Boundary::before(front)),
            ..Interval::everything()
        }
    }

    /// Returns the interval of the terms after those that begin like `front`.
    pub(super) fn after(mut front: Front) -> Interval {
        front.bytes = prefix_end(&front.bytes);
        Interval {
            from: Boundary::after(front),
            ..Interval::everything()
        }
    }

    /// Returns the interval of the terms that begin like `front`, and of those after them.
    pub(super) fn from_on(front: Front) -> Interval {
        Interval {
            from: Boundary::before(front),
            ..Interval::everything()
        }
    }

    /// Returns the interval of the terms that begin like `front`, and of those before them.
    pub(super) fn up_to(mut front: Front) -> Interval {
        front.bytes = prefix_end(&front.bytes);
        Interval {
            to: Some(Boundary::after(front)),
            ..Interval::everything()
        }
    }

    /// Returns the interval between two fronts whose bytes are bounds by themselves.
    pub(super) fn between(from: Front, to: Front) -> Interval {
        Interval {
            from: Boundary::before(from),
            to: Some(Boundary::after(to)),
            point: false,
        }
    }

    /// Returns the interval of the terms that begin with `front` and continue as the terms of this
    /// interval. A point becomes a range, because the parts after it are unknown.
    pub(super) fn behind(&self, front: &Front) -> Interval {
        let to = match &self.to {
            Some(to) => Some(to.behind(front)),
            None if front.bytes.is_empty() => None,
            None => Some(Boundary {
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

    /// Returns the lower bound, which is inclusive. Its bytes are empty if there is none. O(1).
    #[must_use]
    pub fn from(&self) -> &Boundary {
        &self.from
    }

    /// Returns the upper bound, which is exclusive, if there is one. O(1).
    #[must_use]
    pub fn to(&self) -> Option<&Boundary> {
        self.to.as_ref()
    }

    /// Returns `true` if the interval is a single order key: the bytes of [`from`](Interval::from).
    /// O(1).
    #[must_use]
    pub fn is_point(&self) -> bool {
        self.point
    }

    /// Returns `true` if an order key is in it. O(length).
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.from.bytes <= *key && self.to.as_ref().is_none_or(|to| *key < *to.bytes)
    }

    /// Renders the interval as text: `Key =:= ...`, `Key == ...`, or a condition on `Key`. `spec`
    /// is the specification it was made from.
    #[must_use]
    pub fn show<H: Host>(&self, spec: &Spec<H>) -> String {
        let text = |boundary: &Boundary| boundary.outline.show(spec);
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

    /// Returns `true` if the interval consists of the terms of one outline.
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

    pub(super) fn compare_ends(&self, other: &Interval) -> Ordering {
        match (&self.to, &other.to) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(a), Some(b)) => a.bytes.cmp(&b.bytes),
        }
    }

    pub(super) fn is_same(&self, other: &Interval) -> bool {
        self.from.bytes == other.from.bytes && self.compare_ends(other).is_eq()
    }

    /// Returns `true` if no gap separates this interval from `later`, which does not begin before
    /// it.
    pub(super) fn touches(&self, later: &Interval) -> bool {
        self.to
            .as_ref()
            .is_none_or(|to| later.from.bytes <= to.bytes)
    }

    /// Extends this interval to the end of `later`, which does not begin before it.
    pub(super) fn join(&mut self, later: Interval) {
        if self.is_same(&later) {
            // Both points are `==`, but they may not be the same term.
            if self.point && later.point && self.from.outline != later.from.outline {
                self.from.outline = std::mem::take(&mut self.from.outline).loosen();
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

    /// Returns the intersection of both.
    pub(super) fn meet(&self, other: &Interval) -> Option<Interval> {
        match (self.point, other.point) {
            (true, true) => {
                // Both conditions hold, so the stricter outline is kept.
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
