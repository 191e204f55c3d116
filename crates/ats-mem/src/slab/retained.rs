//! Retained memory: kept free for reuse, and prepared before it is needed.
//!
//! The first access to a new chunk can take milliseconds: the system finds a huge page and fills it
//! with zeros, and under virtualisation the host does, too. Code that allocates and frees much
//! memory in turn, like the memtables of tables on disk, retains it in between, and has another
//! thread prepare more.

use super::memory::CHUNK;
use super::pool::SLAB;

/// A reservation: as long as it lives, free memory up to a number of bytes is kept instead of being
/// returned to the system.
///
/// Several reservations add up. They only keep memory that was in use before, or that was
/// [prepared](prepare); and [`trim`](super::trim) returns it nevertheless.
#[derive(Debug)]
pub struct Retained {
    chunks: usize,
}

impl Retained {
    /// Retains `bytes` bytes, rounded up to chunks of 2 MiB.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let chunks = bytes.div_ceil(CHUNK);
        SLAB.keep(|kept| kept + chunks);
        Retained { chunks }
    }
}

impl Drop for Retained {
    fn drop(&mut self) {
        SLAB.keep(|kept| kept - self.chunks);
    }
}

/// Returns the approximate number of bytes in free chunks. Reads one word, which is seldom written.
#[must_use]
pub fn free_bytes() -> usize {
    SLAB.free_chunks() * CHUNK
}

/// Takes memory from the system until this many bytes of whole chunks are free for later
/// allocations. It returns to the system like other free memory, so a [`Retained`] should cover it.
pub fn prepare(bytes: usize) {
    SLAB.prepare(bytes.div_ceil(CHUNK));
}
