//! Objects in fewer words than their image, for tables that should be small rather than fast.
//!
//! A *packed* object is a stream of bytes in which each term, with everything below it, takes the
//! position of its slot. A number takes the bytes it needs, a list of characters one byte for each,
//! and there are no offsets. It cannot be read in place: [`Packed::unpack`] restores the
//! image, word for word.
//!
//! ```text
//!  PACKED, in one byte | stream, padded with zeros to a whole word
//!  PACKED_WITH n | n words of stream | host box | host box | ...
//! ```
//!
//! Without host boxes, the stream begins in the first word, after its tag; on big-endian machines,
//! the second form is used even without boxes. Host boxes are unchanged, in the order of their
//! slots, so that a scan finds their resources as in an image (IMAGE-5). In an object list, either
//! form may follow the word OBJECT instead of an image.
//!
//! # Stream
//! The object itself is a tuple. Each term begins with a code:
//!
//! ```text
//!  code            rest                                term
//!  0x00 .. 0x7F                                        the small integer 0 .. 127
//!  0x80 .. 0x9F    1 byte                              small integer, 13 bits, low bits in the rest
//!  0xA0 .. 0xBF    2 bytes                             small integer, 21 bits
//!  0xC0 .. 0xC7    1 .. 8 bytes                        small integer
//!  0xC8 .. 0xCF    1 byte                              atom, 11 bits of its number
//!  0xD0 .. 0xD7    2 bytes                             atom, 19 bits of its number
//!  0xD8 .. 0xDF    1 .. 8 bytes                        another immediate: its word
//!  0xE0 .. 0xE7    1 .. 8 bytes                        float: the high bytes of its bits
//!  0xE8 .. 0xEF    (count,) elements                   tuple of 0 .. 6, or of 7 + count
//!  0xF0 .. 0xF7    (count,) elements                   list of 0 .. 6, or of 7 + count, ends with nil
//!  0xF8                                                nil
//!  0xF9            count, elements, tail               list, does not end with nil
//!  0xFA            count, bytes                        list of integers 0 .. 255, ends with nil
//!  0xFB            count, bytes                        binary
//!  0xFC            count of bits, bytes                bitstring
//!  0xFD            count, keys, values                 map
//!  0xFE            n as in the header of BIG, bytes    integer that is not small
//!  0xFF                                                the next host box
//! ```
//!
//! Small integers are zigzag coded (0, -1, 1, -2, ...) except in the first row. Numbers of several
//! bytes have the least significant one first; a count has 7 bits in each byte, and the eighth is
//! set if more bytes follow.
//!
//! # Savings
//! Words of an image and of its packed form:
//!
//! | object | image | packed |
//! |---|---|---|
//! | `{Int, Int}`, integers below 2^20 | 2 | 1 |
//! | `{Int, Int}`, integers below 2^28 | 2 | 2 |
//! | five integers below 2^12 | 5 | 2 |
//! | `{Binary of 16 bytes, Int}` | 5 | 3 |
//! | `{Int, Binary of 100 bytes}` | 16 | 14 |
//! | `{Int, String of 40 characters}` | 44 | 6 |
//! | `{Int, Float, Float}`, one of them short | 7 | 3 |
//! | `{Int, Map of 8 atoms to integers}` | 19 | 6 |
//! | `{Int, property list of 4, nested}` | 36 | 8 |
//!
//! # Invariants
//! - PACKED-1. Unpacking restores the words that were packed, so all invariants of [images](super)
//!   hold.
//! - PACKED-2. A packed object has fewer words than its image, and its image fewer than 2^32.

mod code;
mod pack;
mod stream;
#[cfg(test)]
mod tests;
mod unpack;

pub use pack::Packer;

use super::form::Form;
use super::host::Host;
use super::layout::{PACKED, bytes_of, header_n, header_tag};
use super::object::Object;
use std::marker::PhantomData;
use stream::Stream;

/// A packed object, made by host `H`.
pub struct Packed<'a, H> {
    words: &'a [u64],
    host: PhantomData<H>,
}

impl<'a, H: Host> Packed<'a, H> {
    /// Wraps the complete words of a packed object. O(1).
    ///
    /// # Safety
    /// The words must be a copy of words that a [`Packer`] made from an object of host `H` (and did
    /// not leave unpacked), and the resources that its host boxes own must not be released during
    /// `'a`.
    pub unsafe fn from_words(words: &'a [u64]) -> Self {
        Self::new(words)
    }

    /// Wraps words like [`from_words`](Packed::from_words), for words that this module guarantees.
    pub(super) fn new(words: &'a [u64]) -> Self {
        debug_assert!(
            words
                .first()
                .is_some_and(|&word| Form::of(word) == Form::Packed)
        );
        Self {
            words,
            host: PhantomData,
        }
    }

    /// Appends the image of the object to `room`, and returns the object there. O(size); allocates
    /// only if `room` is too small.
    pub fn unpack<'r>(self, room: &'r mut Vec<u64>) -> Object<'r, H>
    where
        'a: 'r,
    {
        self.unpack_first(usize::MAX, room)
    }

    /// Unpacks like [`unpack`](Packed::unpack), but all elements after the first `count` are nil.
    /// O(number of elements + size of the first `count`).
    pub fn unpack_first<'r>(self, count: usize, room: &'r mut Vec<u64>) -> Object<'r, H>
    where
        'a: 'r,
    {
        let start = room.len();
        let (stream, host_boxes) = parts(self.words);
        unpack::unpack(stream, host_boxes, count, room);
        Object::new(&room[start..])
    }

    /// Returns the words.
    pub fn words(self) -> &'a [u64] {
        self.words
    }
}

// Written out because a derive would ask for `H: Clone`.
impl<H> Clone for Packed<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for Packed<'_, H> {}

/// Splits a packed object into its stream and its host boxes.
fn parts(words: &[u64]) -> (Stream<'_>, &[u64]) {
    let (first, rest) = words.split_first().expect("image: no packed object");
    if header_tag(*first) == PACKED {
        let bytes = bytes_of(words, size_of_val(words));
        return (Stream::new(&bytes[1..]), &[]);
    }
    let (stream, host_boxes) = rest.split_at(header_n(*first));
    let bytes = bytes_of(stream, size_of_val(stream));
    (Stream::new(bytes), host_boxes)
}
