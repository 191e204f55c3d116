//! The errors of transactions.

use std::error::Error;
use std::fmt;

/// The reason why a transaction of a map has changed nothing: see
/// [`HashMap::transact`](crate::HashMap::transact). `E` is the type of the errors of its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactError<E> {
    /// The function has returned this error. All values that it had read were those of one moment.
    Abandoned(E),
    /// Other threads, or the function itself without its view, have changed values that the
    /// function had read, in each of 64 attempts.
    Conflict,
}

impl<E: fmt::Display> fmt::Display for TransactError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransactError::Abandoned(error) => error.fmt(f),
            TransactError::Conflict => {
                f.write_str("keys that the transaction reads were changed during all its attempts")
            }
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for TransactError<E> {}
