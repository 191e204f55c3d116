//! Subtree counts: the numbers of objects below the children of an inner node.
//!
//! A thread that [counts objects](super::order_statistics) stores its results in the inner nodes it
//! has passed. From then on writers maintain these numbers: a writer that changes the number of
//! objects of a key descends its path once more and adds to them. If no thread ever counts, there
//! is nothing to maintain, as a flag of the base node shows.
//!
//! # Invariants
//! - SUBTREE_COUNTS-1. Only the holder of the lock of the base node above reads and writes subtree
//!   counts. They move to another base node only together with their inner node, and only the
//!   thread that holds the locks of both moves them; so they need no memory order of their own.
//! - SUBTREE_COUNTS-2. A subtree count is the number of objects of the records in the leaves below
//!   its child, pending ones included, as the tree [counts them](super::objects_per_record). It is
//!   changed before the leaf is, under the same lock.
//! - SUBTREE_COUNTS-3. A change of structure moves no record into or out of a node that stays. So a
//!   new inner node can take over the old one's subtree counts of the children that both share.
//! - SUBTREE_COUNTS-4. If an inner node below a base node has subtree counts, the base node is
//!   marked.

use super::header::FANOUT;
use ats_sync::shim::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// The number that stands for an unknown count.
const UNKNOWN: u64 = u64::MAX;

type Numbers = [AtomicU64; FANOUT + 1];

/// The subtree counts of one inner node. Takes memory of its own when the first is set.
// A plain once-cell would do, because all accesses happen under a lock (SUBTREE_COUNTS-1); this one
// needs no proof of that.
pub(super) struct SubtreeCounts(OnceLock<Box<Numbers>>);

impl SubtreeCounts {
    pub(super) fn unknown() -> Self {
        SubtreeCounts(OnceLock::new())
    }

    /// Returns the number of objects below the child at an index, if it is known.
    pub(super) fn get(&self, child_index: usize) -> Option<u64> {
        let count = self.0.get()?[child_index].load(Ordering::Relaxed);
        (count != UNKNOWN).then_some(count)
    }

    /// Stores a number. Returns the bytes of memory that this has taken.
    pub(super) fn set(&self, child_index: usize, count: u64) -> usize {
        let before = self.bytes();
        let unknown = || Box::new(std::array::from_fn(|_| AtomicU64::new(UNKNOWN)));
        self.0.get_or_init(unknown)[child_index].store(count, Ordering::Relaxed);
        self.bytes() - before
    }

    /// Adds to a number, if it is known.
    pub(super) fn add(&self, child_index: usize, more: i64) {
        if let Some(count) = self.get(child_index) {
            self.set(child_index, count.wrapping_add_signed(more));
        }
    }

    /// Returns `true` if no number is known.
    pub(super) fn are_unknown(&self) -> bool {
        self.0.get().is_none()
    }

    /// Returns the bytes of memory beside the node.
    pub(super) fn bytes(&self) -> usize {
        self.0.get().map_or(0, |_| size_of::<Numbers>())
    }
}
