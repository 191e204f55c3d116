//! Objects: the tuples that tables hold, in their images.

use super::host::Host;
use super::layout::{arity, is_immediate};
use super::view::{ImageRef, Place, Slots};
use std::fmt;
use std::marker::PhantomData;

/// An object (a tuple) in its image, made by host `H`.
pub struct Object<'a, H> {
    words: &'a [u64],
    host: PhantomData<H>,
}

impl<'a, H: Host> Object<'a, H> {
    /// The object whose image is `words`, no word less and no word more. O(1).
    ///
    /// # Safety
    /// The words are a copy of what an [`ImageBuilder`](super::ImageBuilder) for host `H` built,
    /// and the resources that its host boxes own are not released while `'a` lasts.
    pub unsafe fn from_words(words: &'a [u64]) -> Self {
        Self::new(words)
    }

    /// Does what [`from_words`](Object::from_words) does, for words that this module vouches for.
    pub(super) fn new(words: &'a [u64]) -> Self {
        debug_assert!(arity(words) <= words.len());
        Self {
            words,
            host: PhantomData,
        }
    }

    /// The image.
    pub fn words(self) -> &'a [u64] {
        self.words
    }

    /// Number of words of the image.
    pub fn len_words(self) -> usize {
        self.words.len()
    }

    /// Number of elements. O(that number).
    pub fn arity(self) -> usize {
        arity(self.words)
    }

    /// Element `i`, counted from 0, or `None` if there are not so many. O(i), as it has to look
    /// whether a box begins before; for all of them, see [`elements`](Object::elements).
    pub fn get(&self, i: usize) -> Option<ImageRef<'a, H>> {
        let slots = self.words.get(..=i)?;
        (i < arity(slots)).then(|| ImageRef::new(self.words, slots[i]))
    }

    /// Element `i`, counted from 0. Panics if there are not so many. O(i).
    pub fn element(self, i: usize) -> ImageRef<'a, H> {
        self.get(i).expect("image: the object has no such element")
    }

    /// The elements in order.
    pub fn elements(self) -> Slots<'a, H> {
        Slots::new(self.words, 0, self.arity())
    }

    /// The term that stands at `place`. O(1).
    ///
    /// # Safety
    /// The place was told by a term of this image, or of a copy of it.
    pub unsafe fn term_at(self, place: Place) -> ImageRef<'a, H> {
        ImageRef::at(self.words, place)
    }

    /// The object itself as a term. O(number of elements).
    pub fn term(self) -> ImageRef<'a, H> {
        ImageRef::whole(self.words, self.arity())
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
