//! Errors of the engine.

use ats_store::SystemError;
use std::{fmt, io};

/// An error of the engine. Nothing has changed then, unless a function says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The system failed to read or to write.
    Io {
        /// The kind of error, and the code of the system.
        error: SystemError,
        /// The call that failed, the file that it was for, and the answer of the system.
        what: String,
    },
    /// The bytes that were read are not those that were written.
    Corrupt(String),
    /// Another store, of this process or another, has the directory open.
    Locked,
    /// The directory or its store does not exist, and the call does not create it.
    Missing,
    /// A file has a newer format than this version of the engine knows.
    NewerFormat {
        /// The name of the file.
        file: String,
        /// The version of the format that was found.
        found: u32,
        /// The latest version known.
        known: u32,
    },
    /// The store was made with another merge operator than the one it is opened with.
    OtherOperator {
        /// Name and version of the operator with which the store was made; `None` if it had none.
        stored: Option<(String, u32)>,
        /// Name and version of the operator with which it is opened; `None` if it has none.
        given: Option<(String, u32)>,
    },
    /// The state of the disk is unknown after an earlier failure. Reads go on; writes need the
    /// store to be opened again.
    ReadOnly(String),
    /// The snapshot has ended: see [`Ending`](crate::Ending).
    Expired,
    /// An operand was given to a store without a merge operator.
    NoOperator,
    /// The merge operator cannot merge the values of a key.
    Merge,
    /// A key, a value or a batch is longer than the format can say.
    TooLong {
        /// The thing that is too long.
        what: &'static str,
        /// The number of bytes.
        len: usize,
        /// The most that it may have.
        limit: usize,
    },
    /// An option has a value that makes no sense.
    Option {
        /// The name of the option, as in [`Options`](crate::Options).
        name: &'static str,
        /// The fault of its value.
        why: &'static str,
    },
    /// The call would block, and the caller has no [`MayBlock`](crate::MayBlock). Nothing has
    /// changed.
    WouldBlock,
    /// A key or a value of a program's type cannot be kept: it would not be read as it is written.
    Refused(String),
    /// Other threads have changed a key of a transaction each time that it was tried.
    Contended,
}

impl Error {
    /// Makes an error of the system in the operation `what`. A name that leads to no file belongs
    /// to a damaged store.
    pub(crate) fn io(error: &io::Error, what: impl fmt::Display) -> Self {
        let what = format!("{what}: {error}");
        match error.kind() {
            io::ErrorKind::InvalidData => Error::Corrupt(what),
            _ => Error::Io {
                error: SystemError::of(error),
                what,
            },
        }
    }

    /// Returns `true` if there was no room on the disk, or no more than a quota allows.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Error::Io { error, .. } if is_full(error.kind))
    }

    pub(crate) fn corrupt(what: impl fmt::Display) -> Self {
        Error::Corrupt(what.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { what, .. } => write!(f, "input or output failed: {what}"),
            Error::Corrupt(what) => write!(f, "what was read is not what was written: {what}"),
            Error::Locked => f.write_str("the directory is in use by another store"),
            Error::Missing => f.write_str("there is no store in the directory"),
            Error::NewerFormat { file, found, known } => write!(
                f,
                "{file} has format {found}; this version reads formats up to {known}"
            ),
            Error::OtherOperator { stored, given } => {
                let show = |operator: &Option<(String, u32)>| match operator {
                    Some((name, version)) => format!("{name} version {version}"),
                    None => String::from("none"),
                };
                write!(
                    f,
                    "the store merges with another operator: {}, not {}",
                    show(stored),
                    show(given)
                )
            }
            Error::ReadOnly(why) => {
                write!(f, "the store is read-only until it is opened again: {why}")
            }
            Error::Expired => {
                f.write_str("the snapshot was not read for longer than the store allows, or ended")
            }
            Error::NoOperator => f.write_str("the store has no merge operator"),
            Error::Merge => f.write_str("the values of a key cannot be merged"),
            Error::TooLong { what, len, limit } => {
                write!(f, "{what} has {len} bytes, more than {limit}")
            }
            Error::Option { name, why } => write!(f, "the option {name}: {why}"),
            Error::WouldBlock => f.write_str("the call would block"),
            Error::Refused(why) => write!(f, "the map does not take this: {why}"),
            Error::Contended => {
                f.write_str("other threads have changed the keys of the transaction each time")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for ats_store::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Io { error, .. } => ats_store::Error::Io(error),
            Error::Corrupt(_) | Error::NewerFormat { .. } => ats_store::Error::Corrupt,
            Error::Merge => ats_store::Error::Merge,
            Error::WouldBlock => ats_store::Error::WouldBlock,
            Error::Locked => ats_store::Error::Io(io::ErrorKind::WouldBlock.into()),
            Error::ReadOnly(_) => ats_store::Error::Io(io::ErrorKind::ReadOnlyFilesystem.into()),
            Error::Missing => ats_store::Error::Io(io::ErrorKind::NotFound.into()),
            Error::Expired => ats_store::Error::Expired,
            Error::NoOperator
            | Error::OtherOperator { .. }
            | Error::Option { .. }
            | Error::Contended
            | Error::Refused(_) => ats_store::Error::Unsupported,
            Error::TooLong { len, limit, .. } => ats_store::Error::TooLong { len, limit },
        }
    }
}

/// Returns `true` if an error says that there is no room on the disk, or no more than a quota
/// allows.
pub(crate) fn is_full(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
