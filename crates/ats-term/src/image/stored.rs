//! An object as it is stored: as an image, or packed.

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
    /// The object whose words are `words`, no word less and no word more. O(1).
    ///
    /// # Safety
    /// The words are a copy of what an [`ImageBuilder`](super::ImageBuilder) for host `H` built, or
    /// a [`Packer`](super::Packer) made of that, and the resources that its host boxes own are not
    /// released while `'a` lasts.
    #[inline]
    pub unsafe fn from_words(words: &'a [u64]) -> Self {
        Self::new(words)
    }

    /// Does what [`from_words`](Stored::from_words) does, for words that this module vouches for.
    #[inline]
    pub(super) fn new(words: &'a [u64]) -> Self {
        match words.first() {
            Some(&first) if Form::of(first) == Form::Packed => Stored::Packed(Packed::new(words)),
            _ => Stored::Image(Object::new(words)),
        }
    }

    /// The words as they are stored.
    #[inline]
    pub fn words(self) -> &'a [u64] {
        match self {
            Stored::Image(object) => object.words(),
            Stored::Packed(packed) => packed.words(),
        }
    }

    /// The object. If it is packed, its image is appended to `room` to be read there: O(size). Else
    /// O(1).
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

    /// Element `i` of the object, counted from 0, or `None` if it has not so many. If the object is
    /// packed, what is before the element is unpacked too, but not what is behind it.
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
