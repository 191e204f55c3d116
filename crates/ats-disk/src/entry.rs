//! The kinds of records.

pub(crate) mod collapse;

use crate::error::Error;

/// The kind of a record. The numbers are those of the file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The whole value; older entries do not matter.
    Put = 1,
    /// The absence of a value; older entries do not matter. The value is empty.
    Delete = 2,
    /// A value that is merged with older entries.
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
    if len > limit {
        Err(Error::TooLong { what, len, limit })
    } else {
        Ok(())
    }
}

/// The longest key and the longest value, in bytes. The lengths in the formats have room for it,
/// and for their flags.
pub const MAX_BYTES: usize = (1 << 31) - (1 << 16);
