//! The state of the adaptation of a tree.

use crate::backend::Totals;
use crate::forced::Forcing;
use crate::late::Late;
use ats_sync::count::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use ats_sync::{Census, Lock};
use std::sync::{Arc, OnceLock, Weak};

/// Is told when a tree has gone from one base node to two.
pub trait OnFirstSplit: Send + Sync {
    /// Called by a writer of the tree with no lock held.
    fn has_split(self: Arc<Self>);
}

/// The state of the adaptation of the tree, apart from the data that readers look at.
pub(super) struct Adapting {
    /// Made by the first thread that adapts, or that counts while others write.
    parts: Late<Parts>,
    pub split_first: Option<Weak<dyn OnFirstSplit>>,
    pub forcing: Forcing,
}

/// The part that is made late.
#[derive(Default)]
pub(super) struct Parts {
    /// Held while route nodes change. A thread that holds another lock only tries this one.
    pub lock: Lock,
    // The numbers are changed under the lock.
    /// Base nodes but for the first.
    more_base_nodes: AtomicU64,
    route_bytes: AtomicI64,
    splits: AtomicU64,
    joins: AtomicU64,
    /// Made by the first that does not get by with a glance. Its holder takes the lock above, and no other.
    pub census: OnceLock<Box<Census<Totals>>>,
}

impl Adapting {
    pub(super) fn new() -> Self {
        Adapting {
            parts: Late::new(),
            split_first: None,
            forcing: Forcing::default(),
        }
    }

    /// The part that is made late.
    pub(super) fn parts(&self) -> &Parts {
        self.parts.get_or_make()
    }

    /// Bytes of memory that it takes beside the tree.
    pub(super) fn bytes(&self) -> usize {
        self.parts.bytes()
    }

    fn number(&self, number: impl FnOnce(&Parts) -> u64) -> u64 {
        self.parts.get().map_or(0, number)
    }

    pub(super) fn splits(&self) -> u64 {
        self.number(|parts| parts.splits.load(Relaxed))
    }

    pub(super) fn joins(&self) -> u64 {
        self.number(|parts| parts.joins.load(Relaxed))
    }

    pub(super) fn route_bytes(&self) -> i64 {
        let parts = self.parts.get();
        parts.map_or(0, |parts| parts.route_bytes.load(Relaxed))
    }

    /// The number of base nodes.
    pub(super) fn base_nodes(&self) -> u64 {
        1 + self.number(|parts| parts.more_base_nodes.load(Relaxed))
    }

    /// The tree has been given a single, empty base node: it is as a new one.
    pub(super) fn forget(&mut self) {
        self.parts = Late::new();
    }
}

impl Parts {
    /// Counts a split, by which route nodes have become larger by so many bytes. The caller holds the lock.
    pub(super) fn count_split(&self, route_bytes: i64) {
        self.count(&self.splits, 1, route_bytes);
    }

    /// Counts a join, as [`count_split`](Self::count_split) a split.
    pub(super) fn count_join(&self, route_bytes: i64) {
        self.count(&self.joins, -1, route_bytes);
    }

    fn count(&self, count: &AtomicU64, base_nodes: i64, route_bytes: i64) {
        count.store(count.load(Relaxed) + 1, Relaxed);
        let bases = self.more_base_nodes.load(Relaxed);
        let bases = bases.wrapping_add_signed(base_nodes);
        self.more_base_nodes.store(bases, Relaxed);
        let bytes = self.route_bytes.load(Relaxed) + route_bytes;
        self.route_bytes.store(bytes, Relaxed);
    }
}
