//! The memory of records and nodes: blocks of a few fixed sizes, densely packed.
//!
//! A store of a few million records is much larger than the caches, so finding a record costs the
//! cache misses on the path to it, and each of them may miss in the TLB as well, which is the more
//! expensive half under virtualisation. So blocks are packed densely in *chunks* of 2 MiB for which
//! the system is asked to use huge pages. Records inserted one after the other are adjacent.
//!
//! ```text
//! chunk  2 MiB, aligned       header | run 0 (the rest of its 64 KiB) | run 1 | ... | run 31
//! run    64 KiB               blocks of one size, or free
//! pool   one for each size    its runs that have free blocks, grouped by how full they are
//! cache  one for each thread  a short stack of free blocks of each size
//! ```
//!
//! Allocation pops from the stack of the thread, freeing pushes; neither takes more than a few
//! instructions. One visit to the pool, under its lock, half fills an empty stack, or half empties
//! a full one.
//!
//! # Returning memory
//! A pool takes from its fullest runs first, so that the others can drain. A run without used
//! blocks returns to its chunk at once, and may serve another size. A chunk without used runs
//! returns to the system, except one, which is kept so that a store at the limit does not map and
//! unmap all the time, and those that [`Retained`] reserves. The slab still keeps blocks in the
//! caches of threads, at most 16 KiB or two blocks for each size, and chunks in which these or a
//! few other blocks are; [`trim`] purges the free runs of such chunks, and withdraws the advice to
//! use huge pages, or the system would fill them again.
//!
//! Short-lived blocks have a class and chunks of their own. If they were mixed with long-lived
//! ones, because both are allocated alternately, their end would leave each run half used, and no
//! memory would be returned.
//!
//! # Metadata
//! A bitmap in the header of the chunk marks the used blocks of a run. Unlike a free list, it needs
//! no access to free memory, returns blocks by ascending address, and detects double frees. In
//! debug builds a second bitmap detects them at once, even in the caches, and freed blocks are
//! overwritten.
//!
//! Tools that must see each allocation (Miri, the sanitisers of a fuzzer, valgrind) get no slabs:
//! under `cfg(miri)` and `cfg(fuzzing)`, hence also with `RUSTFLAGS="--cfg fuzzing"`, every block
//! comes from the system allocator.
//!
//! # Invariants
//! - SLAB-1. Each block is in exactly one state: with the user, in the cache of one thread, or free
//!   in its run. Its bit is set in the first two cases.
//! - SLAB-2. The description of a run that serves a size, including its bitmap, is accessed only
//!   under the lock of that size's pool; the rest of a chunk's header only under the lock of the
//!   chunks. Free runs belong to the latter. A thread with the lock of a pool may take the lock of
//!   the chunks, never the other way round.
//! - SLAB-3. Only its own thread accesses the cache of a thread.
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

/// Returns the amount of memory in slabs. Locks each pool in turn, so the sum is approximate while
/// others allocate.
pub fn statistics() -> Statistics {
    SLAB.statistics()
}

/// Returns memory to the system now: empties the cache of the calling thread, unmaps the reserve
/// chunk, and purges the free runs of chunks of which at least half is free.
///
/// Meant to be called after large deletions. O(chunks); several system calls.
pub fn trim() {
    cache::flush();
    SLAB.trim();
}
