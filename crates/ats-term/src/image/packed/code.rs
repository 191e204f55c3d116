//! Codes of the [stream](super#stream); each constant is the first of its row.

pub(super) const INT_13: u8 = 0x80;
pub(super) const INT_21: u8 = 0xA0;
pub(super) const INT: u8 = 0xC0;
pub(super) const ATOM_11: u8 = 0xC8;
pub(super) const ATOM_19: u8 = 0xD0;
pub(super) const WORD: u8 = 0xD8;
pub(super) const FLOAT: u8 = 0xE0;
pub(super) const TUPLE: u8 = 0xE8;
pub(super) const LIST: u8 = 0xF0;
pub(super) const NIL: u8 = 0xF8;
pub(super) const IMPROPER: u8 = 0xF9;
pub(super) const STRING: u8 = 0xFA;
pub(super) const BINARY: u8 = 0xFB;
pub(super) const BITS: u8 = 0xFC;
pub(super) const MAP: u8 = 0xFD;
pub(super) const BIG: u8 = 0xFE;
pub(super) const HOST: u8 = 0xFF;

/// Smallest number of elements of a tuple or list that is written as a count after the code.
pub(super) const LONG: usize = 7;

/// `true` if the bytes after the tag of a word are the next ones in memory, as on little-endian
/// machines.
pub(super) const TAG_IS_FIRST: bool = cfg!(target_endian = "little");
