//! Split of a base node, and its join with a neighbour.
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
    /// Splits a base node, which the caller holds; `key` is in its range. Returns `true` if it was
    /// the only one.
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
        // The number of records of each side is unknown and irrelevant: only sums are reported.
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
        // SAFETY: both locks are held, and the link led to the base node, which is dead (CATREE-2,
        // CATREE-3).
        let bytes = unsafe { self.publish(&path.routes, with, nodes, routes) };
        routes_held.count_split(bytes);
        self.base_nodes() == 2
    }

    /// Joins a base node, which the caller holds, with a neighbour, unless it has none or another
    /// thread holds that. `key` is in its range.
    pub(super) fn join(&self, base: &Base<R>, held: &Held<'_>, key: &[u8], guard: &Guard) {
        self.join_unless(base, held, key, |_| false, guard);
    }

    /// Joins like [`join`](Self::join), but not with a neighbour that `spares` accepts.
    pub(super) fn join_unless(
        &self,
        base: &Base<R>,
        held: &Held<'_>,
        key: &[u8],
        spares: impl FnOnce(&Base<R>) -> bool,
        guard: &Guard,
    ) {
        // A failed attempt is repeated after another thousand writes.
        held.reset_statistics();
        if self.root().is_only(base, guard) {
            // The node has been alone for long, so past contention is gradually forgotten.
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
        let (left, right, fences) = if neighbour.is_right {
            (base, other, path.base_fences.to(neighbour.fences))
        } else {
            (other, base, neighbour.fences.to(path.base_fences))
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
        // SAFETY: all three locks are held, and the link led to the route node above both base
        // nodes; all of them are dead (CATREE-2, CATREE-3).
        let bytes = unsafe { self.publish(above, with, nodes, routes) };
        routes_held.count_join(bytes);
    }

    /// Replaces the child of the last of `steps`, or of the root, by `with`, and retires the dead
    /// nodes: `nodes` of base nodes, and `routes`. Returns the growth of the latter in bytes.
    ///
    /// # Safety
    /// The same as for [`replace`]. All nodes marked dead must have been reachable only through the
    /// replaced child.
    unsafe fn publish<'g>(
        &self,
        steps: &[PathNode<'g, R>],
        with: Replacement<'g, R>,
        nodes: Nodes<'g, R>,
        mut routes: Nodes<'g, R>,
    ) -> i64 {
        // SAFETY: the caller holds the locks that `replace` demands (CATREE-2). All nodes marked
        // dead were below the replaced child, so none can be reached after the store (CATREE-6).
        unsafe {
            replace(self.root().link(), Fences::NONE, steps, with, &mut routes);
            nodes.finish();
            routes.finish()
        }
    }
}

/// The neighbour of a base node, and the path to it from the lowest route node above both.
struct Neighbour<'g, R: Release> {
    base: &'g Base<R>,
    fences: Fences<'g>,
    is_right: bool,
    /// Route nodes of the path, below the common one.
    way: Vec<PathNode<'g, R>>,
    /// Index in the common node of the left one of the two children.
    pair: usize,
    /// The key between the two.
    separator: &'g [u8],
}

impl<'g, R: Release> Neighbour<'g, R> {
    /// Finds the neighbour of the base node to which `step` leads: the right one, unless that has
    /// another parent.
    fn find(step: &PathNode<'g, R>) -> Self {
        let is_right = step.child_index < step.inner.len();
        let pair = if is_right {
            step.child_index
        } else {
            step.child_index - 1
        };
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
                    let child_index = if is_right { 0 } else { inner.len() };
                    way.push(PathNode {
                        inner,
                        child_index,
                        fences,
                    });
                    fences = fences.of_child(inner, child_index);
                    node = inner.child(child_index);
                }
                Kind::Leaf(_) => unreachable!("a base node is above each leaf"),
            }
        }
    }
}

/// Copies a route node, which is marked dead, with another child.
fn with_other_child<'g, R: Release>(
    routes: &mut Nodes<'g, R>,
    step: &PathNode<'g, R>,
    child: Node<'g, R>,
) -> Node<'g, R> {
    let mut children = step.inner.children();
    children[step.child_index] = child;
    let level = step.inner.header().level;
    let copy = routes.inner(level, step.fences, &step.inner.separators(), &children);
    routes.mark_dead(Node::of(step.inner));
    copy
}
