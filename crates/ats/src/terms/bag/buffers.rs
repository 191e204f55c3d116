//! The buffers for changes of bags.

use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::pack_for_store;
use ats_term::image::{Built, Host, HostTerm, ImageBuilder, Object, ObjectListBuilder, Packer};

/// Scratch buffers for changes of bags.
pub(crate) struct Buffers<H: Host> {
    pub(super) list: ObjectListBuilder<H>,
    /// Buffer for the stored objects.
    pub(super) unpacked: UnpackBuffer,
    /// Buffer for the objects that are compared with the stored objects.
    pub(super) second_unpacked: UnpackBuffer,
    /// Buffer for the bytes of an object that are hashed.
    pub(super) content: Vec<u8>,
}

impl<H: Host> Buffers<H> {
    /// Returns empty buffers. Does not allocate.
    pub(crate) const fn new() -> Self {
        Buffers {
            list: ObjectListBuilder::new(),
            unpacked: UnpackBuffer::new(),
            second_unpacked: UnpackBuffer::new(),
            content: Vec::new(),
        }
    }

    /// Releases objects that were built and not stored, and buffers that a huge object has
    /// enlarged.
    pub(crate) fn tidy(&mut self) {
        self.list.tidy();
        self.unpacked.tidy();
        self.second_unpacked.tidy();
        if self.content.capacity() > KEEP_BYTES {
            self.content = Vec::new();
        }
    }
}

/// Largest capacity of a buffer of contents that is retained; a larger buffer is freed.
pub(super) const KEEP_BYTES: usize = 1 << 16;

/// A newly built object, to be inserted.
pub(crate) struct NewObject<'a, T: HostTerm> {
    /// `true` if the table packs its objects.
    pub(crate) packs: bool,
    pub(crate) image: &'a mut ImageBuilder<T>,
    pub(crate) packer: &'a mut Packer,
}

impl<T: HostTerm> NewObject<'_, T> {
    pub(crate) fn object(&self) -> Object<'_, T::Host> {
        self.image.object()
    }

    /// Takes the object in the form in which the table stores it.
    pub(crate) fn take(&mut self) -> Built<'_, T::Host> {
        pack_for_store(self.image.take(), self.packer, self.packs)
    }
}
