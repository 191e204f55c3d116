//! Failures of tables in directories: an atom for programs, and a text for people.

use crate::atoms::KnownAtom;
use ats_disk::Error;
use ats_store::SystemError;
use std::io;

/// The reason why a table in a directory cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The cause as an atom.
    pub cause: KnownAtom,
    /// The cause as text.
    pub text: String,
}

impl Failure {
    /// Creates a failure with a text of its own.
    pub fn new(cause: KnownAtom, text: impl ToString) -> Self {
        Failure {
            cause,
            text: text.to_string(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let cause = match &error {
            Error::Io { error, .. } => word_of(*error),
            Error::Corrupt(_) => KnownAtom::Damaged,
            Error::Locked => KnownAtom::InUse,
            Error::Missing => KnownAtom::Enoent,
            Error::NewerFormat { .. } => KnownAtom::NewerFormat,
            Error::OtherOperator { .. } => KnownAtom::MergeMismatch,
            Error::ReadOnly(_) => KnownAtom::ReadOnly,
            Error::Merge => KnownAtom::MergeFailed,
            Error::TooLong { .. } => KnownAtom::TooLong,
            Error::Expired
            | Error::NoOperator
            | Error::Option { .. }
            | Error::Refused(_)
            | Error::Contended
            | Error::WouldBlock => KnownAtom::Storage,
        };
        Failure::new(cause, error)
    }
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Self {
        Failure::new(word_of(SystemError::of(error)), error)
    }
}

/// System error codes that have an atom.
const CODES: [(i32, KnownAtom); 29] = [
    (libc::EACCES, KnownAtom::Eacces),
    (libc::EAGAIN, KnownAtom::Eagain),
    (libc::EBADF, KnownAtom::Ebadf),
    (libc::EBUSY, KnownAtom::Ebusy),
    (libc::EDQUOT, KnownAtom::Edquot),
    (libc::EEXIST, KnownAtom::Eexist),
    (libc::EFBIG, KnownAtom::Efbig),
    (libc::EINVAL, KnownAtom::Einval),
    (libc::EIO, KnownAtom::Eio),
    (libc::EISDIR, KnownAtom::Eisdir),
    (libc::ELOOP, KnownAtom::Eloop),
    (libc::EMFILE, KnownAtom::Emfile),
    (libc::ENAMETOOLONG, KnownAtom::Enametoolong),
    (libc::ENFILE, KnownAtom::Enfile),
    (libc::ENODEV, KnownAtom::Enodev),
    (libc::ENOENT, KnownAtom::Enoent),
    (libc::ENOLCK, KnownAtom::Enolck),
    (libc::ENOMEM, KnownAtom::Enomem),
    (libc::ENOSPC, KnownAtom::Enospc),
    (libc::ENOTDIR, KnownAtom::Enotdir),
    (libc::ENOTEMPTY, KnownAtom::Enotempty),
    (libc::ENXIO, KnownAtom::Enxio),
    (libc::EOPNOTSUPP, KnownAtom::Eopnotsupp),
    (libc::EPERM, KnownAtom::Eperm),
    (libc::EROFS, KnownAtom::Erofs),
    (libc::ESTALE, KnownAtom::Estale),
    (libc::ETIMEDOUT, KnownAtom::Etimedout),
    (libc::ETXTBSY, KnownAtom::Etxtbsy),
    (libc::EXDEV, KnownAtom::Exdev),
];

/// Returns the VM's atom for a system error: that of its code, as in `file` and `dets`.
pub fn word_of(error: SystemError) -> KnownAtom {
    use io::ErrorKind;
    let of_code = |code| CODES.iter().find(|(known, _)| *known == code);
    if let Some((_, word)) = error.code.and_then(of_code) {
        return *word;
    }
    match error.kind {
        ErrorKind::NotFound => KnownAtom::Enoent,
        ErrorKind::PermissionDenied => KnownAtom::Eacces,
        ErrorKind::StorageFull => KnownAtom::Enospc,
        ErrorKind::ReadOnlyFilesystem => KnownAtom::ReadOnly,
        ErrorKind::WouldBlock => KnownAtom::InUse,
        _ => KnownAtom::Eio,
    }
}
