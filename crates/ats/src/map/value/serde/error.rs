//! The error of values of `serde`.

use std::fmt;

/// The reason why a value cannot be written or read.
#[derive(Debug)]
pub(super) struct Error(pub(super) String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl ::serde::ser::Error for Error {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Error(text.to_string())
    }
}

impl ::serde::de::Error for Error {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Error(text.to_string())
    }
}
