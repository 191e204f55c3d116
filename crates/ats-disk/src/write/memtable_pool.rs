//! Memory for memtables, kept and made ready while there are writes.
//!
//! Memtables take and free as much memory as writes bring. The memory that one frees is kept for
//! the next, instead of being given back to the system and taken again. And the first access to new
//! memory is made in the background, ahead of the writers: under virtualisation it takes 5 ms for 2
//! MiB, a fifth of the time in which they are filled.
//!
//! A store that [idles](crate::background) gives all of it back.

use ats_mem::slab::{self, Retained};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The amount of memory that is made ready ahead of the writers.
const AHEAD: usize = 4 << 20;

/// The memory that a store keeps for its memtables.
#[derive(Default)]
pub(crate) struct MemtablePool {
    held: Mutex<Option<Retained>>,
    /// `true` if the background knows that memory is short.
    is_requested: AtomicBool,
}

impl MemtablePool {
    /// `true` if a writer tells the threads that one will soon need more memory than is there. They
    /// are told once, until they have [made some ready](MemtablePool::prepare).
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        let is_new = slab::free_bytes() == 0 && !self.is_requested.load(Ordering::Relaxed);
        if is_new {
            self.is_requested.store(true, Ordering::Relaxed);
        }
        is_new
    }

    /// Makes memory ready, if writers need it, and keeps as much as a memtable of that many bytes
    /// frees.
    pub(crate) fn prepare(&self, memtable_bytes: usize) {
        if self.is_requested.load(Ordering::Relaxed) {
            let bytes = memtable_bytes.saturating_add(AHEAD);
            let mut held = self.held.lock();
            held.get_or_insert_with(|| Retained::new(bytes));
            drop(held);
            slab::prepare(AHEAD);
            self.is_requested.store(false, Ordering::Relaxed);
        }
    }

    /// Gives the kept memory back.
    pub(crate) fn release(&self) {
        *self.held.lock() = None;
    }
}
