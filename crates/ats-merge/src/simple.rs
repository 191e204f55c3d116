//! Merges of values that are taken as a whole.

use crate::merge_error::MergeError;
use crate::merged::Merged;
use crate::order::order;
use crate::{lists, number, sets, statistics};
use ats_term::image::{Host, ImageRef};
use ats_term::{Kind, TermRef, Zeros};
use std::fmt;

/// A merge of values that are taken as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simple {
    /// Adds numbers.
    Sum,
    /// Keeps the lesser.
    Min,
    /// Keeps the greater.
    Max,
    /// Keeps the earlier.
    First,
    /// Keeps the later.
    Last,
    /// Keeps the tuple of which the element with this number, from 1, is greater, and the later of
    /// two of which it is equal.
    LastBy(usize),
    /// Puts lists or binaries one behind the other.
    Append,
    /// Unites ordered sets, or maps.
    Union,
    /// Keeps the elements that are in both of two ordered sets, or maps.
    Intersection,
    /// Keeps the least, the greatest, the sum and the number of numbers.
    Statistics,
}

/// The most elements that a tuple has.
const MOST_ELEMENTS: i64 = (1 << 24) - 1;

impl Simple {
    pub(crate) fn from_term<T: TermRef>(term: T) -> Option<Self> {
        match term.kind() {
            Kind::Atom => term.with_atom(|text| {
                Some(match text {
                    "sum" => Simple::Sum,
                    "min" => Simple::Min,
                    "max" => Simple::Max,
                    "first" => Simple::First,
                    "last" | "replace" => Simple::Last,
                    "append" => Simple::Append,
                    "union" => Simple::Union,
                    "intersection" => Simple::Intersection,
                    "statistics" => Simple::Statistics,
                    _ => return None,
                })
            }),
            Kind::Tuple(2) if is_atom(term.element(0), "last") => match term.element(1).kind() {
                Kind::Int(number @ 1..=MOST_ELEMENTS) => {
                    usize::try_from(number).ok().map(Simple::LastBy)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns `true` if a term is a value of the kind. O(1), but for lists and sets O(their size).
    pub(crate) fn accepts<H: Host>(self, value: ImageRef<'_, H>, zeros: Zeros) -> bool {
        match self {
            Simple::Min | Simple::Max | Simple::First | Simple::Last => true,
            Simple::LastBy(number) => element(value, number).is_some(),
            Simple::Sum => number::Number::of(value).is_some(),
            Simple::Append => lists::accepts(value),
            Simple::Union | Simple::Intersection => sets::accepts(value, zeros),
            Simple::Statistics => statistics::accepts(value, zeros),
        }
    }

    pub(crate) fn merge<'m, H: Host>(
        self,
        earlier: ImageRef<'m, H>,
        later: ImageRef<'m, H>,
        zeros: Zeros,
    ) -> Result<Merged<'m, H>, MergeError> {
        match self {
            Simple::Last => Ok(Merged::Later(later)),
            Simple::Min if order(later, earlier, zeros).is_lt() => Ok(Merged::Later(later)),
            Simple::Max if order(later, earlier, zeros).is_gt() => Ok(Merged::Later(later)),
            Simple::First | Simple::Min | Simple::Max => Ok(Merged::Earlier(earlier)),
            Simple::LastBy(number) => {
                let at = element(earlier, number).ok_or(MergeError::Earlier)?;
                let later_at = element(later, number).ok_or(MergeError::Later)?;
                Ok(if order(later_at, at, zeros).is_lt() {
                    Merged::Earlier(earlier)
                } else {
                    Merged::Later(later)
                })
            }
            Simple::Sum => number::sum(earlier, later),
            Simple::Append => lists::append(earlier, later),
            Simple::Union => sets::union(earlier, later, zeros),
            Simple::Intersection => sets::intersection(earlier, later, zeros),
            Simple::Statistics => statistics::merge(earlier, later, zeros),
        }
    }

    /// Returns `true` if there is a value that is empty.
    pub(crate) fn has_empty(self) -> bool {
        matches!(self, Simple::Sum | Simple::Append | Simple::Union)
    }

    /// Returns `true` if a value is empty: merging another one with it, or it with another one,
    /// gives the other one. O(1).
    pub(crate) fn is_empty<T: TermRef>(self, value: T) -> bool {
        match self {
            Simple::Sum => matches!(value.kind(), Kind::Int(0)),
            Simple::Append => matches!(value.kind(), Kind::Nil | Kind::Bits(0)),
            Simple::Union => matches!(value.kind(), Kind::Nil | Kind::Map(0)),
            _ => false,
        }
    }

    /// Returns `true` if some values are bases.
    pub(crate) fn has_base(self) -> bool {
        matches!(self, Simple::Last | Simple::Intersection)
    }

    /// Returns `true` if merging anything with this value, as the later one, gives this value.
    /// O(1).
    pub(crate) fn is_base<T: TermRef>(self, value: T) -> bool {
        match self {
            Simple::Last => true,
            Simple::Intersection => matches!(value.kind(), Kind::Nil | Kind::Map(0)),
            _ => false,
        }
    }
}

impl fmt::Display for Simple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Simple::Sum => "sum",
            Simple::Min => "min",
            Simple::Max => "max",
            Simple::First => "first",
            Simple::Last => "last",
            Simple::LastBy(number) => return write!(f, "last({number})"),
            Simple::Append => "append",
            Simple::Union => "union",
            Simple::Intersection => "intersection",
            Simple::Statistics => "statistics",
        })
    }
}

/// Returns the element of a tuple with this number, from 1.
fn element<H: Host>(tuple: ImageRef<'_, H>, number: usize) -> Option<ImageRef<'_, H>> {
    tuple.tuple()?.get(number.checked_sub(1)?)
}

pub(crate) fn is_atom<T: TermRef>(term: T, name: &str) -> bool {
    matches!(term.kind(), Kind::Atom) && term.with_atom(|text| text == name)
}
