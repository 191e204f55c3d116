//! Where records and nodes live: memory in blocks of a few fixed sizes, densely packed.
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
//! instructions. An empty stack is filled to its half, and a full one is emptied to its half, by one
//! visit to the pool under the lock of the pool.
//!
//! # Giving memory back
//! A pool takes from its fullest runs first, so that the others can drain. A run without a used block
//! goes back to its chunk at once, and may serve another size. A chunk without a used run goes back
//! to the system, except one, which is kept so that a store at the border does not map and unmap all
//! the time. What remains are blocks in the caches of threads, at most 16 KiB for each size, and
//! chunks that these or a few other blocks keep; [`trim`] gives back the free runs of such chunks, and takes
//! back what the system was told about huge pages, or it would fill them again.
//!
//! # Metadata
//! Which blocks of a run are used is a bitmap in the header of the chunk. Unlike a list of free blocks,
//! it needs no access to free memory, gives blocks out by ascending address, and finds a block that
//! is freed twice. In debug builds a second bitmap finds that at once, also in the caches, and freed
//! blocks are overwritten.
//!
//! Where the tool that watches the program wants to see each allocation by itself (Miri, the sanitisers
//! of a fuzzer, valgrind), there are no slabs: under `cfg(miri)` and `cfg(fuzzing)`, hence also with
//! `RUSTFLAGS="--cfg fuzzing"`, everything comes from the allocator of the system.
//!
//! # Invariants
//! - S1. Each block is in exactly one place: with the user, in the cache of one thread, or free in
//!   its run. Its bit is set in the first two cases.
//! - S2. The description of a run that serves a size, bitmap included, is touched only under the lock
//!   of the pool of that size; all else in the header of a chunk only under the lock of the chunks.
//!   Free runs belong to the latter. A pool may take the lock of the chunks, never the other way
//!   round.
//! - S3. The cache of a thread is touched by that thread only.
//! - S4. A run is in a list of its pool exactly if it has both used and free blocks.
//! - S5. A chunk is unmapped only if all of its runs are free, so by S1 no block in it is in use.
//!
//! # Sources
//! Slabs and their caches: J. Bonwick, *The slab allocator*, USENIX Summer 1994; J. Bonwick and
//! J. Adams, *Magazines and vmem*, USENIX 2001. Metadata of aligned segments found by masking:
//! D. Leijen, B. Zorn, L. de Moura, *Mimalloc: free list sharding in action*, APLAS 2019. Groups by
//! fullness: E. Berger et al., *Hoard*, ASPLOS 2000.

mod boxed;
mod cache;
mod chunk;
mod chunks;
mod class;
mod list;
mod memory;
mod pool;
mod system;

pub(crate) use boxed::SlabBox;
use class::Class;
use pool::Slab;
use std::ptr::NonNull;

static SLAB: Slab = Slab::new();

/// Whether everything comes from the allocator of the system.
const WATCHED: bool = cfg!(any(miri, fuzzing, watched));

/// How much memory the blocks of at most [`LARGEST`] bytes take; see [`statistics`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of chunks got from the system and not given back. With huge pages, what is resident.
    pub reserved: usize,
    /// Bytes of blocks in use, by their rounded sizes. Blocks in the caches of threads count.
    pub used: usize,
}

/// Blocks lie below this address, so that 48 bits tell where one is and the rest of a word is free for
/// other things.
pub const ADDRESS_LIMIT: usize = 1 << 48;

/// The largest request that is served from slabs.
pub const LARGEST: usize = class::LARGEST;

/// A block of at least `bytes` bytes, not initialised. Aligned to 8 bytes, to 16 if `bytes` is a positive
/// multiple of 16, and to 64 if it is one of 64; below [`ADDRESS_LIMIT`].
///
/// Amortised O(1), a few nanoseconds; may lock for a moment. Can be called from any thread, also while
/// it ends. Calls [`handle_alloc_error`](std::alloc::handle_alloc_error) if the system has no memory. A block above [`LARGEST`] is
/// one from the allocator of the system.
#[inline]
pub fn allocate(bytes: usize) -> NonNull<u8> {
    match Class::of(bytes) {
        Some(class) if !WATCHED => cache::take(class),
        _ => system::allocate(bytes),
    }
}

/// Gives a block back. Amortised O(1); may lock for a moment. Can be called from any thread, also
/// while it ends.
///
/// # Safety
/// `pointer` comes from [`allocate`] with the same `bytes`, was not freed since, and is not used
/// afterwards.
#[inline]
pub unsafe fn free(pointer: NonNull<u8>, bytes: usize) {
    match Class::of(bytes) {
        // SAFETY: the contract is handed on; the class is that of the allocation.
        Some(class) if !WATCHED => unsafe { cache::put(class, pointer) },
        // SAFETY: the contract is handed on.
        _ => unsafe { system::free(pointer, bytes) },
    }
}

/// A function that frees a block of `bytes` bytes by its pointer alone, for the usual sizes of records.
///
/// A block that a thread retires is mostly in the cache of its processor. When the block is freed, much
/// later, it is cold. A function that knows the size need not look into the block for it.
#[inline]
pub(crate) fn freeing(bytes: usize) -> Option<unsafe fn(*mut u8)> {
    unsafe fn free_sized<const BYTES: usize>(raw: *mut u8) {
        // SAFETY: the caller hands over a block of this size, as with `free`.
        unsafe { free(NonNull::new_unchecked(raw), BYTES) }
    }
    // For 16 bytes, 24, 32 and so on.
    const FUNCTIONS: [unsafe fn(*mut u8); 15] = [
        free_sized::<16>,
        free_sized::<24>,
        free_sized::<32>,
        free_sized::<40>,
        free_sized::<48>,
        free_sized::<56>,
        free_sized::<64>,
        free_sized::<72>,
        free_sized::<80>,
        free_sized::<88>,
        free_sized::<96>,
        free_sized::<104>,
        free_sized::<112>,
        free_sized::<120>,
        free_sized::<128>,
    ];
    // The allocator of the system wants to be told the size it was asked for, not the rounded one.
    if WATCHED {
        return None;
    }
    let units = bytes.div_ceil(8);
    FUNCTIONS.get(units.saturating_sub(2)).copied()
}

/// The bytes that a block for `bytes` bytes takes, for accounting. O(1).
#[inline]
pub fn rounded(bytes: usize) -> usize {
    Class::of(bytes).map_or_else(|| bytes.saturating_add(15) & !15, Class::size)
}

/// Asks the system to back a large allocation by huge pages, for the same reason as chunks have them.
pub(crate) fn prefer_huge_pages(start: *mut u8, bytes: usize) {
    memory::prefer_huge_pages(start, bytes);
}

/// How much memory there is in slabs now. Locks each pool in turn, so the sum is approximate while
/// others allocate.
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

/// The bookkeeping contradicts itself, so a block was freed twice or overwritten from outside.
/// Going on would hand one block to two owners.
#[cold]
fn corrupted(what: &str, pointer: NonNull<u8>) -> ! {
    eprintln!("ats: memory is corrupted: {what}: {pointer:?}");
    std::process::abort()
}

#[cfg(all(test, not(loom)))]
mod tests;
