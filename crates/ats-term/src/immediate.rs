//! The words of immediate terms.
//!
//! They are the words of the Erlang VM on 64-bit machines, except that every host has its own
//! numbering of atoms, local pids and local ports. The layout is described in
//! [`image`](crate::image), which makes them public; keys and owned terms use the same words.

/// The word of the empty list.
pub const NIL: u64 = 0x3B;
/// The greatest integer that is an immediate.
pub const SMALL_MAX: i64 = (1 << 59) - 1;
/// The least integer that is an immediate.
pub const SMALL_MIN: i64 = -(1 << 59);

const ATOM_BITS: u64 = 0x0B;

/// The meaning of the word of an immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immediate {
    /// A small integer.
    Small(i64),
    /// The atom with that number, in the numbering of the host.
    Atom(u64),
    /// The empty list.
    Nil,
    /// A local process identifier; the host knows it by its word.
    LocalPid,
    /// A local port identifier; the host knows it by its word.
    LocalPort,
}

impl Immediate {
    /// Reads the word of an immediate. Returns `None` for other words, such as the slots of boxes.
    /// O(1).
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

/// Returns the word of a small integer, or `None` if `value` does not fit 60 bits. O(1).
pub const fn small_word(value: i64) -> Option<u64> {
    if value < SMALL_MIN || value > SMALL_MAX {
        return None;
    }
    Some((value as u64) << 4 | 0xF)
}

/// Returns the word of the atom with number `index`, which is below 2^58. O(1).
pub const fn atom_word(index: u64) -> u64 {
    debug_assert!(index < 1 << 58);
    index << 6 | ATOM_BITS
}
