//! Relations of values to constants that comparisons state, and the ranges that follow from them.

use super::interval::Interval;
use super::outline::Front;
use super::range::Ranges;
use crate::function::Function;

/// The relation of a value to a constant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    Same,
    /// Different, or not the same term: excludes hardly anything.
    Different,
}

impl Relation {
    pub(super) fn of(function: Function) -> Option<Relation> {
        Some(match function {
            Function::Less => Relation::Less,
            Function::LessOrEqual => Relation::AtMost,
            Function::Greater => Relation::Greater,
            Function::GreaterOrEqual => Relation::AtLeast,
            Function::Equal => Relation::Equal,
            Function::Same => Relation::Same,
            Function::NotEqual | Function::NotSame => Relation::Different,
            _ => return None,
        })
    }

    /// Returns the relation that holds if the comparison is false.
    pub(super) fn of_negated(function: Function) -> Option<Relation> {
        Some(match function {
            Function::Less => Relation::AtLeast,
            Function::LessOrEqual => Relation::Greater,
            Function::Greater => Relation::AtMost,
            Function::GreaterOrEqual => Relation::Less,
            Function::NotEqual => Relation::Equal,
            Function::NotSame => Relation::Same,
            Function::Equal | Function::Same => Relation::Different,
            _ => return None,
        })
    }

    /// Returns the relation with both sides exchanged.
    pub(super) fn flip(self) -> Relation {
        match self {
            Relation::Less => Relation::Greater,
            Relation::AtMost => Relation::AtLeast,
            Relation::Greater => Relation::Less,
            Relation::AtLeast => Relation::AtMost,
            same => same,
        }
    }

    pub(super) fn is_equality(self) -> bool {
        matches!(self, Relation::Equal | Relation::Same)
    }

    /// Returns the ranges of all terms with this relation to a constant.
    pub(super) fn ranges(self, mut constant: Front) -> Ranges {
        Ranges::one(match self {
            Relation::Less => Interval::before(constant),
            Relation::AtLeast => Interval::from_on(constant),
            Relation::AtMost => Interval::up_to(constant),
            Relation::Greater => Interval::after(constant),
            Relation::Same => Interval::point(&constant),
            Relation::Equal => {
                constant.outline = constant.outline.loosen();
                Interval::point(&constant)
            }
            Relation::Different => Interval::everything(),
        })
    }
}
