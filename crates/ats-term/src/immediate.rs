//! The words of immediate terms.
//!
//! They are the words that the Erlang VM uses on 64-bit machines, except that every host numbers
//! its atoms, local pids and local ports as it likes. The picture is in [`image`](crate::image),
//! which makes them public; keys and owned terms use the same words.

/// The word of the empty list.
pub const NIL: u64 = 0x3B;
/// The greatest integer that is an immediate.
pub const SMALL_MAX: i64 = (1 << 59) - 1;
/// The least integer that is an immediate.
pub const SMALL_MIN: i64 = -(1 << 59);

const ATOM_BITS: u64 = 0x0B;

/// The term that the word of an immediate stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immediate {
    /// A small integer.
    Small(i64),
    /// The atom with that number, in the numbering of the host.
    Atom(u64),
    /// The empty list.
    Nil,
    /// A local process identifier; its word is what the host knows it by.
    LocalPid,
    /// A local port identifier; its word is what the host knows it by.
    LocalPort,
}

impl Immediate {
    /// Reads the word of an immediate. Words that are none, such as the slots of boxes, give `None`. O(1).
    pub const fn from_word(word: u64) -> Option<Self> {
        match word & 0xF {
            0xF => Some(Self::Small(word as i64 >> 4)),
            0x3 => Some(Self::LocalPid),
            0x7 => Some(Self::LocalPort),
            _ if word & 0x3F == ATOM_BITS => Some(Self::Atom(word >> 6)),
            _ if word == NIL => Some(Self::Nil),
            _ => None,
        }
    }
}

/// The word of a small integer, or `None` if `value` does not fit 60 bits. O(1).
pub const fn small_word(value: i64) -> Option<u64> {
    if value < SMALL_MIN || value > SMALL_MAX {
        return None;
    }
    Some((value as u64) << 4 | 0xF)
}

/// The word of the atom with number `index`, which is below 2^58. O(1).
pub const fn atom_word(index: u64) -> u64 {
    debug_assert!(index < 1 << 58);
    index << 6 | ATOM_BITS
}
