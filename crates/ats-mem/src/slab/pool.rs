//! The runs of each class, and the whole slab.

use super::chunk::{Chunk, GROUPS, Run};
use super::chunks::Chunks;
use super::class::{CLASSES, Class};
use super::corruption::abort_corrupted;
use super::list::List;
use super::memory::{self, CHUNK};
use ats_sync::CachePadded;
use ats_sync::count::atomic::{AtomicUsize, Ordering};
use std::alloc::{Layout, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The slab of the program.
pub(super) static SLAB: Slab = Slab::new();

/// The amount of memory in blocks of at most [`LARGEST`](super::LARGEST) bytes; see
/// [`statistics`](super::statistics).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of chunks mapped and not returned to the system. With huge pages, all of it is
    /// resident.
    pub reserved: usize,
    /// Bytes of blocks in use, by their rounded sizes. Blocks in the caches of threads count.
    pub used: usize,
}

/// Pools and chunks, each under its lock.
pub(super) struct Slab {
    pools: [CachePadded<Mutex<Pool>>; CLASSES],
    chunks: Mutex<Chunks>,
    /// The chunks of short-lived blocks.
    passing: Mutex<Chunks>,
    /// Number of free chunks, readable without the lock.
    free_chunks: AtomicUsize,
}

/// The chunks of long-lived blocks, while they are locked.
struct Locked<'a> {
    chunks: MutexGuard<'a, Chunks>,
    free_chunks: &'a AtomicUsize,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let free = self.chunks.free();
        if free != self.free_chunks.load(Ordering::Relaxed) {
            self.free_chunks.store(free, Ordering::Relaxed);
        }
    }
}

/// The runs of one class that have free blocks, by fullness.
struct Pool {
    groups: [List<Run>; GROUPS],
    used: usize,
}

/// Locks the data. Poisoning is ignored: code under the lock panics only because of a bug that the
/// next user would hit as well.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    ats_sync::count::lock(mutex).unwrap_or_else(PoisonError::into_inner)
}

impl Slab {
    pub(super) const fn new() -> Self {
        Slab {
            pools: [const { CachePadded(Mutex::new(Pool::new())) }; CLASSES],
            chunks: Mutex::new(Chunks::new()),
            passing: Mutex::new(Chunks::new()),
            free_chunks: AtomicUsize::new(0),
        }
    }

    fn chunks(&self) -> Locked<'_> {
        Locked {
            chunks: lock(&self.chunks),
            free_chunks: &self.free_chunks,
        }
    }

    /// Calls `act` with the chunks of a class, under their lock.
    fn with_chunks<T>(&self, class: Class, act: impl FnOnce(&mut Chunks) -> T) -> T {
        if class.is_passing() {
            act(&mut lock(&self.passing))
        } else {
            act(&mut self.chunks().chunks)
        }
    }

    /// Takes a run, from a new chunk if needed.
    fn run(&self, class: Class) -> NonNull<Run> {
        loop {
            if let Some(run) = self.with_chunks(class, |chunks| chunks.take(class)) {
                return run;
            }
            let chunk = map();
            // SAFETY: the chunk has just been mapped, so it is live and in no list.
            self.with_chunks(class, |chunks| unsafe { chunks.add(chunk) });
        }
    }

    /// Returns the approximate number of free chunks.
    pub(super) fn free_chunks(&self) -> usize {
        self.free_chunks.load(Ordering::Relaxed)
    }

    /// Maps chunks until `chunks` are free.
    pub(super) fn prepare(&self, chunks: usize) {
        while self.chunks().chunks.free() < chunks {
            let chunk = map();
            memory::populate(chunk.cast());
            // SAFETY: the chunk has just been mapped, so it is live and in no list.
            unsafe { self.chunks().chunks.add(chunk) };
        }
    }

    /// Changes the number of free chunks that are kept, besides one.
    pub(super) fn keep(&self, change: impl FnOnce(usize) -> usize) {
        let chunks = &mut *self.chunks().chunks;
        *chunks.retained_limit() = change(*chunks.retained_limit());
        chunks.unmap_surplus();
    }

    /// Fills `out` with blocks; those of one run are in address order.
    pub(super) fn take(&self, class: Class, out: &mut [*mut u8]) {
        let mut pool = lock(&self.pools[class.index()]);
        let mut taken = 0;
        while taken < out.len() {
            let run = pool.fullest().unwrap_or_else(|| self.run(class));
            // SAFETY: the run serves our class, whose lock we hold (SLAB-2).
            let filled = unsafe { (*run.as_ptr()).take(&mut out[taken..]) };
            debug_assert!(filled > 0, "runs in lists have free blocks (SLAB-4)");
            taken += filled;
            // SAFETY: the run serves our class, whose lock we hold (SLAB-2).
            unsafe { pool.regroup(run) };
        }
        pool.used += taken;
    }

    /// Takes back blocks.
    ///
    /// # Safety
    /// The blocks must come from [`take`](Slab::take) with the same class and must not be used
    /// afterwards.
    pub(super) unsafe fn put(&self, class: Class, blocks: &[*mut u8]) {
        let mut pool = lock(&self.pools[class.index()]);
        pool.used -= blocks.len();
        for block in blocks {
            // SAFETY: the caller promises that the block comes from `take` with the same class, so
            // it is in a run of our class, whose lock we hold (SLAB-2).
            unsafe {
                let block = NonNull::new_unchecked(*block);
                let run = Run::of(block);
                if !(*run.as_ptr()).serves(class) {
                    abort_corrupted("a block is freed with another size", block);
                }
                (*run.as_ptr()).put(block);
                if (*run.as_ptr()).is_empty() {
                    pool.forget(run);
                    self.with_chunks(class, |chunks| chunks.put(run));
                } else {
                    pool.regroup(run);
                }
            }
        }
    }

    pub(super) fn trim(&self) {
        self.chunks().chunks.trim();
        lock(&self.passing).trim();
    }

    pub(super) fn statistics(&self) -> Statistics {
        let used = (0..CLASSES)
            .map(Class::new)
            .map(|class| lock(&self.pools[class.index()]).used * class.size())
            .sum();
        let reserved = self.chunks().chunks.reserved_bytes() + lock(&self.passing).reserved_bytes();
        Statistics { reserved, used }
    }
}

/// Maps a new chunk, without a lock: the first access to it may take milliseconds.
fn map() -> NonNull<Chunk> {
    Chunk::map().unwrap_or_else(|| handle_alloc_error(Layout::new::<[u8; CHUNK]>()))
}

impl Pool {
    const fn new() -> Self {
        Pool {
            groups: [const { List::new() }; GROUPS],
            used: 0,
        }
    }

    fn fullest(&self) -> Option<NonNull<Run>> {
        self.groups.iter().rev().find_map(List::first)
    }

    /// Moves a run to the list of its fullness.
    ///
    /// # Safety
    /// The run must serve the class of this pool.
    unsafe fn regroup(&mut self, run: NonNull<Run>) {
        // SAFETY: a run of this class is live, and ours while we hold the pool (SLAB-2).
        unsafe {
            let group = (*run.as_ptr()).fullness();
            if group != (*run.as_ptr()).group {
                self.forget(run);
                (*run.as_ptr()).group = group;
                if let Some(list) = self.groups.get_mut(usize::from(group)) {
                    list.push(run);
                }
            }
        }
    }

    /// Removes a run from its list, if it is in one.
    ///
    /// # Safety
    /// The run must serve the class of this pool.
    unsafe fn forget(&mut self, run: NonNull<Run>) {
        // SAFETY: a run of this class is live, and ours while we hold the pool (SLAB-2); `group` is
        // the list it is in.
        unsafe {
            if let Some(list) = self.groups.get_mut(usize::from((*run.as_ptr()).group)) {
                list.remove(run);
            }
            (*run.as_ptr()).group = GROUPS as u8;
        }
    }
}
