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
    /// The part at the position of this `'_'`.
    Any(PatternId),
}

/// Ranges for some parts of a key; other parts are unlimited. Sorted by part; no range set is
/// empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Case(Vec<(Subject, Ranges)>);

impl Case {
    /// Returns the ranges in which a part must be, if it is limited. O(log n).
    pub(super) fn get(&self, subject: Subject) -> Option<&Ranges> {
        let found = self
            .0
            .binary_search_by_key(&subject, |entry| entry.0)
            .ok()?;
        Some(&self.0[found].1)
    }

    /// Returns the conjunction of both cases, if they do not exclude each other.
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

    /// Returns the number of ranges in the case.
    fn size(&self) -> usize {
        self.0.iter().map(|(_, ranges)| ranges.len()).sum()
    }

    /// Returns `true` if the union of both is a case, that is, if they limit the same parts and
    /// differ in at most one.
    fn can_join(&self, other: &Case) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len()
            && pairs.clone().all(|(a, b)| a.0 == b.0)
            && pairs.by_ref().filter(|(a, b)| !a.1.is_same(&b.1)).count() <= 1
    }

    /// Returns a case that holds if either does; the narrowest one if they [can be
    /// joined](Case::can_join).
    fn join(self, other: Case) -> Case {
        let mut others = other.0.into_iter().peekable();
        let mut joined = Vec::new();
        for (subject, ranges) in self.0 {
            while others.next_if(|entry| entry.0 < subject).is_some() {}
            if let Some((_, more)) = others.next_if(|entry| entry.0 == subject) {
                joined.push((subject, ranges.union(more).coarsen(LIMIT)));
            }
        }
        // A part that may be anything is not stored.
        joined.retain(|(_, ranges)| !ranges.is_everything());
        Case(joined)
    }
}

/// A disjunction of at most [`LIMIT`] cases, with a few times as many ranges.
#[derive(Clone, Debug)]
pub(super) struct Cases {
    cases: Vec<Case>,
    size: usize,
}

impl Cases {
    /// Returns the disjunction of no cases, which is false.
    pub(super) fn nothing() -> Cases {
        Cases {
            cases: Vec::new(),
            size: 0,
        }
    }

    /// Returns the case without limits, which is true.
    pub(super) fn everything() -> Cases {
        Cases {
            cases: vec![Case::default()],
            size: 0,
        }
    }

    /// Returns the case that limits one part to these ranges.
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

    /// Returns the cost of a walk over the cases. O(1).
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.cases.is_empty()
    }

    pub(super) fn is_everything(&self) -> bool {
        self.cases.iter().any(|case| case.0.is_empty())
    }

    /// Returns the conjunction of both.
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

    /// Returns the disjunction of both.
    pub(super) fn or(mut self, other: Cases) -> Cases {
        other.cases.into_iter().for_each(|case| self.add(case));
        self
    }

    fn add(&mut self, case: Case) {
        /// Number of most recent cases that a new one may be joined with.
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

    /// Returns a single case that holds whenever one of these does.
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
