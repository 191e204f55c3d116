//! A chunk: a header that describes 32 runs, and the runs.

use super::class::{Class, SMALLEST};
use super::corruption::abort_corrupted;
use super::list::{Linked, Links};
use super::memory::{self, CHUNK};
use std::ptr::NonNull;

/// Size of a run in bytes.
pub(super) const RUN: usize = 64 << 10;
/// Number of runs of a chunk.
pub(super) const RUNS: usize = CHUNK / RUN;
/// Number of groups of runs, by fullness.
pub(super) const GROUPS: usize = 8;

/// Number of bits of a bitmap's word.
const BITS: usize = u64::BITS as usize;

/// The header of a chunk. All zeros, as mapped by the system, are valid: no run is free yet.
#[repr(C)]
pub(super) struct Chunk {
    links: Links<Chunk>,
    /// The free runs, one bit each.
    pub free: u32,
    /// The free runs that take no memory, one bit each.
    pub purged: u32,
    runs: [Run; RUNS],
    /// One bit for each unit of the smallest size, in which at most one block starts, set while
    /// that block is with the user; for debug builds. The only part of a chunk that is accessed
    /// without a lock, hence atomic.
    #[cfg(debug_assertions)]
    live: [std::sync::atomic::AtomicU64; CHUNK / SMALLEST / BITS],
}

/// Offset at which the blocks of run 0 begin.
const HEADER: usize = size_of::<Chunk>().next_multiple_of(64);

const _: () = assert!(HEADER < RUN);
const _: () = assert!(RUNS == u32::BITS as usize);

// SAFETY: `links` returns the field of that name, which is always the first one.
unsafe impl Linked for Chunk {
    unsafe fn links(chunk: NonNull<Self>) -> *mut Links<Self> {
        // SAFETY: the caller promises that the chunk is live, hence mapped (SLAB-5).
        unsafe { &raw mut (*chunk.as_ptr()).links }
    }
}

impl Chunk {
    /// Maps a new chunk, whose runs are all free. The first access makes the system find a huge
    /// page and fill it with zeros, which takes a fraction of a millisecond, or several under
    /// virtualisation, where the host must find memory, too.
    pub(super) fn map() -> Option<NonNull<Chunk>> {
        let chunk = memory::map()?.cast::<Chunk>();
        // SAFETY: the memory is new, large enough and zeroed, which makes a valid header.
        unsafe { (*chunk.as_ptr()).free = u32::MAX };
        Some(chunk)
    }

    /// Returns the chunk that holds a block or the description of a run.
    pub(super) fn of<T>(inside: NonNull<T>) -> NonNull<Chunk> {
        let start = inside
            .as_ptr()
            .map_addr(|address| address & !(CHUNK - 1))
            .cast::<Chunk>();
        // SAFETY: no chunk contains the page at address 0.
        unsafe { NonNull::new_unchecked(start) }
    }

    /// Returns the description of a run.
    ///
    /// # Safety
    /// The chunk must be live and `run` below [`RUNS`].
    pub(super) unsafe fn run(chunk: NonNull<Chunk>, run: usize) -> NonNull<Run> {
        debug_assert!(run < RUNS);
        // SAFETY: the caller promises that the chunk is live, hence mapped (SLAB-5), and that `run`
        // is below `RUNS`, so the address is inside the header.
        unsafe {
            let runs = (&raw mut (*chunk.as_ptr()).runs).cast::<Run>();
            NonNull::new_unchecked(runs.add(run))
        }
    }

    /// Returns the first byte of run `run` that a block may take.
    fn first(chunk: NonNull<Chunk>, run: usize) -> NonNull<u8> {
        let offset = if run == 0 { HEADER } else { run * RUN };
        // SAFETY: the offset is inside of the chunk.
        unsafe { chunk.cast::<u8>().add(offset) }
    }

    /// Purges the free runs that still have memory. Returns the number of runs purged.
    ///
    /// # Safety
    /// The chunk must be live, and the caller must hold the lock of the chunks.
    pub(super) unsafe fn purge(chunk: NonNull<Chunk>) -> usize {
        // SAFETY: the lock of the chunks, which the caller holds, guards free runs (SLAB-2).
        let (free, purged) = unsafe { ((*chunk.as_ptr()).free, &mut (*chunk.as_ptr()).purged) };
        let before = purged.count_ones();
        if before == 0 {
            // Otherwise the system, which looks for huge pages to make, would fill the whole chunk
            // again.
            memory::set_huge(chunk.cast(), false);
        }
        // The memory of run 0 begins with the header.
        for run in 1..RUNS {
            let resident = (free & !*purged) >> run & 1 == 1;
            // SAFETY: the run is in the chunk, and free, so no block in it is in use (SLAB-1).
            if resident && unsafe { memory::purge(Chunk::first(chunk, run), RUN) } {
                *purged |= 1 << run;
            }
        }
        (purged.count_ones() - before) as usize
    }

    /// Marks a free run as about to be used. Returns `true` if it was purged.
    ///
    /// # Safety
    /// The chunk must be live, and the caller must hold the lock of the chunks.
    pub(super) unsafe fn unpurge(chunk: NonNull<Chunk>, run: u32) -> bool {
        // SAFETY: the lock of the chunks, which the caller holds, guards free runs (SLAB-2).
        let purged = unsafe { &mut (*chunk.as_ptr()).purged };
        let was_purged = *purged >> run & 1 == 1;
        *purged &= !(1 << run);
        if was_purged && *purged == 0 {
            memory::set_huge(chunk.cast(), true);
        }
        was_purged
    }

    /// Marks a block as used (`true`) or free, and aborts the program if it was so already.
    ///
    /// # Safety
    /// The block must be in a live chunk.
    #[cfg(debug_assertions)]
    pub(super) unsafe fn mark(block: NonNull<u8>, live: bool) {
        use std::sync::atomic::Ordering::Relaxed;
        let chunk = Chunk::of(block);
        let index = (block.addr().get() - chunk.addr().get()) / SMALLEST;
        let bit = 1 << (index % BITS);
        // SAFETY: the caller promises that the chunk is live (SLAB-5); the words are atomic.
        let word = unsafe { &(*chunk.as_ptr()).live[index / BITS] };
        let before = if live {
            word.fetch_or(bit, Relaxed)
        } else {
            word.fetch_and(!bit, Relaxed)
        };
        if (before & bit != 0) == live {
            abort_corrupted(
                "a block is freed that is not in use, or given out twice",
                block,
            );
        }
    }
}

/// The description of a run that serves a class; meaningless while the run is free.
#[repr(C, align(64))]
pub(super) struct Run {
    links: Links<Run>,
    first: NonNull<u8>,
    /// Size of a block in bytes.
    size: u32,
    /// Number of blocks.
    capacity: u16,
    used: u16,
    /// Index of a word: no word of `bits` before it has a free block.
    hint: u16,
    /// The pool's list that the run is in, or [`GROUPS`] if it is in none.
    pub group: u8,
    /// The used blocks, one bit each.
    bits: [u64; RUN / SMALLEST / BITS],
}

// SAFETY: `links` returns the field of that name, which is always the first one.
unsafe impl Linked for Run {
    unsafe fn links(run: NonNull<Self>) -> *mut Links<Self> {
        // SAFETY: the caller promises that the run is live, and so is its chunk (SLAB-5).
        unsafe { &raw mut (*run.as_ptr()).links }
    }
}

impl Run {
    /// Returns the run that holds a block.
    ///
    /// # Safety
    /// The block must be in a live chunk.
    pub(super) unsafe fn of(block: NonNull<u8>) -> NonNull<Run> {
        let chunk = Chunk::of(block);
        let run = (block.addr().get() - chunk.addr().get()) / RUN;
        // SAFETY: the caller promises that the block is in a live chunk (SLAB-5), so its offset is
        // below `CHUNK` and the number of its run below `RUNS`.
        unsafe { Chunk::run(chunk, run) }
    }

    /// Returns the index of a run in its chunk.
    pub(super) fn index(run: NonNull<Run>) -> usize {
        let offset = run.addr().get() - Chunk::of(run).addr().get();
        (offset - std::mem::offset_of!(Chunk, runs)) / size_of::<Run>()
    }

    /// Makes a free run serve `class`. All its blocks are free.
    ///
    /// # Safety
    /// The run must be in a live chunk, and no other thread may access it.
    pub(super) unsafe fn begin(run: NonNull<Run>, class: Class) {
        let first = Chunk::first(Chunk::of(run), Run::index(run));
        let bytes = RUN - first.addr().get() % RUN;
        // SAFETY: the caller promises that no other thread accesses the run, so its description is
        // ours (SLAB-2). Its links and its bits are valid already: they were zero in the beginning,
        // and all bits are zero again when a run becomes free.
        let run = unsafe { &mut *run.as_ptr() };
        run.first = first;
        run.size = class.size() as u32;
        run.capacity = (bytes / class.size()) as u16;
        run.used = 0;
        run.hint = 0;
        run.group = GROUPS as u8;
    }

    /// Fills `out` with free blocks by ascending address, as far as possible, and returns their
    /// number.
    pub(super) fn take(&mut self, out: &mut [*mut u8]) -> usize {
        let words = usize::from(self.capacity).div_ceil(BITS);
        let mut taken = 0;
        while taken < out.len() && usize::from(self.hint) < words {
            let word = usize::from(self.hint);
            let bit = (!self.bits[word]).trailing_zeros() as usize;
            let index = word * BITS + bit;
            if bit == BITS || index >= usize::from(self.capacity) {
                self.hint += 1;
                continue;
            }
            // Adjacent free blocks of a word are taken with one change of it.
            let free = (self.bits[word] >> bit).trailing_zeros() as usize;
            let count = free
                .min(BITS - bit)
                .min(usize::from(self.capacity) - index)
                .min(out.len() - taken);
            self.bits[word] |= (u64::MAX >> (BITS - count)) << bit;
            for (at, block) in out[taken..taken + count].iter_mut().enumerate() {
                // SAFETY: a block below the capacity is inside the run.
                *block = unsafe { self.first.as_ptr().add((index + at) * self.size as usize) };
            }
            taken += count;
        }
        self.used += taken as u16;
        taken
    }

    /// Takes back a block.
    pub(super) fn put(&mut self, block: NonNull<u8>) {
        let offset = block.addr().get().wrapping_sub(self.first.addr().get());
        let size = self.size as usize;
        let (word, bit) = (offset / size / BITS, offset / size % BITS);
        let used = word < self.bits.len() && self.bits[word] >> bit & 1 == 1;
        if !used || !offset.is_multiple_of(size) {
            abort_corrupted("a block is freed that is not in use", block);
        }
        self.bits[word] &= !(1 << bit);
        self.hint = self.hint.min(word as u16);
        self.used -= 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns `true` if the run serves `class`.
    pub(super) fn serves(&self, class: Class) -> bool {
        self.size as usize == class.size()
    }

    /// Returns the list that the run should be in: the higher, the fuller. [`GROUPS`] for a full
    /// run.
    pub(super) fn fullness(&self) -> u8 {
        (u32::from(self.used) * GROUPS as u32 / u32::from(self.capacity)) as u8
    }
}
