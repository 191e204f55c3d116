//! The buffers for changes of bags.

use crate::unpack::UnpackBuffer;
use crate::value::pack_for_store;
use ats_term::image::{Built, Host, HostTerm, ImageBuilder, Object, ObjectListBuilder, Packer};

/// Buffers to change bags with.
pub(crate) struct Buffers<H: Host> {
    pub(super) list: ObjectListBuilder<H>,
    /// For objects that are there.
    pub(super) unpacked: UnpackBuffer,
    /// For objects they are compared with.
    pub(super) second_unpacked: UnpackBuffer,
    /// For what an object is hashed by.
    pub(super) content: Vec<u8>,
}

impl<H: Host> Buffers<H> {
    /// Does not allocate.
    pub(crate) const fn new() -> Self {
        Buffers {
            list: ObjectListBuilder::new(),
            unpacked: UnpackBuffer::new(),
            second_unpacked: UnpackBuffer::new(),
            content: Vec::new(),
        }
    }

    /// Gives back what was built and not stored, and buffers that something huge blew up.
    pub(crate) fn tidy(&mut self) {
        self.list.tidy();
        self.unpacked.tidy();
        self.second_unpacked.tidy();
        if self.content.capacity() > KEEP_BYTES {
            self.content = Vec::new();
        }
    }
}

/// A buffer for contents with more room than this is given back.
pub(super) const KEEP_BYTES: usize = 1 << 16;

/// An object that was just built, to be inserted.
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

    /// The objects in the form in which the table stores them.
    pub(crate) fn take(&mut self) -> Built<'_, T::Host> {
        pack_for_store(self.image.take(), self.packer, self.packs)
    }
}
