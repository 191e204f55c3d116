//! Access to images in place.

use super::host::{Host, HostBox, HostTag};
use super::layout::{
    BIG, BITS, FLOAT, LIST, MAP, TUPLE, box_slot, bytes_of, content_words, header_n, header_tag,
    is_immediate, slot_offset,
};
use crate::immediate::Immediate;
use std::fmt;
use std::marker::PhantomData;

/// Pseudo slot of an object as a term, which has no box: no image is that long.
pub(super) const WHOLE: u64 = box_slot(usize::MAX);

/// The location of a term in its image. Code that keeps the image can find the term again with
/// [`Object::term_at`](super::Object::term_at).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    slot: u64,
    from: usize,
}

impl Location {
    /// Returns the location of an immediate with this word, which is the same in every image, or
    /// `None` if the word is that of no immediate. O(1).
    #[must_use]
    pub fn of_immediate(word: u64) -> Option<Self> {
        Immediate::from_word(word).map(|_| Location {
            slot: word,
            from: 0,
        })
    }
}

/// A term inside an image.
///
/// As a [`TermRef`](crate::term_ref::TermRef), it can be converted to keys and other encodings.
pub struct ImageRef<'a, H> {
    pub(super) words: &'a [u64],
    pub(super) slot: u64,
    /// Index of the first element of a list that counts, which is always valid: the tails of a list
    /// have no slots of their own. The arity, if the term is the object itself.
    pub(super) from: usize,
    host: PhantomData<H>,
}

impl<'a, H: Host> ImageRef<'a, H> {
    pub(super) fn new(words: &'a [u64], slot: u64) -> Self {
        Self {
            words,
            slot,
            from: 0,
            host: PhantomData,
        }
    }

    /// Returns the term at a location in these words.
    pub(super) fn at(words: &'a [u64], location: Location) -> Self {
        Self {
            from: location.from,
            ..Self::new(words, location.slot)
        }
    }

    /// Returns the object of these words as a term; it has `arity` elements.
    pub(super) fn whole(words: &'a [u64], arity: usize) -> Self {
        Self {
            from: arity,
            ..Self::new(words, WHOLE)
        }
    }

    /// Returns the location of the term. O(1).
    pub fn location(self) -> Location {
        Location {
            slot: self.slot,
            from: self.from,
        }
    }

    /// Returns the slot if the term is an immediate. O(1).
    pub fn immediate(self) -> Option<u64> {
        is_immediate(self.slot).then_some(self.slot)
    }

    /// Returns the value of a small integer. O(1).
    pub fn as_small(self) -> Option<i64> {
        (self.slot & 0xF == 0xF).then_some(self.slot as i64 >> 4)
    }

    /// Returns the value of an integer of 64 bits, small or boxed. O(1).
    pub fn as_i64(self) -> Option<i64> {
        match self.view() {
            View::Immediate(Immediate::Small(value)) => Some(value),
            View::Big {
                negative,
                magnitude,
            } => i64_of_big(negative, magnitude),
            _ => None,
        }
    }

    /// Returns the tail of this list after its first `skip` elements. `at` is its box, which has
    /// that many.
    pub(super) fn list_tail(self, at: usize, skip: usize) -> Self {
        let n = header_n(self.words[at]);
        if skip == n {
            return Self::new(self.words, self.words[at + 1 + n]);
        }
        Self { from: skip, ..self }
    }

    /// Returns the rest of a list after its first `skip` elements, or `None` if this is no list of
    /// that many. O(1).
    pub fn skip(self, skip: usize) -> Option<Self> {
        match self.view() {
            View::List { elements, .. } if skip <= elements.len() => {
                Some(self.list_tail(slot_offset(self.slot), self.from + skip))
            }
            _ => None,
        }
    }

    /// Returns the tag of the term and the slots directly below it, if it is a tuple, list or map.
    pub(super) fn top_slots(self) -> Option<(u8, &'a [u64])> {
        if is_immediate(self.slot) {
            return None;
        }
        if self.slot == WHOLE {
            return Some((TUPLE, &self.words[..self.from]));
        }
        let at = slot_offset(self.slot);
        let head = self.words[at];
        let (tag, end) = (header_tag(head), at + 1 + content_words(head));
        matches!(tag, TUPLE | LIST | MAP).then(|| (tag, &self.words[at + 1 + self.from..end]))
    }

    /// Returns the kind of the term, with its content in place. O(1).
    pub fn view(self) -> View<'a, H> {
        if is_immediate(self.slot) {
            let immediate = Immediate::from_word(self.slot);
            return View::Immediate(immediate.expect("image: a slot with an unknown tag"));
        }
        if self.slot == WHOLE {
            return View::Tuple(self.slots(0, self.from));
        }
        let at = slot_offset(self.slot);
        let head = self.words[at];
        let n = header_n(head);
        let content = &self.words[at + 1..at + 1 + content_words(head)];
        match header_tag(head) {
            TUPLE => View::Tuple(self.slots(at + 1, n)),
            LIST => View::List {
                elements: self.slots(at + 1 + self.from, n - self.from),
                tail: Self::new(self.words, content[n]),
            },
            MAP => View::Map {
                keys: self.slots(at + 1, n),
                values: self.slots(at + 1 + n, n),
            },
            FLOAT => View::Float(f64::from_bits(content[0])),
            BIG => View::Big {
                negative: n & 1 == 1,
                magnitude: bytes_of(content, n >> 1),
            },
            BITS => View::Bits {
                bytes: bytes_of(content, n.div_ceil(8)),
                bits: n,
            },
            tag => {
                let tag = HostTag::from_byte(tag).expect("image: a box with an unknown tag");
                View::Host(HostBox::new(tag, content))
            }
        }
    }

    /// Returns the elements, if the term is a tuple. O(1), and cheaper than a [`view`](Self::view).
    #[inline]
    pub fn tuple(self) -> Option<Slots<'a, H>> {
        if is_immediate(self.slot) {
            return None;
        }
        if self.slot == WHOLE {
            return Some(self.slots(0, self.from));
        }
        let at = slot_offset(self.slot);
        let head = self.words[at];
        (header_tag(head) == TUPLE).then(|| self.slots(at + 1, header_n(head)))
    }

    /// Appends the words of a host box, if the term is one, and returns its tag. If the box owns a
    /// resource, this adds a unit of ownership for the copy. O(words of the box).
    pub fn copy_host_box(self, out: &mut Vec<u64>) -> Option<HostTag> {
        let View::Host(host_box) = self.view() else {
            return None;
        };
        if host_box.tag().owns() {
            H::retain(host_box);
        }
        out.extend_from_slice(host_box.words());
        Some(host_box.tag())
    }

    #[inline]
    fn slots(self, start: usize, len: usize) -> Slots<'a, H> {
        Slots::new(self.words, start, len)
    }
}

/// Returns an integer given as sign and magnitude, if it fits 64 bits.
pub(super) fn i64_of_big(negative: bool, magnitude: &[u8]) -> Option<i64> {
    if magnitude.len() > 8 {
        return None;
    }
    let mut bytes = [0; 8];
    bytes[..magnitude.len()].copy_from_slice(magnitude);
    let magnitude = i128::from(u64::from_le_bytes(bytes));
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

// Written out because a derive would ask for `H: Clone`; the same for the types below.
impl<H> Clone for ImageRef<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for ImageRef<'_, H> {}

impl<H: Host> fmt::Debug for ImageRef<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only one level is shown, because terms can be nested deeper than the stack allows.
        write!(f, "ImageRef({:?})", self.view())
    }
}

/// A term inside an image.
pub enum View<'a, H> {
    /// A small integer, an atom, nil, a local pid or port.
    Immediate(Immediate),
    /// A tuple with its elements.
    Tuple(Slots<'a, H>),
    /// A list of at least one element, and its tail, which is nil if the list is proper and never
    /// a list otherwise.
    List {
        /// The elements.
        elements: Slots<'a, H>,
        /// The term after the last element.
        tail: ImageRef<'a, H>,
    },
    /// A map; key `i` belongs to value `i`.
    Map {
        /// The keys, in the canonical order of images.
        keys: Slots<'a, H>,
        /// The values.
        values: Slots<'a, H>,
    },
    /// A float.
    Float(f64),
    /// An integer that is not a small one.
    Big {
        /// `true` if the integer is negative.
        negative: bool,
        /// The magnitude, least significant byte first, without leading zeros.
        magnitude: &'a [u8],
    },
    /// A bitstring whose bytes are in the image.
    Bits {
        /// The bytes; the unused low bits of the last one are zero.
        bytes: &'a [u8],
        /// Number of bits.
        bits: usize,
    },
    /// A term that only the host understands.
    Host(HostBox<'a, H>),
}

impl<H: Host> fmt::Debug for View<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            View::Immediate(immediate) => immediate.fmt(f),
            View::Tuple(slots) => write!(f, "Tuple({})", slots.len()),
            View::List { elements, .. } => write!(f, "List({})", elements.len()),
            View::Map { keys, .. } => write!(f, "Map({})", keys.len()),
            View::Float(value) => value.fmt(f),
            View::Big {
                negative,
                magnitude,
            } => write!(f, "Big({negative}, {magnitude:x?})"),
            View::Bits { bytes, bits } => write!(f, "Bits({bytes:x?}, {bits})"),
            View::Host(host_box) => host_box.fmt(f),
        }
    }
}

/// Adjacent terms of an image: the elements of a tuple or list, keys or values.
pub struct Slots<'a, H> {
    words: &'a [u64],
    start: usize,
    len: usize,
    host: PhantomData<H>,
}

impl<'a, H: Host> Slots<'a, H> {
    #[inline]
    pub(super) fn new(words: &'a [u64], start: usize, len: usize) -> Self {
        Slots {
            words,
            start,
            len,
            host: PhantomData,
        }
    }

    /// Returns the number of terms.
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns `true` if there are no terms.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns word `i`, counted from 0: that of the term if it is an immediate, else a word that
    /// no immediate has. `None` if there are fewer. O(1).
    #[inline]
    pub fn word(&self, i: usize) -> Option<u64> {
        (i < self.len).then(|| self.words[self.start + i])
    }

    /// Returns the words of all terms.
    #[inline]
    pub(super) fn words(self) -> &'a [u64] {
        &self.words[self.start..self.start + self.len]
    }

    /// Returns term `i`, counted from 0, or `None` if there are fewer. O(1).
    #[inline]
    pub fn get(self, i: usize) -> Option<ImageRef<'a, H>> {
        (i < self.len).then(|| ImageRef::new(self.words, self.words[self.start + i]))
    }

    /// Returns all terms in order.
    pub fn iter(self) -> SlotsIter<'a, H> {
        let slots = &self.words[self.start..self.start + self.len];
        SlotsIter {
            words: self.words,
            slots: slots.iter(),
            host: PhantomData,
        }
    }
}

impl<H> Clone for Slots<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for Slots<'_, H> {}

impl<H: Host> fmt::Debug for Slots<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, H: Host> IntoIterator for Slots<'a, H> {
    type Item = ImageRef<'a, H>;
    type IntoIter = SlotsIter<'a, H>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterator over [`Slots`].
pub struct SlotsIter<'a, H> {
    words: &'a [u64],
    slots: std::slice::Iter<'a, u64>,
    host: PhantomData<H>,
}

impl<'a, H: Host> Iterator for SlotsIter<'a, H> {
    type Item = ImageRef<'a, H>;

    fn next(&mut self) -> Option<Self::Item> {
        self.slots
            .next()
            .map(|&slot| ImageRef::new(self.words, slot))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl<H: Host> ExactSizeIterator for SlotsIter<'_, H> {}

impl<H: Host> DoubleEndedIterator for SlotsIter<'_, H> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.slots
            .next_back()
            .map(|&slot| ImageRef::new(self.words, slot))
    }
}
