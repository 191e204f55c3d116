//! Base nodes: what one lock guards, and how often that lock was contended.
//!
//! The invariants (PAPER_TREE-1 and so on) are those of [`paper_tree`](super).

use super::avl::Avl;
use crate::reader_groups::ReaderGroupLock;
use crate::reader_groups::{ReadGuard, WriteGuard};
use ats_mem::record::Release;
use ats_sync::count::atomic::{AtomicI32, Ordering::Relaxed};
use ats_sync::lock::{CONTENDED_COST, STATISTICS_LIMIT, UNCONTENDED_COST};

/// A base node.
pub(super) struct Base<R: Release>(ReaderGroupLock<Contents<R>>);

/// The data that the lock of a base node guards.
pub(super) struct Contents<R: Release> {
    pub(super) records: Avl<R>,
    /// See PAPER_TREE-1.
    pub(super) is_valid: bool,
    /// Up if the lock was contended, down if not. Changed by a load and a store also by readers,
    /// several of which may hold the lock: a change that is lost now and then does no harm.
    statistics: AtomicI32,
    pub(super) turns: Turns,
}

/// The number of times that writers took the lock.
#[derive(Clone, Copy, Default)]
pub(super) struct Turns {
    /// Having waited.
    pub(super) contended: u64,
    pub(super) uncontended: u64,
}

impl<R: Release> Default for Base<R> {
    fn default() -> Self {
        Base::new(Avl::default(), Turns::default())
    }
}

impl<R: Release> Base<R> {
    pub(super) fn new(records: Avl<R>, turns: Turns) -> Self {
        let contents = Contents {
            records,
            is_valid: true,
            statistics: AtomicI32::new(0),
            turns,
        };
        Base(ReaderGroupLock::with_groups(1, contents))
    }

    /// Takes the lock to read; none if the base node is not valid. Readers that need not wait leave
    /// the statistics as they are.
    #[inline]
    pub(super) fn read(&self) -> Option<ReadGuard<'_, Contents<R>>> {
        let held = self.0.try_read().unwrap_or_else(|| {
            let held = self.0.read();
            held.count(CONTENDED_COST);
            held
        });
        held.is_valid.then_some(held)
    }

    /// Takes the lock to write, and counts whether it was contended; none if the base node is not
    /// valid.
    #[inline]
    pub(super) fn write(&self) -> Option<WriteGuard<'_, Contents<R>>> {
        let held = match self.0.try_write() {
            Some(mut held) => {
                held.count(UNCONTENDED_COST);
                held.turns.uncontended += 1;
                held
            }
            None => {
                let mut held = self.0.write();
                held.count(CONTENDED_COST);
                held.turns.contended += 1;
                held
            }
        };
        held.is_valid.then_some(held)
    }

    /// Takes the lock to write if it is free and the base node is valid. Does not count.
    pub(super) fn try_write(&self) -> Option<WriteGuard<'_, Contents<R>>> {
        self.0.try_write().filter(|held| held.is_valid)
    }

    /// Bytes of memory without those of its records and their tree.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.0.bytes()
    }
}

impl<R: Release> Contents<R> {
    #[inline]
    pub(super) fn statistics(&self) -> i32 {
        self.statistics.load(Relaxed)
    }

    pub(super) fn reset_statistics(&self) {
        self.statistics.store(0, Relaxed);
    }

    #[inline]
    fn count(&self, cost: i32) {
        let statistics = self.statistics().saturating_add(cost);
        let clamped = statistics.clamp(-STATISTICS_LIMIT, STATISTICS_LIMIT);
        self.statistics.store(clamped, Relaxed);
    }

    /// Says that the base node is replaced, and gives its records away.
    pub(super) fn invalidate(&mut self) -> (Avl<R>, Turns) {
        self.is_valid = false;
        (std::mem::take(&mut self.records), self.turns)
    }
}
