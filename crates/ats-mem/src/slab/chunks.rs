//! All chunks, by their number of free runs.

use super::chunk::{Chunk, RUN, RUNS, Run};
use super::class::Class;
use super::list::List;
use super::memory::CHUNK;
use std::ptr::NonNull;

/// The chunks. Full ones are in list 0, which is never searched.
pub(super) struct Chunks {
    by_free: [List<Chunk>; RUNS + 1],
    mapped: usize,
    purged_runs: usize,
    /// Number of chunks whose runs are all free.
    free: usize,
    /// Number of free chunks that are kept, besides one.
    kept: usize,
}

impl Chunks {
    pub(super) const fn new() -> Self {
        Chunks {
            by_free: [const { List::new() }; RUNS + 1],
            mapped: 0,
            purged_runs: 0,
            free: 0,
            kept: 0,
        }
    }

    /// Returns the number of chunks whose runs are all free.
    pub(super) fn free(&self) -> usize {
        self.free
    }

    /// Returns the number of free chunks that are retained, besides one, to be changed.
    pub(super) fn retained_limit(&mut self) -> &mut usize {
        &mut self.kept
    }

    /// Returns the number of bytes that are reserved.
    pub(super) fn reserved_bytes(&self) -> usize {
        self.mapped * CHUNK - self.purged_runs * RUN
    }

    /// Takes a run for `class`, from the chunk with the fewest free runs, so that others can drain.
    /// Returns `None` if no run is free.
    pub(super) fn take(&mut self, class: Class) -> Option<NonNull<Run>> {
        let chunk = self.by_free[1..].iter().find_map(List::first)?;
        // SAFETY: chunks in lists are live, and their free runs are ours (SLAB-2). The chunk has a
        // free run, because it is in a list above 0.
        unsafe {
            let free = (*chunk.as_ptr()).free;
            let index = free.trailing_zeros();
            self.set_free(chunk, free & !(1 << index));
            self.purged_runs -= usize::from(Chunk::unpurge(chunk, index));
            let run = Chunk::run(chunk, index as usize);
            Run::begin(run, class);
            Some(run)
        }
    }

    /// Adds a chunk.
    ///
    /// # Safety
    /// The chunk must come from [`Chunk::map`] and must not have been added before.
    pub(super) unsafe fn add(&mut self, chunk: NonNull<Chunk>) {
        self.mapped += 1;
        self.free += 1;
        // SAFETY: the chunk is new, so it is in no list; only `unmap` unmaps it (SLAB-5).
        unsafe { self.by_free[RUNS].push(chunk) };
    }

    /// Takes back a run.
    ///
    /// # Safety
    /// The run comes from [`take`](Chunks::take), and none of its blocks is in use.
    pub(super) unsafe fn put(&mut self, run: NonNull<Run>) {
        let chunk = Chunk::of(run);
        // SAFETY: the chunk of a run in use is live, and its state is ours (SLAB-2).
        unsafe {
            let free = (*chunk.as_ptr()).free | 1 << Run::index(run);
            self.set_free(chunk, free);
            if free == u32::MAX && self.free > 1 + self.kept {
                self.unmap(chunk);
            }
        }
    }

    /// Unmaps free chunks beyond those that are kept.
    pub(super) fn unmap_surplus(&mut self) {
        while self.free > 1 + self.kept
            && let Some(chunk) = self.by_free[RUNS].first()
        {
            // SAFETY: all runs of a chunk in this list are free (SLAB-5).
            unsafe { self.unmap(chunk) };
        }
    }

    /// Unmaps all free chunks and purges chunks of which at least half is free. Less is not
    /// worthwhile: a chunk that has lost a part of its memory has lost its huge page.
    pub(super) fn trim(&mut self) {
        while let Some(chunk) = self.by_free[RUNS].first() {
            // SAFETY: all runs of a chunk in this list are free (SLAB-5).
            unsafe { self.unmap(chunk) };
        }
        for list in &self.by_free[RUNS / 2..] {
            // SAFETY: chunks in lists are live (SLAB-5), and `self` means that we hold the lock
            // (SLAB-2).
            list.for_each(|chunk| self.purged_runs += unsafe { Chunk::purge(chunk) });
        }
    }

    /// # Safety
    /// The chunk must be ours, and all its runs must be free.
    unsafe fn unmap(&mut self, chunk: NonNull<Chunk>) {
        // SAFETY: a chunk without used runs is in the last list, and by SLAB-5 no block in it is in
        // use.
        unsafe {
            self.by_free[RUNS].remove(chunk);
            self.purged_runs -= (*chunk.as_ptr()).purged.count_ones() as usize;
            super::memory::unmap(chunk.cast());
        }
        self.mapped -= 1;
        self.free -= 1;
    }

    /// # Safety
    /// The chunk must be one of ours.
    unsafe fn set_free(&mut self, chunk: NonNull<Chunk>, free: u32) {
        // SAFETY: our chunks are live (SLAB-5), and each is in the list of its number of free runs.
        unsafe {
            let before = (*chunk.as_ptr()).free;
            self.by_free[before.count_ones() as usize].remove(chunk);
            (*chunk.as_ptr()).free = free;
            self.free -= usize::from(before == u32::MAX);
            self.free += usize::from(free == u32::MAX);
            self.by_free[free.count_ones() as usize].push(chunk);
        }
    }
}
