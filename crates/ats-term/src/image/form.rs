//! The form of a value, encoded in its first word.
//!
//! ```text
//!  object            the slots of its elements, then their boxes
//!  packed object     PACKED or PACKED_WITH n, and more; see [`Packed`](super::Packed)
//!  list of objects   OBJECT n | n words, an image or a packed object | OBJECT n | ...
//!  object with cell  WITH_CELL i | image
//!  large bag         LARGE | words that the owner of the value understands
//! ```
//!
//! In an object with a *cell* the word of element `i`, counted from 0, is not part of the image
//! proper: it may change while the value is read, so only the owner of the value loads it. No slot
//! has the low bits of these tags, so an object never begins like another form.

use super::layout::{LARGE, OBJECT, PACKED, PACKED_WITH, WITH_CELL, header, header_n, header_tag};

/// Forms of the words of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An image.
    Object,
    /// A [`Packed`](super::Packed) object.
    Packed,
    /// An [`ObjectList`](super::ObjectList).
    List,
    /// An image after this word, in which this element changes in place.
    WithCell(usize),
    /// Objects kept elsewhere; the words after this one tell the owner where.
    Large,
}

impl Form {
    /// Returns the form of a value that begins with this word.
    #[inline]
    pub fn of(first: u64) -> Form {
        // Slots end in 10 or 11.
        if first & 0b10 != 0 {
            return Form::Object;
        }
        match header_tag(first) {
            OBJECT => Form::List,
            PACKED | PACKED_WITH => Form::Packed,
            WITH_CELL => Form::WithCell(header_n(first)),
            LARGE => Form::Large,
            tag => panic!("image: a value with an unknown tag {tag}"),
        }
    }
}

/// Returns the first word of a value that is an object whose element `index`, counted from 0,
/// changes in place.
pub const fn cell_form_word(index: usize) -> u64 {
    header(WITH_CELL, index)
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
        assert_eq!(Form::of(cell_form_word(1)), Form::WithCell(1));
        assert_eq!(Form::of(LARGE_WORD), Form::Large);
        assert_eq!(Form::of(header(PACKED_WITH, 4)), Form::Packed);
        // The tag PACKED is followed by a stream of arbitrary bytes.
        assert_eq!(Form::of(!0 << 8 | u64::from(PACKED)), Form::Packed);
    }
}
