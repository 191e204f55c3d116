//! Errors of stores.

use std::{fmt, io};

/// An error of a store. The call has changed nothing, unless the function says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Another change holds a key, or a lock was held for too long. The caller may try again later,
    /// best after it has yielded the processor.
    Busy,
    /// The call would block, and the caller has no [`MayBlock`](crate::MayBlock). Nothing has
    /// changed.
    WouldBlock,
    /// The store does not have this operation.
    Unsupported,
    /// The system failed to read or to write.
    Io(SystemError),
    /// The bytes that were read are not those that were written.
    Corrupt,
    /// The merge operator cannot merge these values.
    Merge,
    /// The store is a snapshot that has expired: it was not read for too long, and its records are
    /// gone.
    Expired,
    /// A key, a value, or all changes of a call together have more bytes than the store can keep.
    TooLong {
        /// Number of bytes, or a lower bound of it.
        len: usize,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// A program outside the store must first merge the values of a key. A scan has visited the
    /// records before this key, and can go on from it once they are merged.
    Pending,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Busy => f.write_str("another operation holds a key; try again"),
            Error::WouldBlock => f.write_str("the call would block"),
            Error::Unsupported => f.write_str("stores of this kind do not have this operation"),
            Error::Io(error) => write!(f, "input or output failed: {error}"),
            Error::Corrupt => f.write_str("what was read is not what was written"),
            Error::Merge => f.write_str("these values cannot be merged"),
            Error::Expired => f.write_str("the snapshot has expired"),
            Error::TooLong { len, limit } => {
                write!(
                    f,
                    "{len} bytes are more than the {limit} that the store can keep"
                )
            }
            Error::Pending => f.write_str("the program has to merge these values first"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(SystemError::of(&error))
    }
}

/// An error of the operating system, without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemError {
    /// The kind of error.
    pub kind: io::ErrorKind,
    /// The error code of the system (`errno`), if the error has one.
    pub code: Option<i32>,
}

impl SystemError {
    /// Returns the kind and the code of an error.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        SystemError {
            kind: error.kind(),
            code: error.raw_os_error(),
        }
    }
}

impl From<io::ErrorKind> for SystemError {
    fn from(kind: io::ErrorKind) -> Self {
        SystemError { kind, code: None }
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => io::Error::from_raw_os_error(code).fmt(f),
            None => self.kind.fmt(f),
        }
    }
}
