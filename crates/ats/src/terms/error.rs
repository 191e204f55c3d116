//! The errors of operations.

use std::fmt;

/// The reason why an operation failed. A failed operation changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// An object is not a tuple.
    NotATuple,
    /// An object has no element at the key position.
    NoKey,
    /// The table has no object with the key.
    BadKey,
    /// The operation would change the key of an object.
    KeyPosition,
    /// An object has no element at the position.
    Position,
    /// The element at the position is not an integer.
    NotAnInteger,
    /// A value is not of the kind that the merge accepts, or does not fit the present element.
    Operand,
    /// The element in the table is not of the kind that the merge accepts.
    Element,
    /// The table is a snapshot that has [ended](crate::terms::Ending).
    Ended,
    /// Tables of this type do not have the operation.
    TableType,
    /// The objects of the table do not [expire](crate::terms::Ttl).
    NoTtl,
    /// The table is a snapshot, which cannot be changed.
    Snapshot,
    /// The objects of a key are larger than the [bound](crate::terms::Limits) of the table.
    Bound,
    /// The result has more bits than an integer can have.
    SystemLimit,
    /// A transaction names [too many](crate::terms::MOST_TABLES) tables.
    TooManyTables,
    /// The objects have more words than the workspace is [limited](crate::terms::Workspace::limit)
    /// to, or a query needs more steps for one object than its
    /// [slice](crate::terms::select::Slice::with_limit) allows.
    TooLarge,
    /// Another operation that changes several keys at once holds a key. The caller should yield the
    /// processor, and try again.
    Busy,
    /// The store of the table could not read or write its objects, or does not support the
    /// operation.
    Storage(ats_store::Error),
}

impl From<ats_mem::Busy> for Error {
    fn from(_: ats_mem::Busy) -> Self {
        Error::Busy
    }
}

impl From<ats_store::Error> for Error {
    fn from(error: ats_store::Error) -> Self {
        match error {
            ats_store::Error::Busy => Error::Busy,
            error => Error::Storage(error),
        }
    }
}

impl From<ats_merge::MergeError> for Error {
    fn from(error: ats_merge::MergeError) -> Self {
        match error {
            ats_merge::MergeError::Earlier => Error::Element,
            ats_merge::MergeError::Later => Error::Operand,
            ats_merge::MergeError::SystemLimit => Error::SystemLimit,
        }
    }
}

impl From<ats_term::image::NoImage> for Error {
    fn from(reason: ats_term::image::NoImage) -> Self {
        match reason {
            ats_term::image::NoImage::NotATuple => Error::NotATuple,
            ats_term::image::NoImage::TooLarge => Error::TooLarge,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Error::NotATuple => "the object is not a tuple",
            Error::NoKey => "the object has no element at the key position",
            Error::BadKey => "there is no object with this key",
            Error::KeyPosition => "the key of an object cannot be changed",
            Error::Position => "the object has no element at this position",
            Error::NotAnInteger => "the element is not an integer",
            Error::Operand => "the value cannot be merged in this way",
            Error::Element => "the element cannot be merged in this way",
            Error::Snapshot => "the table is a snapshot, which cannot be changed",
            Error::Ended => "the snapshot has ended",
            Error::TableType => "tables of this type do not have this operation",
            Error::Bound => "the objects of a key are larger than the bound of the table",
            Error::NoTtl => "the objects of the table do not expire",
            Error::SystemLimit => "the result is larger than an integer may be",
            Error::TooManyTables => "a transaction has 64 tables at most",
            Error::TooLarge => "the objects are larger than the caller allows",
            Error::Busy => "another operation holds a key; try again",
            Error::Storage(error) => return write!(f, "the store of the table: {error}"),
        };
        f.write_str(text)
    }
}

impl std::error::Error for Error {}
