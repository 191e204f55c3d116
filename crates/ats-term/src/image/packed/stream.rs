//! Reader of the stream of a packed object.

use super::super::layout::{BIG, BITS, LIST, MAP, TUPLE, header};
use super::code::{self, LONG};
use crate::immediate::{NIL, atom_word};

/// A term at the front of a stream, without the terms below it.
pub(super) enum Item<'a> {
    Immediate(u64),
    /// A tuple, list or map: its header, and the number of terms that follow. For a list that ends
    /// with nil they are the elements, else the elements and the tail.
    Slots(u64, usize),
    /// A list of small integers that ends with nil.
    String(&'a [u8]),
    /// The bits of a float.
    Float(u64),
    /// A bitstring or an integer that is not small: its header, and its bytes.
    Bytes(u64, &'a [u8]),
    Host,
}

/// The rest of a stream. Streams come from a packer, so a truncated one is a bug and panics.
pub(super) struct Stream<'a>(&'a [u8]);

impl<'a> Stream<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Takes the next term.
    #[inline]
    pub(super) fn item(&mut self) -> Item<'a> {
        let first = self.byte();
        let low = u64::from(first);
        match first {
            0..code::INT_13 => Item::Immediate(low << 4 | 0xF),
            code::INT_13..code::INT_21 => integer((low & 0x1F) << 8 | self.number(1)),
            code::INT_21..code::INT => integer((low & 0x1F) << 16 | self.number(2)),
            code::INT..code::ATOM_11 => integer(self.number(width(first))),
            code::ATOM_11..code::ATOM_19 => atom((low & 7) << 8 | self.number(1)),
            code::ATOM_19..code::WORD => atom((low & 7) << 16 | self.number(2)),
            code::WORD..code::FLOAT => Item::Immediate(self.number(width(first))),
            code::FLOAT..code::TUPLE => {
                let width = width(first);
                Item::Float(self.number(width) << (64 - 8 * width))
            }
            code::TUPLE..code::LIST => {
                let arity = self.short_count(first);
                Item::Slots(header(TUPLE, arity), arity)
            }
            code::LIST..code::NIL => {
                let elements = self.short_count(first);
                Item::Slots(header(LIST, elements), elements)
            }
            _ => self.rarer_item(first),
        }
    }

    fn rarer_item(&mut self, first: u8) -> Item<'a> {
        match first {
            code::NIL => Item::Immediate(NIL),
            code::HOST => Item::Host,
            code::BIG => {
                let n = self.count();
                Item::Bytes(header(BIG, n), self.bytes(n >> 1))
            }
            _ => {
                let n = self.count();
                match first {
                    code::IMPROPER => Item::Slots(header(LIST, n), n + 1),
                    code::MAP => Item::Slots(header(MAP, n), 2 * n),
                    code::STRING => Item::String(self.bytes(n)),
                    code::BINARY => Item::Bytes(header(BITS, 8 * n), self.bytes(n)),
                    _ => Item::Bytes(header(BITS, n), self.bytes(n.div_ceil(8))),
                }
            }
        }
    }

    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().expect(TOO_SHORT);
        self.0 = rest;
        *first
    }

    fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at_checked(n).expect(TOO_SHORT);
        self.0 = rest;
        bytes
    }

    /// Reads a number of `width` bytes, from 1 to 8.
    #[inline]
    fn number(&mut self, width: usize) -> u64 {
        if let Some(eight) = self.0.first_chunk() {
            self.0 = &self.0[width..];
            return u64::from_le_bytes(*eight) & (u64::MAX >> (64 - 8 * width));
        }
        let mut eight = [0; 8];
        eight[..width].copy_from_slice(self.bytes(width));
        u64::from_le_bytes(eight)
    }

    fn count(&mut self) -> usize {
        let mut count = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            count |= usize::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                break;
            }
        }
        count
    }

    /// Reads the number of elements of a tuple or list, whose short codes begin with `first`.
    fn short_count(&mut self, first: u8) -> usize {
        match usize::from(first & 7) {
            LONG => LONG + self.count(),
            short => short,
        }
    }
}

const TOO_SHORT: &str = "image: a packed object ends too early";

/// Returns the number of bytes after one of eight codes, from 1 to 8.
fn width(code: u8) -> usize {
    usize::from(code & 7) + 1
}

fn integer<'a>(zigzag: u64) -> Item<'a> {
    let value = zigzag >> 1 ^ (zigzag & 1).wrapping_neg();
    Item::Immediate(value << 4 | 0xF)
}

fn atom<'a>(number: u64) -> Item<'a> {
    Item::Immediate(atom_word(number))
}
