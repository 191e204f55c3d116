//! Splitting a base node, and joining it with a neighbour.
//!
//! The caller holds the lock of the base node; the lock of adaptation and that of a neighbour are
//! only tried (CATREE-5).

use super::base::{Base, Counts, sum_pending};
use super::fences::Fences;
use super::kind::Kind;
use super::leaf_edit::without_pair;
use super::link::Node;
use super::nodes::{Nodes, Replacement};
use super::path::{PathNode, replace};
use super::routes::Routes;
use super::split_graft::{SplitPoint, graft, split};
use crate::record::Release;
use ats_sync::{Guard, Held};

impl<R: Release> Routes<R> {
    /// Splits a base node, which the caller holds; `key` is in its range. True if it was the only
    /// one.
    pub(super) fn split(
        &self,
        base: &Base<R>,
        held: &Held<'_>,
        wish: SplitPoint<'_>,
        key: &[u8],
        guard: &Guard,
    ) -> bool {
        let Some(routes_held) = self.try_lock() else {
            return false;
        };
        let path = self.root().path(key, guard);
        let mut nodes = Nodes::new(guard);
        let Some(parts) = split(base.root(), path.base_fences, wish, &mut nodes) else {
            held.reset_statistics();
            return false;
        };
        // The number of records of each side is not known, nor of interest: only sums are shown.
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
        // SAFETY: both locks are held, and what hung from the link is the base node, which is dead
        // (CATREE-2, CATREE-3).
        let bytes = unsafe { self.publish(&path.routes, with, nodes, routes) };
        routes_held.count_split(bytes);
        self.base_nodes() == 2
    }

    /// Joins a base node, which the caller holds, with a neighbour, unless it has none or another
    /// thread is busy there. `key` is in its range.
    pub(super) fn join(&self, base: &Base<R>, held: &Held<'_>, key: &[u8], guard: &Guard) {
        self.join_unless(base, held, key, |_| false, guard);
    }

    /// Joins like [`join`](Self::join), but not with a neighbour that is to be spared.
    pub(super) fn join_unless(
        &self,
        base: &Base<R>,
        held: &Held<'_>,
        key: &[u8],
        spares: impl FnOnce(&Base<R>) -> bool,
        guard: &Guard,
    ) {
        // If it cannot be done now, another thousand writes are waited for.
        held.reset_statistics();
        if self.root().is_only(base, guard) {
            // Alone, and for long: what was is forgotten.
            base.set_join_delay(base.join_delay().saturating_sub(1));
            return;
        }
        let Some(routes_held) = self.try_lock() else {
            return;
        };
        let path = self.root().path(key, guard);
        let Some((step, above)) = path.routes.split_last() else {
            return;
        };
        let neighbour = Neighbour::find(step);
        let other = neighbour.base;
        let Some(_other_held) = other.try_lock() else {
            return;
        };
        if spares(other) {
            return;
        }

        let mut nodes = Nodes::new(guard);
        let (left, right, fences) = match neighbour.is_right {
            true => (base, other, path.base_fences.to(neighbour.fences)),
            false => (other, base, neighbour.fences.to(path.base_fences)),
        };
        let (left, right) = (left.root(), right.root());
        let joined = graft(left, neighbour.separator, right, fences, &mut nodes);
        let (mine, theirs) = (base.counts(), other.counts());
        let counts = Counts {
            objects: mine.objects + theirs.objects,
            pending: sum_pending([mine.pending, theirs.pending].into_iter()),
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
        // SAFETY: all three locks are held, and what hung from the link is the route node above
        // both base nodes; all of them are dead (CATREE-2, CATREE-3).
        let bytes = unsafe { self.publish(above, with, nodes, routes) };
        routes_held.count_join(bytes);
    }

    /// Puts `with` in the place of what hangs from the last of `steps`, or from the root, and
    /// retires what is dead: `nodes` of base nodes, and `routes`. Returns by how many bytes the
    /// latter have become larger.
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
        // SAFETY: the caller holds the locks that `replace` asks for (CATREE-2). All that is marked
        // dead hung from what is replaced, so none of it can be reached after the store (CATREE-6).
        unsafe {
            replace(self.root().link(), Fences::NONE, steps, with, &mut routes);
            nodes.finish();
            routes.finish()
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
    /// The key between the two.
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
