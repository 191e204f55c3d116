//! The memory of records and nodes: blocks of a few fixed sizes, densely packed.
//!
//! A store of a few million records is much larger than the caches, so finding a record costs the
//! misses on the way to it, and each of them may miss in the TLB as well, which under
//! virtualisation is the dearer half. Blocks therefore lie densely in *chunks* of 2 MiB for which
//! the system is asked to use huge pages. Records inserted one after the other lie side by side.
//!
//! ```text
//! chunk  2 MiB, aligned       header | run 0 (the rest of its 64 KiB) | run 1 | ... | run 31
//! run    64 KiB               blocks of one size, or free
//! pool   one for each size    its runs that have free blocks, grouped by how full they are
//! cache  one for each thread  a short stack of free blocks of each size
//! ```
//!
//! Allocating pops from the stack of the thread, freeing pushes; neither is more than a few
//! instructions. An empty stack is filled to its half, and a full one is emptied to its half, by
//! one visit to the pool under the lock of the pool.
//!
//! # Giving memory back
//! A pool takes from its fullest runs first, so that the others can drain. A run without a used
//! block goes back to its chunk at once, and may serve another size. A chunk without a used run
//! goes back to the system, except one, which is kept so that a store at the border does not map
//! and unmap all the time, and as many more as there are [`Retained`] for. It still keeps blocks in
//! the caches of threads, at most 16 KiB or two blocks for each size, and chunks that these or a
//! few other blocks keep; [`trim`] gives back the free runs of such chunks, and takes back what the
//! system was told about huge pages, or it would fill them again.
//!
//! Blocks for what is there for a while only have a class and chunks of their own. Were they mixed
//! with what stays, as they are when both are allocated in turn, then their end would leave half of
//! each run, and nothing would go back.
//!
//! # Metadata
//! Which blocks of a run are used is a bitmap in the header of the chunk. Unlike a list of free
//! blocks, it needs no access to free memory, gives blocks out by ascending address, and finds a
//! block that is freed twice. In debug builds a second bitmap finds that at once, also in the
//! caches, and freed blocks are overwritten.
//!
//! Where the tool that watches the program wants to see each allocation by itself (Miri, the
//! sanitisers of a fuzzer, valgrind), there are no slabs: under `cfg(miri)` and `cfg(fuzzing)`,
//! hence also with `RUSTFLAGS="--cfg fuzzing"`, everything comes from the allocator of the system.
//!
//! # Invariants
//! - SLAB-1. Each block is in exactly one place: with the user, in the cache of one thread, or free
//!   in its run. Its bit is set in the first two cases.
//! - SLAB-2. The description of a run that serves a size, bitmap included, is touched only under
//!   the lock of the pool of that size; all else in the header of a chunk only under the lock of
//!   the chunks. Free runs belong to the latter. A pool may take the lock of the chunks, never the
//!   other way round.
//! - SLAB-3. The cache of a thread is touched by that thread only.
//! - SLAB-4. A run is in a list of its pool exactly if it has both used and free blocks.
//! - SLAB-5. A chunk is unmapped only if all of its runs are free, so by SLAB-1 no block in it is
//!   in use.
//!
//! # Sources
//! Slabs and their caches: J. Bonwick, *The slab allocator*, USENIX Summer 1994; J. Bonwick and
//! J. Adams, *Magazines and vmem*, USENIX 2001. Metadata of aligned segments found by masking:
//! D. Leijen, B. Zorn, L. de Moura, *Mimalloc: free list sharding in action*, APLAS 2019. Groups by
//! fullness: E. Berger et al., *Hoard*, ASPLOS 2000.

mod block;
mod boxed;
mod cache;
mod chunk;
mod chunks;
mod class;
mod corruption;
mod list;
mod memory;
mod pool;
mod retained;
mod shared;
mod system;
#[cfg(all(test, not(loom)))]
mod tests;

pub use block::{allocate, block_size, free};
pub(crate) use block::{allocate_passing, free_function, free_passing};
pub use boxed::SlabBox;
pub use class::LARGEST;
pub use memory::ADDRESS_LIMIT;
pub(crate) use memory::prefer_huge_pages;
use pool::SLAB;
pub use pool::Statistics;
pub use retained::{Retained, free_bytes, prepare};
pub use shared::SharedSlice;

/// The amount of memory that is in slabs now. Locks each pool in turn, so the sum is approximate
/// while others allocate.
pub fn statistics() -> Statistics {
    SLAB.statistics()
}

/// Gives memory back to the system now: empties the cache of the calling thread, unmaps the chunk
/// kept in reserve, and in chunks of which at least half is free, lets go of that half.
///
/// For after the deletion of something large. O(chunks); several system calls.
pub fn trim() {
    cache::flush();
    SLAB.trim();
}
