//! The form of a value, encoded in its first word.
//!
//! ```text
//!  object            the slots of its elements, then their boxes
//!  packed object     PACKED or PACKED_WITH n, and more; see [`Packed`](super::Packed)
//!  list of objects   OBJECT n | n words, an image or a packed object | OBJECT n | ...
//!  object with cells WITH_CELLS span | words that the owner of the value understands
//!  large bag         LARGE | words that the owner of the value understands
//!  value with note   NOTE bits | a value of another form
//! ```
//!
//! A *note* is a word of the owner of the value, who takes it away before the form is read.
//!
//! In an object with *cells* the words of a span of elements may change while the value is read, so
//! only the owner of the value loads them. No slot has the low bits of these tags, so an object
//! never begins like another form.

use super::layout::{
    LARGE, NOTE, OBJECT, PACKED, PACKED_WITH, WITH_CELLS, header, header_n, header_tag,
};

/// Forms of the words of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An image.
    Object,
    /// A [`Packed`](super::Packed) object.
    Packed,
    /// An [`ObjectList`](super::ObjectList).
    List,
    /// An object whose elements in this span change in place.
    WithCells(Span),
    /// Objects kept elsewhere; the words after this one tell the owner where.
    Large,
}

impl Form {
    /// Returns the form of a value that begins with this word.
    #[inline]
    pub fn of(first: u64) -> Form {
        if begins_object(first) {
            return Form::Object;
        }
        match header_tag(first) {
            OBJECT => Form::List,
            PACKED | PACKED_WITH => Form::Packed,
            WITH_CELLS => Form::WithCells(Span::from_number(header_n(first))),
            LARGE => Form::Large,
            tag => panic!("image: a value with an unknown tag {tag}"),
        }
    }
}

/// Returns `true` if a value that begins with this word is an image.
#[inline]
pub const fn begins_object(first: u64) -> bool {
    // Slots end in 10 or 11, other words in 00.
    first & 0b10 != 0
}

/// Neighbouring elements of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The index of the first element, from 0.
    pub first: usize,
    /// The number of elements, from 1 to 255.
    pub count: usize,
}

impl Span {
    /// Returns the span of one element.
    pub const fn one(index: usize) -> Self {
        Span {
            first: index,
            count: 1,
        }
    }

    /// Returns the index behind the last element.
    pub const fn end(self) -> usize {
        self.first + self.count
    }

    /// Returns the smallest span that has the elements of both.
    #[must_use]
    pub fn and(self, other: Span) -> Self {
        let first = self.first.min(other.first);
        Span {
            first,
            count: self.end().max(other.end()) - first,
        }
    }

    const fn number(self) -> usize {
        self.first << 8 | self.count
    }

    const fn from_number(number: usize) -> Self {
        Span {
            first: number >> 8,
            count: number & 0xFF,
        }
    }
}

/// Returns the first word of a value that is an object whose elements in `span` change in place.
pub const fn cells_form_word(span: Span) -> u64 {
    header(WITH_CELLS, span.number())
}

/// Returns a note of up to 56 bits.
pub const fn note_word(bits: usize) -> u64 {
    header(NOTE, bits)
}

/// Returns the bits of the note, if a value begins with one.
#[inline]
pub const fn note_bits(first: u64) -> Option<usize> {
    match header_tag(first) {
        NOTE => Some(header_n(first)),
        _ => None,
    }
}

/// The first word of a value whose objects are kept elsewhere.
pub const LARGE_WORD: u64 = header(LARGE, 0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::immediate::{NIL, small_word};

    #[test]
    fn the_first_word_tells() {
        for slot in [
            NIL,
            small_word(-7).unwrap(),
            super::super::layout::box_slot(3),
        ] {
            assert_eq!(Form::of(slot), Form::Object);
        }
        assert_eq!(Form::of(header(OBJECT, 4)), Form::List);
        for (first, count) in [(1, 1), (0, 255), (1 << 40, 2)] {
            let span = Span { first, count };
            assert_eq!(Form::of(cells_form_word(span)), Form::WithCells(span));
        }
        assert_eq!(Form::of(LARGE_WORD), Form::Large);
        assert_eq!(Form::of(header(PACKED_WITH, 4)), Form::Packed);
        for bits in [0, 1, (1 << 56) - 1] {
            assert_eq!(note_bits(note_word(bits)), Some(bits));
        }
        for first in [NIL, LARGE_WORD, cells_form_word(Span::one(1 << 40))] {
            assert_eq!(note_bits(first), None);
        }
        // The tag PACKED is followed by a stream of arbitrary bytes.
        assert_eq!(Form::of(!0 << 8 | u64::from(PACKED)), Form::Packed);
    }
}
