//! The failures of expressions.

use crate::value::TooMany;

/// An expression has no value: the function raised an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed;

impl From<TooMany> for Failed {
    fn from(_: TooMany) -> Self {
        Failed
    }
}
