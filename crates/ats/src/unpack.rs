//! Room for objects that cannot be read where they are stored.

use ats_term::image::{Host, Object, Stored};

/// Room for objects that cannot be read where they are, because they change in place or are packed.
/// Keep one per thread; most objects do not need it.
#[derive(Debug, Default)]
pub struct UnpackBuffer(Vec<u64>);

/// Room for more words than this is given back.
const KEEP_WORDS: usize = 1 << 13;

impl UnpackBuffer {
    /// No room yet; does not allocate.
    pub const fn new() -> Self {
        UnpackBuffer(Vec::new())
    }

    /// Gives the room back that one huge object took. For after each use.
    #[inline]
    pub fn tidy(&mut self) {
        if self.0.capacity() > KEEP_WORDS {
            self.0 = Vec::new();
        }
    }

    /// The words, empty.
    pub(crate) fn start(&mut self) -> &mut Vec<u64> {
        self.0.clear();
        self.0.shrink_to(KEEP_WORDS);
        &mut self.0
    }

    /// The object, unpacked if it was packed.
    #[inline]
    pub(crate) fn object<'b, 'a: 'b, H: Host>(
        &'b mut self,
        stored: Stored<'a, H>,
    ) -> Object<'b, H> {
        match stored {
            Stored::Image(object) => object,
            Stored::Packed(packed) => packed.unpack(self.start()),
        }
    }
}
