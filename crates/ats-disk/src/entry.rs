//! The kinds of records.

pub(crate) mod collapse;

use crate::error::Error;

/// The kind of a record. The numbers are those of the file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The value is all there is; what is older does not matter.
    Put = 1,
    /// There is nothing, and what is older does not matter. The value is empty.
    Delete = 2,
    /// The value is merged with what is older.
    Operand = 3,
}

impl Kind {
    /// Returns `true` if nothing older matters.
    pub(crate) fn is_base(self) -> bool {
        self != Kind::Operand
    }
}

impl TryFrom<u8> for Kind {
    type Error = ();

    fn try_from(byte: u8) -> Result<Self, ()> {
        match byte {
            1 => Ok(Kind::Put),
            2 => Ok(Kind::Delete),
            3 => Ok(Kind::Operand),
            _ => Err(()),
        }
    }
}

/// Refuses a thing that has more bytes than a limit.
pub(crate) fn check_len(what: &'static str, len: usize, limit: usize) -> Result<(), Error> {
    match len > limit {
        true => Err(Error::TooLong { what, len, limit }),
        false => Ok(()),
    }
}

/// The longest key and the longest value, in bytes: what the lengths of the formats can say, with
/// room for what stands beside them.
pub const MAX_BYTES: usize = (1 << 31) - (1 << 16);
