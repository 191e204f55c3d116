//! Buffers for objects that cannot be read in place.

use ats_term::image::{Host, Object, Stored};

/// A buffer for an object that cannot be read in place, because it is packed or changes in place.
/// Each thread should reuse one; most objects do not need it.
#[derive(Debug, Default)]
pub struct UnpackBuffer(Vec<u64>);

/// Maximum capacity that is retained, in words.
const KEEP_WORDS: usize = 1 << 13;

impl UnpackBuffer {
    /// Returns an empty buffer. Does not allocate.
    pub const fn new() -> Self {
        UnpackBuffer(Vec::new())
    }

    /// Frees the buffer if a huge object has enlarged it. Called after each use.
    #[inline]
    pub fn tidy(&mut self) {
        if self.0.capacity() > KEEP_WORDS {
            self.0 = Vec::new();
        }
    }

    /// Returns the buffer, empty.
    pub(crate) fn start(&mut self) -> &mut Vec<u64> {
        self.0.clear();
        self.0.shrink_to(KEEP_WORDS);
        &mut self.0
    }

    /// Returns the object, unpacked if it was packed.
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
