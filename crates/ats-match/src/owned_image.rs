//! Images that belong to a specification.

use ats_term::image::{Built, Host, Object, release_all};
use std::marker::PhantomData;

/// The image of a tuple, with the resources that it refers to.
///
/// # Invariants
/// - OWNED_IMAGE-1. The words are a copy of an image that a builder for host `H` made, perhaps with
///   other immediates, and nothing else holds the units of ownership that they stand for.
pub(crate) struct OwnedImage<H: Host> {
    words: Box<[u64]>,
    owns: bool,
    host: PhantomData<fn() -> H>,
}

impl<H: Host> OwnedImage<H> {
    pub(crate) fn new(built: &Built<'_, H>) -> Self {
        OwnedImage {
            words: built.words().into(),
            owns: built.owns(),
            host: PhantomData,
        }
    }

    /// A copy of an image that owns nothing.
    pub(crate) fn of_words(words: &[u64]) -> Self {
        OwnedImage {
            words: words.into(),
            owns: false,
            host: PhantomData,
        }
    }

    /// Overwrites the words from `at` on with those that an image of the same layout has there.
    /// Neither image may own anything. Panics if there are fewer words.
    #[inline]
    pub(crate) fn overwrite(&mut self, at: usize, words: &[u64]) {
        debug_assert!(!self.owns);
        let old = &mut self.words[at..][..words.len()];
        // Most are one word, which a call would take longer for.
        for (old, new) in old.iter_mut().zip(words) {
            *old = *new;
        }
    }

    pub(crate) fn object(&self) -> Object<'_, H> {
        // SAFETY: the words are a copy of words that an image builder for host `H` built
        // (OWNED_IMAGE-1). Their resources are released when `self` is dropped, which outlives the
        // borrow.
        unsafe { Object::from_words(&self.words) }
    }

    /// Returns `true` if the image refers to any resources.
    pub(crate) fn owns(&self) -> bool {
        self.owns
    }

    pub(crate) fn len_words(&self) -> usize {
        self.words.len()
    }
}

impl<H: Host> Drop for OwnedImage<H> {
    fn drop(&mut self) {
        // SAFETY: the words were built for host `H` and hold the only units of their resources
        // (OWNED_IMAGE-1), and no code reads them after this call.
        unsafe { release_all::<H>(&self.words) };
    }
}
