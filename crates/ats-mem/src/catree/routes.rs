//! Routes: the route nodes from the root to base nodes, and the state of the adaptation.
//!
//! [`adapt`](super::adapt) decides when base nodes are split and joined, and
//! [`split_join`](super::split_join) does it.

use super::header::NodePtr;
use super::root::Root;
use crate::change::Busy;
use crate::figures::Totals;
use crate::forcing::{Forced, Forcing};
use crate::lazy::Lazy;
use crate::record::Release;
use ats_sync::census::Turn;
use ats_sync::count::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use ats_sync::{Census, Held, Lock};
use std::sync::{Arc, OnceLock, Weak};

/// A listener for the first split of a tree from one base node to two.
pub trait OnFirstSplit: Send + Sync {
    /// Handles the first split. Called by a writer of the tree without a lock.
    fn has_split(self: Arc<Self>);
}

/// The root with the route nodes below it, and the data needed to change these.
pub(super) struct Routes<R: Release> {
    root: Root<R>,
    /// Shared state, made by the first thread that adapts, or that counts while others write.
    shared: Lazy<Shared>,
    first_split: Option<Weak<dyn OnFirstSplit>>,
    forcing: Forcing,
}

/// The state that a tree of one base node does without.
#[derive(Default)]
struct Shared {
    /// The lock of adaptation, held while route nodes change. A thread that holds another lock only
    /// tries this one.
    lock: Lock,
    // The lock guards changes of these numbers.
    /// Number of base nodes minus one.
    more_base_nodes: AtomicU64,
    route_bytes: AtomicI64,
    splits: AtomicU64,
    joins: AtomicU64,
    /// The census, made when a glance fails for the first time. Its holder takes the lock above,
    /// and no other.
    census: OnceLock<Box<Census<(Totals, u64)>>>,
}

/// The held lock of adaptation: only its holder splits and joins base nodes.
pub(super) struct RoutesHeld<'r> {
    shared: &'r Shared,
    _held: Held<'r>,
}

impl<R: Release> Routes<R> {
    /// Creates the routes of a tree with an empty base node.
    pub(super) fn new() -> Self {
        Routes {
            root: Root::new(),
            shared: Lazy::new(),
            first_split: None,
            forcing: Forcing::default(),
        }
    }

    /// Returns the part that readers use.
    #[inline(always)]
    pub(super) fn root(&self) -> &Root<R> {
        &self.root
    }

    /// Takes the nodes out; the tree is like a new one afterwards.
    pub(super) fn take(&mut self) -> NodePtr {
        self.shared = Lazy::new();
        self.root.take()
    }

    pub(super) fn on_first_split(&mut self, notice: Weak<dyn OnFirstSplit>) {
        self.first_split = Some(notice);
    }

    /// Reports that the tree has gone from one base node to two. The caller holds no lock.
    pub(super) fn report_first_split(&self) {
        if let Some(notice) = self.first_split.as_ref().and_then(Weak::upgrade) {
            notice.has_split();
        }
    }

    /// Returns the adaptation that this write must force.
    #[inline]
    pub(super) fn decide_forced(&self) -> Option<Forced> {
        self.forcing.decide_forced()
    }

    #[cfg(feature = "forcing")]
    pub(super) fn force(&self, splits: u32, joins: u32) {
        self.forcing.set(splits, joins);
    }

    /// Returns the bytes of memory beside the tree and its nodes.
    pub(super) fn shared_bytes(&self) -> usize {
        self.shared.bytes()
    }

    fn number(&self, number: impl FnOnce(&Shared) -> u64) -> u64 {
        self.shared.get().map_or(0, number)
    }

    pub(super) fn splits(&self) -> u64 {
        self.number(|shared| shared.splits.load(Relaxed))
    }

    pub(super) fn joins(&self) -> u64 {
        self.number(|shared| shared.joins.load(Relaxed))
    }

    /// Returns the bytes of memory of the route nodes.
    pub(super) fn bytes(&self) -> i64 {
        let shared = self.shared.get();
        shared.map_or(0, |shared| shared.route_bytes.load(Relaxed))
    }

    /// Returns the number of base nodes.
    pub(super) fn base_nodes(&self) -> u64 {
        1 + self.number(|shared| shared.more_base_nodes.load(Relaxed))
    }

    /// Takes the lock of adaptation, for a thread that holds no other.
    pub(super) fn lock(&self) -> RoutesHeld<'_> {
        let shared = self.shared.get_or_make();
        RoutesHeld {
            shared,
            _held: shared.lock.lock(),
        }
    }

    /// Takes the lock of adaptation, unless the calling thread would have to wait too long.
    pub(super) fn lock_within_limit(&self) -> Option<RoutesHeld<'_>> {
        let shared = self.shared.get_or_make();
        let (held, _) = shared.lock.lock_within_limit()?;
        Some(RoutesHeld {
            shared,
            _held: held,
        })
    }

    /// Takes the lock of adaptation if it is free.
    pub(super) fn try_lock(&self) -> Option<RoutesHeld<'_>> {
        let shared = self.shared.get_or_make();
        Some(RoutesHeld {
            shared,
            _held: shared.lock.try_lock()?,
        })
    }

    /// Returns the result of a census, which concurrent callers share.
    pub(super) fn share_census(
        &self,
        take: impl FnOnce(&mut Turn<'_>) -> Option<(Totals, u64)>,
    ) -> Result<(Totals, u64), Busy> {
        self.census_of_all().share(take).ok_or(Busy)
    }

    /// Calls a function that closes the gate, once it is its turn.
    pub(super) fn take_turn<T>(&self, take: impl FnOnce(&mut Turn<'_>) -> Option<T>) -> Option<T> {
        self.census_of_all().take_turn(take)
    }

    fn census_of_all(&self) -> &Census<(Totals, u64)> {
        self.shared.get_or_make().census.get_or_init(Box::default)
    }
}

impl RoutesHeld<'_> {
    /// Counts a split, by which route nodes have grown by `route_bytes` bytes.
    pub(super) fn count_split(&self, route_bytes: i64) {
        self.count(&self.shared.splits, 1, route_bytes);
    }

    /// Counts a join, like [`count_split`](Self::count_split).
    pub(super) fn count_join(&self, route_bytes: i64) {
        self.count(&self.shared.joins, -1, route_bytes);
    }

    fn count(&self, count: &AtomicU64, base_nodes: i64, route_bytes: i64) {
        count.store(count.load(Relaxed) + 1, Relaxed);
        let bases = self.shared.more_base_nodes.load(Relaxed);
        let bases = bases.wrapping_add_signed(base_nodes);
        self.shared.more_base_nodes.store(bases, Relaxed);
        let bytes = self.shared.route_bytes.load(Relaxed) + route_bytes;
        self.shared.route_bytes.store(bytes, Relaxed);
    }
}
