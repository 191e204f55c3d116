//! Objects: the tuples in tables, as images.

use super::host::Host;
use super::layout::{
    LIST, MAP, TUPLE, arity, boxes, content_words, header_tag, is_immediate, slot_offset,
};
use super::view::{ImageRef, Location, Slots};
use std::fmt;
use std::marker::PhantomData;

/// An object (a tuple) as an image, made by host `H`.
pub struct Object<'a, H> {
    words: &'a [u64],
    host: PhantomData<H>,
}

impl<'a, H: Host> Object<'a, H> {
    /// Wraps the complete image of an object. O(1).
    ///
    /// # Safety
    /// The words must be a copy of words that an [`ImageBuilder`](super::ImageBuilder) for host `H`
    /// built, and the resources that its host boxes own must not be released during `'a`.
    pub unsafe fn from_words(words: &'a [u64]) -> Self {
        Self::new(words)
    }

    /// Wraps words like [`from_words`](Object::from_words), for words that this module guarantees.
    pub(super) fn new(words: &'a [u64]) -> Self {
        debug_assert!(arity(words) <= words.len());
        Self {
            words,
            host: PhantomData,
        }
    }

    /// Returns the words of the image.
    pub fn words(self) -> &'a [u64] {
        self.words
    }

    /// Returns the number of words of the image.
    pub fn len_words(self) -> usize {
        self.words.len()
    }

    /// Returns the number of elements. O(that number).
    pub fn arity(self) -> usize {
        arity(self.words)
    }

    /// Returns element `i`, counted from 0, or `None` if there are fewer. O(i), because the search
    /// for the first box may have to pass all slots before; for all of them, see
    /// [`elements`](Object::elements).
    pub fn get(&self, i: usize) -> Option<ImageRef<'a, H>> {
        let slots = self.words.get(..=i)?;
        (i < arity(slots)).then(|| ImageRef::new(self.words, slots[i]))
    }

    /// Returns element `i`, counted from 0. Panics if there are fewer. O(i).
    pub fn element(self, i: usize) -> ImageRef<'a, H> {
        self.get(i).expect("image: the object has no such element")
    }

    /// Returns the elements in order.
    pub fn elements(self) -> Slots<'a, H> {
        Slots::new(self.words, 0, self.arity())
    }

    /// Returns the term at `location`. O(1).
    ///
    /// # Safety
    /// The location must have been returned by a term of this image, or of a copy of it.
    pub unsafe fn term_at(self, location: Location) -> ImageRef<'a, H> {
        ImageRef::at(self.words, location)
    }

    /// Returns the index of the box of element `i` in the words of the image, or `None` if the
    /// element is an immediate. Panics if there is no such element. O(1).
    pub fn element_box(self, i: usize) -> Option<usize> {
        let slot = self.words[i];
        (!is_immediate(slot)).then(|| slot_offset(slot))
    }

    /// The boxes of the image in order: one linear scan. O(number of elements and boxes).
    pub fn boxes(self) -> impl Iterator<Item = ImageBox> {
        boxes(self.words).map(move |at| ImageBox::at(self.words, at))
    }

    /// The object itself as a term. O(number of elements).
    pub fn term(self) -> ImageRef<'a, H> {
        ImageRef::whole(self.words, self.arity())
    }
}

/// A box of an image: its header, and the content behind that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageBox {
    /// The kind of its content.
    pub kind: BoxKind,
    /// The index of the header in the words of the image.
    pub at: usize,
    /// The number of words of content.
    pub len: usize,
}

/// The kinds of boxes, told by their content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxKind {
    /// The elements of a tuple.
    Tuple,
    /// The elements of a list, then its tail.
    List,
    /// The keys of a map, then its values.
    Map,
    /// Bytes without terms: a float, an integer, a bitstring, or words of the host. The header has
    /// their number.
    Leaf,
}

impl ImageBox {
    fn at(words: &[u64], at: usize) -> Self {
        let header = words[at];
        ImageBox {
            kind: match header_tag(header) {
                TUPLE => BoxKind::Tuple,
                LIST => BoxKind::List,
                MAP => BoxKind::Map,
                _ => BoxKind::Leaf,
            },
            at,
            len: content_words(header),
        }
    }
}

/// The element slots of an object all of whose elements are immediates, or `None`. O(number of
/// elements).
pub fn all_immediate<H: Host>(object: Object<'_, H>) -> Option<&[u64]> {
    object
        .words
        .iter()
        .all(|slot| is_immediate(*slot))
        .then_some(object.words)
}

// Written out because a derive would ask for `H: Clone`.
impl<H> Clone for Object<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for Object<'_, H> {}

impl<H: Host> fmt::Debug for Object<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({:x?})", self.words)
    }
}
