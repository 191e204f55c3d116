//! Images that belong to a specification.

use ats_term::image::{Built, Host, Object, release_all};
use std::marker::PhantomData;

/// The image of a tuple, with the resources that it refers to.
///
/// # Invariants
/// - O1. The words are a copy of what an image builder for host `H` built, and nothing else holds the units
///   of ownership that they stand for.
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

    pub(crate) fn object(&self) -> Object<'_, H> {
        // SAFETY: O1; the resources are released when `self` is dropped, which outlives the borrow.
        unsafe { Object::from_words(&self.words) }
    }

    /// Returns `true` if it refers to any resources.
    pub(crate) fn owns(&self) -> bool {
        self.owns
    }

    pub(crate) fn len_words(&self) -> usize {
        self.words.len()
    }
}

impl<H: Host> Drop for OwnedImage<H> {
    fn drop(&mut self) {
        // SAFETY: O1, and no code reads the words after this call.
        unsafe { release_all::<H>(&self.words) };
    }
}
