//! An object in its stored form: as an image, or packed.

use super::form::Form;
use super::host::Host;
use super::object::Object;
use super::packed::Packed;
use super::view::ImageRef;

/// An object that is read in place if its image is stored, and otherwise unpacked first.
pub enum Stored<'a, H> {
    /// The image itself.
    Image(Object<'a, H>),
    /// A packed object.
    Packed(Packed<'a, H>),
}

impl<'a, H: Host> Stored<'a, H> {
    /// Wraps the complete words of a stored object. O(1).
    ///
    /// # Safety
    /// The words must be a copy of words that an [`ImageBuilder`](super::ImageBuilder) for host `H`
    /// built, or that a [`Packer`](super::Packer) made from such words, and the resources that its
    /// host boxes own must not be released during `'a`.
    #[inline]
    pub unsafe fn from_words(words: &'a [u64]) -> Self {
        Self::new(words)
    }

    /// Wraps words like [`from_words`](Stored::from_words), for words that this module guarantees.
    #[inline]
    pub(super) fn new(words: &'a [u64]) -> Self {
        match words.first() {
            Some(&first) if Form::of(first) == Form::Packed => Stored::Packed(Packed::new(words)),
            _ => Stored::Image(Object::new(words)),
        }
    }

    /// Returns the words in their stored form.
    #[inline]
    pub fn words(self) -> &'a [u64] {
        match self {
            Stored::Image(object) => object.words(),
            Stored::Packed(packed) => packed.words(),
        }
    }

    /// Returns the object. If it is packed, its image is appended to `room` and read there:
    /// O(size). Otherwise O(1).
    #[inline]
    pub fn object<'r>(self, room: &'r mut Vec<u64>) -> Object<'r, H>
    where
        'a: 'r,
    {
        match self {
            Stored::Image(object) => object,
            Stored::Packed(packed) => packed.unpack(room),
        }
    }

    /// Returns element `i` of the object, counted from 0, or `None` if it has fewer. For a packed
    /// object, the elements before it are unpacked, too, but not those after it.
    #[inline]
    pub fn get<'r>(self, i: usize, room: &'r mut Vec<u64>) -> Option<ImageRef<'r, H>>
    where
        'a: 'r,
    {
        match self {
            Stored::Image(object) => object.get(i),
            Stored::Packed(packed) => packed.unpack_first(i.saturating_add(1), room).get(i),
        }
    }
}

// Written out because a derive would ask for `H: Clone`.
impl<H> Clone for Stored<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for Stored<'_, H> {}

impl<'a, H> From<Object<'a, H>> for Stored<'a, H> {
    fn from(object: Object<'a, H>) -> Self {
        Stored::Image(object)
    }
}
