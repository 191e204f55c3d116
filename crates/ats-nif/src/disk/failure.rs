//! Why a table in a directory cannot be used: a word for programs, and a text for people.

use crate::atoms::KnownAtom;
use ats_disk::Error;
use std::io;

/// Why a table in a directory cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong, in one word.
    pub cause: KnownAtom,
    /// What is wrong, in words.
    pub text: String,
}

impl Failure {
    /// A failure with a text of its own.
    pub fn new(cause: KnownAtom, text: impl ToString) -> Self {
        Failure {
            cause,
            text: text.to_string(),
        }
    }

    /// A failure of the system.
    pub fn of_system(error: &io::Error, what: &str) -> Self {
        Failure {
            cause: word_of(error.kind()),
            text: format!("{what}: {error}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let cause = match &error {
            Error::Io { kind, .. } => word_of(*kind),
            Error::Corrupt(_) => KnownAtom::Damaged,
            Error::Locked => KnownAtom::InUse,
            Error::Missing => KnownAtom::Enoent,
            Error::NewerFormat { .. } => KnownAtom::NewerFormat,
            Error::OtherOperator { .. } => KnownAtom::MergeMismatch,
            Error::ReadOnly(_) => KnownAtom::ReadOnly,
            Error::Merge => KnownAtom::MergeFailed,
            Error::Expired
            | Error::NoOperator
            | Error::TooLong
            | Error::Option { .. }
            | Error::WouldWait => KnownAtom::Storage,
        };
        Failure::new(cause, error)
    }
}

/// The word that the VM has for an error of the system.
pub fn word_of(kind: io::ErrorKind) -> KnownAtom {
    use io::ErrorKind;
    match kind {
        ErrorKind::NotFound => KnownAtom::Enoent,
        ErrorKind::PermissionDenied => KnownAtom::Eacces,
        ErrorKind::StorageFull => KnownAtom::Enospc,
        ErrorKind::NotADirectory => KnownAtom::Enotdir,
        ErrorKind::ReadOnlyFilesystem => KnownAtom::ReadOnly,
        _ => KnownAtom::Eio,
    }
}
