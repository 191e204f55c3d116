//! What a tree keeps for its adaptation.

use crate::backend::Totals;
use crate::forced::Forcing;
use ats_sync::count::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use ats_sync::{Census, Lock};
use std::sync::OnceLock;

/// Called when something has happened.
type Notice = Box<dyn Fn() + Send + Sync>;

/// What the tree keeps for its adaptation, apart from what readers look at.
#[repr(align(64))]
pub(super) struct Adapting {
    /// Held while route nodes change. A thread that holds another lock only tries this one.
    pub lock: Lock,
    // The numbers are changed under the lock.
    base_nodes: AtomicU64,
    route_bytes: AtomicI64,
    splits: AtomicU64,
    joins: AtomicU64,
    /// Made by the first that does not get by with a glance. Its holder takes the lock above, and no other.
    pub census: OnceLock<Box<Census<Totals>>>,
    pub split_first: OnceLock<Notice>,
    pub forcing: Forcing,
}

impl Adapting {
    pub(super) fn new() -> Self {
        Adapting {
            lock: Lock::new(),
            base_nodes: AtomicU64::new(1),
            route_bytes: AtomicI64::new(0),
            splits: AtomicU64::new(0),
            joins: AtomicU64::new(0),
            census: OnceLock::new(),
            split_first: OnceLock::new(),
            forcing: Forcing::default(),
        }
    }

    pub(super) fn splits(&self) -> u64 {
        self.splits.load(Relaxed)
    }

    pub(super) fn joins(&self) -> u64 {
        self.joins.load(Relaxed)
    }

    pub(super) fn route_bytes(&self) -> i64 {
        self.route_bytes.load(Relaxed)
    }

    /// How many base nodes there are.
    pub(super) fn base_nodes(&self) -> u64 {
        self.base_nodes.load(Relaxed)
    }

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
        let bases = self.base_nodes().wrapping_add_signed(base_nodes);
        self.base_nodes.store(bases, Relaxed);
        let bytes = self.route_bytes() + route_bytes;
        self.route_bytes.store(bytes, Relaxed);
    }

    /// The tree has been given a single, empty base node.
    pub(super) fn forget_routes(&mut self) {
        *self.base_nodes.get_mut() = 1;
        *self.route_bytes.get_mut() = 0;
    }
}
