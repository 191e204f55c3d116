//! The runs of each class, and the whole slab.

use super::chunk::{GROUPS, Run};
use super::chunks::Chunks;
use super::class::{CLASSES, Class};
use super::corrupted::corrupted;
use super::list::List;
use ats_sync::Padded;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The slab of the program.
pub(super) static SLAB: Slab = Slab::new();

/// How much memory the blocks of at most [`LARGEST`](super::LARGEST) bytes take; see
/// [`statistics`](super::statistics).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of chunks got from the system and not given back. With huge pages, what is resident.
    pub reserved: usize,
    /// Bytes of blocks in use, by their rounded sizes. Blocks in the caches of threads count.
    pub used: usize,
}

/// Pools and chunks, each under its lock.
pub(super) struct Slab {
    pools: [Padded<Mutex<Pool>>; CLASSES],
    chunks: Mutex<Chunks>,
}

/// The runs of one class that have free blocks, by fullness.
struct Pool {
    groups: [List<Run>; GROUPS],
    used: usize,
}

/// What a lock guards is never left half changed by a panic: nothing under it can panic but by a bug
/// that the next user runs into as well.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Slab {
    pub(super) const fn new() -> Self {
        Slab {
            pools: [const { Padded(Mutex::new(Pool::new())) }; CLASSES],
            chunks: Mutex::new(Chunks::new()),
        }
    }

    /// Fills `out` with blocks; those of one run come by ascending address.
    pub(super) fn take(&self, class: Class, out: &mut [*mut u8]) {
        let mut pool = lock(&self.pools[class.index()]);
        let mut taken = 0;
        while taken < out.len() {
            let run = pool
                .fullest()
                .unwrap_or_else(|| lock(&self.chunks).take(class));
            // SAFETY: the run serves our class, whose lock we hold (S2).
            let filled = unsafe { (*run.as_ptr()).take(&mut out[taken..]) };
            debug_assert!(filled > 0, "runs in lists have free blocks (S4)");
            taken += filled;
            // SAFETY: as before (S2).
            unsafe { pool.regroup(run) };
        }
        pool.used += taken;
    }

    /// Takes blocks back.
    ///
    /// # Safety
    /// They come from [`take`](Slab::take) with the same class and are not used afterwards.
    pub(super) unsafe fn put(&self, class: Class, blocks: &[*mut u8]) {
        let mut pool = lock(&self.pools[class.index()]);
        pool.used -= blocks.len();
        for block in blocks {
            // SAFETY: by contract the block is in a run of our class, whose lock we hold (S2).
            unsafe {
                let block = NonNull::new_unchecked(*block);
                let run = Run::of(block);
                if !(*run.as_ptr()).serves(class) {
                    corrupted("a block is freed with another size", block);
                }
                (*run.as_ptr()).put(block);
                if (*run.as_ptr()).is_empty() {
                    pool.forget(run);
                    lock(&self.chunks).put(run);
                } else {
                    pool.regroup(run);
                }
            }
        }
    }

    pub(super) fn trim(&self) {
        lock(&self.chunks).trim();
    }

    pub(super) fn statistics(&self) -> Statistics {
        let used = (0..CLASSES)
            .map(Class::new)
            .map(|class| lock(&self.pools[class.index()]).used * class.size())
            .sum();
        let reserved = lock(&self.chunks).reserved();
        Statistics { reserved, used }
    }
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
    /// The run serves the class of this pool.
    unsafe fn regroup(&mut self, run: NonNull<Run>) {
        // SAFETY: a run of this class is live and ours while the pool is (S2).
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

    /// Takes a run out of its list, if it is in one.
    ///
    /// # Safety
    /// The run serves the class of this pool.
    unsafe fn forget(&mut self, run: NonNull<Run>) {
        // SAFETY: a run of this class is live and ours while the pool is (S2); `group` says which list it is in.
        unsafe {
            if let Some(list) = self.groups.get_mut(usize::from((*run.as_ptr()).group)) {
                list.remove(run);
            }
            (*run.as_ptr()).group = GROUPS as u8;
        }
    }
}
