//! The bytes with which the parts of a value of `serde` begin.
//!
//! | tag | meaning |
//! |---|---|
//! | `NONE`, `UNIT`, `FALSE`, `TRUE` | themselves |
//! | `SOME` | an option with a value that begins with `NONE`, `UNIT` or `SOME` |
//! | `SMALL` and above | a number: the difference of the tag and `SMALL` |
//! | `UNSIGNED`, `NEGATED`, and the next three of each | a number of 1, 2, 4, 8 bytes; or its inverse |
//! | `U128`, `I128`, `F32`, `F64`, `CHAR` | their bytes |
//! | `SHORT` and above | a text; its length is the difference of the tag and `SHORT` |
//! | `TEXT`, `BYTES` | a number, which is the length, and that many bytes |
//! | `SEQ`, `MAP` | elements, or keys and values in turn, up to `END` |
//!
//! An option with another value is encoded as that value, and a newtype as the wrapped value. A
//! struct is a map with the names of its fields as keys. A variant is its name, or a map of its
//! name to its content. The least significant byte of a number comes first.

pub(super) const END: u8 = 0;
pub(super) const NONE: u8 = 1;
pub(super) const SOME: u8 = 2;
pub(super) const UNIT: u8 = 3;
pub(super) const FALSE: u8 = 4;
pub(super) const TRUE: u8 = 5;
pub(super) const UNSIGNED: u8 = 6;
pub(super) const NEGATED: u8 = 10;
pub(super) const U128: u8 = 14;
pub(super) const I128: u8 = 15;
pub(super) const F32: u8 = 16;
pub(super) const F64: u8 = 17;
pub(super) const CHAR: u8 = 18;
pub(super) const TEXT: u8 = 19;
pub(super) const BYTES: u8 = 20;
pub(super) const SEQ: u8 = 21;
pub(super) const MAP: u8 = 22;
pub(super) const SHORT: u8 = 64;
pub(super) const SMALL: u8 = 128;

/// Maximum nesting of sequences, maps, variants and options. A deeper value is refused, since
/// reading it would take as many nested calls.
pub(super) const DEPTH: u32 = 128;
