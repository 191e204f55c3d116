//! The failures of expressions.

use crate::value::TooMany;

/// The failure of an expression: a function raised an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvaluationError;

impl From<TooMany> for EvaluationError {
    fn from(_: TooMany) -> Self {
        EvaluationError
    }
}
