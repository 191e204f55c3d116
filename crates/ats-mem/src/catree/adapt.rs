//! Adaptation: when base nodes are split and joined, and how.
//!
//! Each writer looks at the statistics of its base node before it unlocks it. A thread that adapts
//! holds the lock of the base node and the lock of adaptation. It only tries the latter (C5).

use super::base::{Base, Counts, EMPTY_JOIN_BELOW, IDLE_COST, SPLIT_ABOVE, Spot};
use super::cut::{SplitPoint, cut, graft};
use super::fences::Fences;
use super::kind::Kind;
use super::leaves::without_pair;
use super::link::Node;
use super::node::FANOUT;
use super::nodes::{Nodes, Replacement};
use super::path::{PathNode, replace};
use super::{CaTree, LockedLeaf};
use crate::forced::{Forced, Forcing};
use crate::record::Release;
use ats_sync::{Guard, Held, Lock};
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Called when something has happened.
type Notice = Box<dyn Fn() + Send + Sync>;

/// Writers of one row are found this many leaves apart at an end of a base node, see `is_one_row`.
const ROW_AT_AN_END: usize = (FANOUT + 1) / 4;

/// Joins in one visit of `join_idle`: well under a millisecond.
const JOINS_A_VISIT: usize = 256;

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
    split_first: OnceLock<Notice>,
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

    /// The tree has been given a single, empty base node.
    pub(super) fn forget_routes(&mut self) {
        *self.base_nodes.get_mut() = 1;
        *self.route_bytes.get_mut() = 0;
    }
}

impl<R: Release> CaTree<R> {
    /// Sets what is called, with no lock held, each time the tree has gone from one base node to two: from
    /// then on it needs [`join_idle`](crate::Backend::join_idle) now and then. Only the first call counts.
    pub fn on_first_split(&self, notice: Box<dyn Fn() + Send + Sync>) {
        let _ = self.adapting.split_first.set(notice);
    }

    /// Ends a write: splits or joins its base node if the statistics say so, and unlocks it. `before` is
    /// where the write before this one went, `removed` says that this one took a record out.
    #[inline]
    pub(super) fn adapt_after(
        &self,
        locked: LockedLeaf<'_, R>,
        before: Spot<'_, R>,
        removed: bool,
        key: &[u8],
        guard: &Guard,
    ) {
        let statistics = locked.held.statistics();
        let forced = self.adapting.forcing.forced();
        let fitting = statistics <= SPLIT_ABOVE && !locked.base.wants_to_join(statistics);
        if !fitting || removed || forced.is_some() {
            self.adapt(locked, before, removed, forced, key, guard);
        }
    }

    #[cold]
    fn adapt(
        &self,
        locked: LockedLeaf<'_, R>,
        before: Spot<'_, R>,
        removed: bool,
        forced: Option<Forced>,
        key: &[u8],
        guard: &Guard,
    ) {
        let LockedLeaf { base, held, .. } = locked;
        let mut first = false;
        if matches!(forced, Some(Forced::Split)) {
            first = self.split(base, &held, SplitPoint::Middle, key, guard);
        } else if matches!(forced, Some(Forced::Join)) {
            self.join(base, &held, key, guard);
        } else if held.statistics() > SPLIT_ABOVE {
            first = self.split_contended(base, &held, before, key, guard);
        } else if base.wants_to_join(held.statistics())
            || (removed && held.statistics() < EMPTY_JOIN_BELOW && is_empty(base))
        {
            self.join(base, &held, key, guard);
        }
        drop(held);
        if first && let Some(notice) = self.adapting.split_first.get() {
            notice();
        }
    }

    /// Splits a base node between the last two writers.
    fn split_contended(
        &self,
        base: &Base<R>,
        held: &Held<'_>,
        before: Spot<'_, R>,
        key: &[u8],
        guard: &Guard,
    ) -> bool {
        let Some(other) = key_at(before, guard) else {
            // The next writer will know where the last one was.
            return false;
        };
        if other == key {
            // A cut cannot part writers that contend for one key.
            held.reset_statistics();
            return false;
        }
        let (low, high) = if other < key {
            (other, key)
        } else {
            (key, other)
        };
        if before.is_new && base.last(held, guard).is_new && self.is_one_row(low, high, guard) {
            held.reset_statistics();
            return false;
        }
        self.split(base, held, SplitPoint::Between(low, high), key, guard)
    }

    /// Whether two new keys, which ascend, are likely of one row: of keys that each writer draws before it
    /// comes, so that they come a little out of order. Its writers would go on to meet behind any cut.
    ///
    /// They are if there is hardly a leaf between them. Where one is at an end of the base node, which the
    /// caller holds, it may be further to the other: so far as the row has got while a writer slept.
    fn is_one_row(&self, low: &[u8], high: &[u8], guard: &Guard) -> bool {
        let (first, last) = (self.path(low, guard), self.path(high, guard));
        let at_an_end =
            first.fences.low == first.base_fences.low || last.fences.high == last.base_fences.high;
        let apart = leaves_apart(&first.steps, &last.steps);
        apart <= if at_an_end { ROW_AT_AN_END } else { 1 }
    }

    /// Splits a base node, which the caller holds; `key` is in its range. True if it was the only one.
    pub(super) fn split(
        &self,
        base: &Base<R>,
        held: &Held<'_>,
        wish: SplitPoint<'_>,
        key: &[u8],
        guard: &Guard,
    ) -> bool {
        let Some(_adapting) = self.adapting.lock.try_lock() else {
            return false;
        };
        let path = self.path(key, guard);
        let mut nodes = Nodes::new(guard);
        let Some(parts) = cut(base.root(), path.base_fences, wish, &mut nodes) else {
            held.reset_statistics();
            return false;
        };
        // How many records are on which side is not known, nor of interest: only sums are shown.
        let mut counts = base.counts();
        counts.bytes += nodes.bytes();
        counts.node_bytes += nodes.bytes();
        let join_delay = match wish {
            SplitPoint::Middle => base.join_delay(),
            SplitPoint::Between(..) => base.join_delay() + 1,
        };
        let left = nodes.base(parts.left, counts, join_delay);
        let none = Counts {
            counts_subtrees: counts.counts_subtrees,
            ..Counts::default()
        };
        let right = nodes.base(parts.right, none, join_delay);
        let mut routes = Nodes::new(guard);
        routes.mark_dead(Node::of(base));
        let with = Replacement::Two(left, parts.separator, right);
        // SAFETY: both locks are held, and what hung from the link is the base node, which is dead (C2, C3).
        let bytes = unsafe { self.publish(&path.routes, with, nodes, routes) };
        self.note(&self.adapting.splits, 1, bytes);
        self.adapting.base_nodes.load(Relaxed) == 2
    }

    /// Joins a base node, which the caller holds, with a neighbour, unless it has none or another
    /// thread is busy there. `key` is in its range.
    pub(super) fn join(&self, base: &Base<R>, held: &Held<'_>, key: &[u8], guard: &Guard) {
        // If it cannot be done now, another thousand writes are waited for.
        held.reset_statistics();
        let Some(_adapting) = self.adapting.lock.try_lock() else {
            return;
        };
        let path = self.path(key, guard);
        let Some((step, above)) = path.routes.split_last() else {
            // Alone, and for long: what was is forgotten.
            base.set_join_delay(base.join_delay().saturating_sub(1));
            return;
        };
        let neighbour = Neighbour::find(step);
        let other = neighbour.base;
        let Some(_other_held) = other.try_lock() else {
            return;
        };

        let mut nodes = Nodes::new(guard);
        let (left, right, fences) = match neighbour.is_right {
            true => (base, other, path.base_fences.to(neighbour.fences)),
            false => (other, base, neighbour.fences.to(path.base_fences)),
        };
        let (left, right) = (left.root(), right.root());
        let joined = graft(left, neighbour.separator, right, fences, &mut nodes);
        let (mine, theirs) = (base.counts(), other.counts());
        let counts = Counts {
            records: mine.records + theirs.records,
            bytes: mine.bytes + theirs.bytes + nodes.bytes(),
            node_bytes: mine.node_bytes + theirs.node_bytes + nodes.bytes(),
            contended: mine.contended + theirs.contended,
            uncontended: mine.uncontended + theirs.uncontended,
            counts_subtrees: mine.counts_subtrees || theirs.counts_subtrees,
        };
        let join_delay = base.join_delay().max(other.join_delay());
        let mut child = nodes.base(joined, counts, join_delay);
        let mut routes = Nodes::new(guard);
        routes.mark_dead(Node::of(base));
        routes.mark_dead(Node::of(other));
        for step in neighbour.way.iter().rev() {
            child = with_other_child(&mut routes, step, child);
        }
        routes.mark_dead(Node::of(step.inner));
        let with = without_pair(&mut routes, step, neighbour.pair, child);
        // SAFETY: all three locks are held, and what hung from the link is the route node above both base
        // nodes; all of them are dead (C2, C3).
        let bytes = unsafe { self.publish(above, with, nodes, routes) };
        self.note(&self.adapting.joins, -1, bytes);
    }

    /// Puts `with` in the place of what hangs from the last of `steps`, or from the root, and retires what is
    /// dead: `nodes` of base nodes, and `routes`. Returns by how many bytes the latter have become larger.
    ///
    /// # Safety
    /// As for [`replace`]. All that is marked dead hung only from what is replaced.
    unsafe fn publish<'g>(
        &self,
        steps: &[PathNode<'g, R>],
        with: Replacement<'g, R>,
        nodes: Nodes<'g, R>,
        mut routes: Nodes<'g, R>,
    ) -> i64 {
        // SAFETY: the contract; after this nothing that is marked dead can be reached (C6).
        unsafe {
            replace(&self.root, Fences::NONE, steps, with, &mut routes);
            nodes.finish();
            routes.finish()
        }
    }

    /// Counts a split (1) or a join (-1). The caller holds the lock of adaptation.
    fn note(&self, count: &AtomicU64, base_nodes: i64, route_bytes: i64) {
        let adapting = &self.adapting;
        count.store(count.load(Relaxed) + 1, Relaxed);
        let bases = adapting.base_nodes.load(Relaxed);
        adapting
            .base_nodes
            .store(bases.wrapping_add_signed(base_nodes), Relaxed);
        let bytes = adapting.route_bytes.load(Relaxed);
        adapting.route_bytes.store(bytes + route_bytes, Relaxed);
    }

    /// Lets base nodes to which no writer came since the last visit drift towards joining. Whether there
    /// is but one base node.
    ///
    /// Ends after [`JOINS_A_VISIT`], so that the epoch does not stand still. The others get their turn,
    /// since those that were just joined will not join again before they have been visited a few times.
    pub(super) fn join_idle_base_nodes(&self, guard: &Guard) -> bool {
        let mut left = JOINS_A_VISIT;
        self.for_each_base(guard, &mut |base, fences| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            // A base node that is being written to is not idle.
            let Some(held) = base.try_lock() else {
                return ControlFlow::Continue(());
            };
            if !base.header.is_dead() && base.was_idle() {
                held.count(IDLE_COST);
                base.set_join_delay(base.join_delay().saturating_sub(1));
                if base.wants_to_join(held.statistics()) {
                    self.join(base, &held, fences.low.unwrap_or(&[]), guard);
                    left -= 1;
                }
            }
            ControlFlow::Continue(())
        });
        self.adapting.base_nodes.load(Relaxed) == 1
    }

    /// Visits the base nodes in the order of their keys until `visit` breaks. One that is split or joined
    /// meanwhile may be visited, be missed, or be visited though it is dead.
    fn for_each_base<'g>(
        &'g self,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Base<R>, Fences<'g>) -> ControlFlow<()>,
    ) {
        let mut ahead = vec![(self.root(guard), Fences::NONE)];
        while let Some((node, fences)) = ahead.pop() {
            match node.kind() {
                Kind::Base(base) => {
                    if visit(base, fences).is_break() {
                        return;
                    }
                }
                Kind::Inner(inner) => {
                    for place in (0..=inner.len()).rev() {
                        ahead.push((inner.child(place), fences.of_child(inner, place)));
                    }
                }
                Kind::Leaf(_) => unreachable!("a base node is above each leaf"),
            }
        }
    }
}

/// The base node beside another, and the way to it from the lowest route node above both.
struct Neighbour<'g, R: Release> {
    base: &'g Base<R>,
    fences: Fences<'g>,
    is_right: bool,
    /// Route nodes below the common one.
    way: Vec<PathNode<'g, R>>,
    /// The place in the common node of the left one of the two children.
    pair: usize,
    /// What is between the two.
    separator: &'g [u8],
}

impl<'g, R: Release> Neighbour<'g, R> {
    /// The neighbour of the base node to which `step` leads: the right one, unless that hangs from
    /// another route node.
    fn find(step: &PathNode<'g, R>) -> Self {
        let is_right = step.place < step.inner.len();
        let pair = if is_right { step.place } else { step.place - 1 };
        let beside = if is_right { pair + 1 } else { pair };
        let mut fences = step.fences.of_child(step.inner, beside);
        let mut node = step.inner.child(beside);
        let mut way = Vec::new();
        loop {
            match node.kind() {
                Kind::Base(base) => {
                    return Neighbour {
                        base,
                        fences,
                        is_right,
                        way,
                        pair,
                        separator: step.inner.separator(pair),
                    };
                }
                Kind::Inner(inner) => {
                    let place = if is_right { 0 } else { inner.len() };
                    way.push(PathNode {
                        inner,
                        place,
                        fences,
                    });
                    fences = fences.of_child(inner, place);
                    node = inner.child(place);
                }
                Kind::Leaf(_) => unreachable!("a base node is above each leaf"),
            }
        }
    }
}

/// A copy of a route node, which is marked dead, with another child.
fn with_other_child<'g, R: Release>(
    routes: &mut Nodes<'g, R>,
    step: &PathNode<'g, R>,
    child: Node<'g, R>,
) -> Node<'g, R> {
    let mut children = step.inner.children();
    children[step.place] = child;
    let level = step.inner.header().level;
    let copy = routes.inner(level, step.fences, &step.inner.separators(), &children);
    routes.mark_dead(Node::of(step.inner));
    copy
}

/// How many leaves one way to a leaf is to the left of another; many, if they are not under the same node
/// of the lowest level, or under two side by side.
fn leaves_apart<R: Release>(left: &[PathNode<'_, R>], right: &[PathNode<'_, R>]) -> usize {
    const MANY: usize = usize::MAX;
    let mut parted = false;
    for (level, (one, other)) in left.iter().zip(right).enumerate() {
        let is_lowest = level + 1 == left.len().max(right.len());
        let to_its_end = one.inner.len() - one.place;
        match (parted, is_lowest) {
            (false, true) => return other.place - one.place,
            (false, false) if other.place == one.place => {}
            (false, false) if other.place == one.place + 1 => parted = true,
            (true, true) => return to_its_end + 1 + other.place,
            (true, false) if to_its_end == 0 && other.place == 0 => {}
            _ => return MANY,
        }
    }
    // Both end in the root, or one where the other goes on.
    if left.is_empty() && right.is_empty() {
        0
    } else {
        MANY
    }
}

/// Whether a base node, which the caller holds, has no record.
fn is_empty<R: Release>(base: &Base<R>) -> bool {
    matches!(base.root().kind(), Kind::Leaf(leaf) if leaf.live() == 0)
}

/// The key that was written at a spot, or another one of the leaf.
fn key_at<'g, R: Release>(spot: Spot<'g, R>, guard: &'g Guard) -> Option<&'g [u8]> {
    let leaf = spot.leaf?;
    let there = leaf.record(spot.at, guard);
    let any = || (0..leaf.len()).find_map(|at| leaf.record(at, guard));
    Some(there.or_else(any)?.key())
}
