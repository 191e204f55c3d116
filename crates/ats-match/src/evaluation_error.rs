//! The failures of expressions.

use crate::value::TooMany;

/// An expression has no value: the function raised an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvaluationError;

impl From<TooMany> for EvaluationError {
    fn from(_: TooMany) -> Self {
        EvaluationError
    }
}
