//! The keys that guards leave open, as a choice of cases.

use super::context::LIMIT;
use super::range::Ranges;
use crate::spec::{PatternId, Slot};

/// A part of the key that guards can limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// The whole key, unless it is a variable.
    Key,
    /// The part that a variable in the key is bound to.
    Slot(Slot),
    /// The part in the place of this `'_'`.
    Any(PatternId),
}

/// For some parts of a key in which ranges they are. The others can be anything. Sorted by part; no ranges are
/// empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Case(Vec<(Subject, Ranges)>);

impl Case {
    /// The ranges in which a part must be, if it is limited at all. O(log n).
    pub(super) fn get(&self, subject: Subject) -> Option<&Ranges> {
        let found = self
            .0
            .binary_search_by_key(&subject, |entry| entry.0)
            .ok()?;
        Some(&self.0[found].1)
    }

    /// The case that both hold, if that is possible.
    fn and(&self, other: &Case) -> Option<Case> {
        let mut both = self.clone();
        for (subject, ranges) in &other.0 {
            match both.0.binary_search_by_key(subject, |entry| entry.0) {
                Ok(at) => {
                    let met = both.0[at].1.intersection(ranges);
                    if met.is_empty() {
                        return None;
                    }
                    both.0[at].1 = met;
                }
                Err(at) => both.0.insert(at, (*subject, ranges.clone())),
            }
        }
        Some(both)
    }

    /// The number of ranges that it is made of.
    fn size(&self) -> usize {
        self.0.iter().map(|(_, ranges)| ranges.len()).sum()
    }

    /// Returns `true` if the union of both is a case: they are about the same parts and differ in
    /// one at most.
    fn can_join(&self, other: &Case) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len()
            && pairs.clone().all(|(a, b)| a.0 == b.0)
            && pairs.by_ref().filter(|(a, b)| !a.1.is_same(&b.1)).count() <= 1
    }

    /// A case that holds if either does; the narrowest one if they [can be joined](Case::can_join).
    fn join(self, other: Case) -> Case {
        let mut others = other.0.into_iter().peekable();
        let mut joined = Vec::new();
        for (subject, ranges) in self.0 {
            while others.next_if(|entry| entry.0 < subject).is_some() {}
            if let Some((_, more)) = others.next_if(|entry| entry.0 == subject) {
                joined.push((subject, ranges.union(more).coarsen(LIMIT)));
            }
        }
        // One that is everything says nothing.
        joined.retain(|(_, ranges)| !ranges.is_everything());
        Case(joined)
    }
}

/// One of these cases holds. At most [`LIMIT`] of them, with a few times as many ranges.
#[derive(Clone, Debug)]
pub(super) struct Cases {
    cases: Vec<Case>,
    size: usize,
}

impl Cases {
    /// It cannot be.
    pub(super) fn nothing() -> Cases {
        Cases {
            cases: Vec::new(),
            size: 0,
        }
    }

    /// Nothing is known.
    pub(super) fn everything() -> Cases {
        Cases {
            cases: vec![Case::default()],
            size: 0,
        }
    }

    /// A part is in these ranges.
    pub(super) fn one(subject: Subject, ranges: Ranges) -> Cases {
        if ranges.is_empty() {
            return Cases::nothing();
        }
        if ranges.is_everything() {
            return Cases::everything();
        }
        Cases {
            size: ranges.len(),
            cases: vec![Case(vec![(subject, ranges)])],
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter()
    }

    /// The work of going through them. O(1).
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.cases.is_empty()
    }

    pub(super) fn is_everything(&self) -> bool {
        self.cases.iter().any(|case| case.0.is_empty())
    }

    /// Both are so.
    pub(super) fn and(self, other: Cases) -> Cases {
        if other.is_everything() {
            return self;
        }
        if self.is_everything() {
            return other;
        }
        let other = if self.cases.len() * other.cases.len() > LIMIT {
            other.join_all()
        } else {
            other
        };
        let mut both = Cases::nothing();
        for a in &self.cases {
            for b in &other.cases {
                a.and(b).into_iter().for_each(|case| both.add(case));
            }
        }
        both
    }

    /// One of both is so.
    pub(super) fn or(mut self, other: Cases) -> Cases {
        other.cases.into_iter().for_each(|case| self.add(case));
        self
    }

    fn add(&mut self, case: Case) {
        /// The number of last cases that are tried to be joined.
        const NEAR: usize = 16;
        if self.is_everything() {
            return;
        }
        let near = self.cases.len().saturating_sub(NEAR);
        let same = (near..self.cases.len()).find(|&at| self.cases[at].can_join(&case));
        let case = match same {
            Some(at) => {
                let old = self.cases.remove(at);
                self.size -= old.size();
                old.join(case)
            }
            None => case,
        };
        if case.0.is_empty() {
            *self = Cases::everything();
            return;
        }
        self.size += case.size();
        self.cases.push(case);
        if self.cases.len() > LIMIT || self.size > 4 * LIMIT {
            *self = std::mem::replace(self, Cases::nothing()).join_all();
        }
    }

    /// A single case that holds whenever one of these does.
    fn join_all(self) -> Cases {
        let Some(case) = self.cases.into_iter().reduce(Case::join) else {
            return Cases::nothing();
        };
        Cases {
            size: case.size(),
            cases: vec![case],
        }
    }
}
