//! Tags in the words of common terms. [`load`](crate::load) checks them against the VM.

use crate::sys::Word;

/// Low two bits of every immediate.
pub const IMMEDIATE_TAG: Word = 0b11;
/// Low two bits of a term on the heap that is no list cell.
pub const BOXED_TAG: Word = 0b10;
/// Low two bits of a list cell.
pub const CONS_TAG: Word = 0b01;
/// Low four bits of a small integer.
pub const SMALL_TAG: Word = 0xF;
/// Low four bits of a local pid.
pub const PID_TAG: Word = 0x3;
/// Low four bits of a local port.
pub const PORT_TAG: Word = 0x7;
/// Low four bits of all other immediates: atoms and the empty list.
pub const OTHER_TAG: Word = 0xB;
/// The empty list.
pub const NIL: Word = 0x3B;
