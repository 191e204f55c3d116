//! Memory that is kept free for what comes next, and made ready before it is needed.
//!
//! The first access to a new chunk can take milliseconds: the system finds a huge page and fills it
//! with zeros, and under virtualisation the host does, too. Code that takes and frees much memory
//! in turn, as the memtables of tables on disk do, keeps it meanwhile, and has another thread
//! prepare more.

use super::memory::CHUNK;
use super::pool::SLAB;

/// Keeps free memory up to a number of bytes as long as this lives, instead of giving it back to
/// the system.
///
/// Several of them add up. It is only memory that was in use before, or that was
/// [prepared](prepare); and [`trim`](super::trim) gives it back nevertheless.
#[derive(Debug)]
pub struct Retained {
    chunks: usize,
}

impl Retained {
    /// Keeps so many bytes, rounded up to chunks of 2 MiB.
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

/// The approximate number of bytes of whole chunks that are free. Reads one word, which is seldom
/// written.
#[must_use]
pub fn free_bytes() -> usize {
    SLAB.free_chunks() * CHUNK
}

/// Takes memory from the system until so many bytes of whole chunks are free: what takes memory
/// next finds it there. It goes back to the system as other free memory does, so a [`Retained`]
/// should be there for it.
pub fn prepare(bytes: usize) {
    SLAB.prepare(bytes.div_ceil(CHUNK));
}
