//! Paths from the root to a leaf, and the publication of changes upwards along them.
//!
//! A node whose number of children changes is replaced by a copy, which changes the link in its
//! parent. If the copy must be two nodes, the parent is copied, too, and so on. The last of these
//! stores makes the whole change visible at once.

use super::base::Base;
use super::fences::Fences;
use super::header::{BASE, FANOUT};
use super::inner::Inner;
use super::kind::Kind;
use super::link::{Link, Node, copy_for_any_release};
use super::nodes::{Nodes, Replacement};
use super::root::Root;
use super::simd_search::Baseline;
use crate::record::Release;
use ats_sync::Guard;

/// A node of a path, and the child through which the path continues.
pub(super) struct PathNode<'g, R: Release> {
    pub inner: &'g Inner<R>,
    pub child_index: usize,
    pub fences: Fences<'g>,
}

copy_for_any_release!(PathNode);

/// The path from the root to the leaf of a key. Exact below the base node for the holder of its
/// lock, and above it for the holder of the lock of adaptation.
pub(super) struct Path<'g, R: Release> {
    pub routes: Vec<PathNode<'g, R>>,
    pub base: &'g Base<R>,
    pub base_fences: Fences<'g>,
    pub steps: Vec<PathNode<'g, R>>,
    pub fences: Fences<'g>,
}

impl<R: Release> Root<R> {
    /// Returns the path to the leaf of `key`.
    pub(super) fn path<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Path<'g, R> {
        let (routes, base, base_fences) = way(self.node(guard), Fences::NONE, key);
        let Kind::Base(base) = base.kind() else {
            unreachable!("a base node is above each leaf")
        };
        let (steps, _leaf, fences) = way(base.root(), base_fences, key);
        Path {
            routes,
            base,
            base_fences,
            steps,
            fences,
        }
    }
}

/// Follows `key` down inner nodes or route nodes. Returns the path, the node below them, and its
/// fences.
fn way<'g, R: Release>(
    from: Node<'g, R>,
    fences: Fences<'g>,
    key: &[u8],
) -> (Vec<PathNode<'g, R>>, Node<'g, R>, Fences<'g>) {
    let (mut node, mut fences) = (from, fences);
    let mut steps = Vec::new();
    while let Kind::Inner(inner) = node.kind() {
        let child_index = inner.child_for::<Baseline>(key);
        steps.push(PathNode {
            inner,
            child_index,
            fences,
        });
        fences = fences.of_child(inner, child_index);
        node = inner.child(child_index);
    }
    (steps, node, fences)
}

/// Replaces the child of the last of `steps`, or of `root` if there are none, by `with`. Ancestors
/// that must be replaced, too, are marked dead here.
///
/// # Safety
/// The caller must hold the lock that guards the links (CATREE-1, CATREE-2), and must have marked
/// dead all nodes that `with` replaces (CATREE-3), and no others.
pub(super) unsafe fn replace<'g, R: Release>(
    root: &Link<R>,
    root_fences: Fences<'_>,
    steps: &[PathNode<'g, R>],
    with: Replacement<'g, R>,
    nodes: &mut Nodes<'g, R>,
) {
    let (link, node) = match (steps.split_last(), with) {
        (None, Replacement::One(node)) => (root, node),
        (None, Replacement::Two(left, separator, right)) => {
            let level = left.header().level.max(right.header().level) + 1;
            let node = nodes.inner(level, root_fences, &[&separator], &[left, right]);
            (root, node)
        }
        (Some((step, _)), Replacement::One(node)) => (step.inner.link(step.child_index), node),
        (Some((step, above)), two) => {
            let with = with_child(step, two, nodes);
            // SAFETY: the caller holds the lock that guards the links (CATREE-1, CATREE-2), and
            // `with_child` has marked the node of `step` dead before it is replaced (CATREE-3).
            return unsafe { replace(root, root_fences, above, with, nodes) };
        }
    };
    // SAFETY: the caller holds the lock that guards the link (CATREE-1, CATREE-2), and the old node
    // has been marked dead (CATREE-3).
    unsafe { link.store(node) };
}

/// Returns the replacement of the node of `step`, which is marked dead, if `with` replaces its
/// child.
pub(super) fn with_child<'g, R: Release>(
    step: &PathNode<'g, R>,
    with: Replacement<'g, R>,
    nodes: &mut Nodes<'g, R>,
) -> Replacement<'g, R> {
    nodes.mark_dead(Node::of(step.inner));
    let mut separators = step.inner.separators();
    let mut children = step.inner.children();
    match &with {
        Replacement::One(node) => children[step.child_index] = *node,
        Replacement::Two(left, separator, right) => {
            separators.insert(step.child_index, separator);
            children[step.child_index] = *left;
            children.insert(step.child_index + 1, *right);
        }
    }
    build(nodes, step, &separators, &children)
}

/// Builds the replacement of the node of `step` with these children, or two nodes if they are too
/// many. It is not higher, and lower if the children have become lower: otherwise a tree that grows
/// and shrinks repeatedly would get another level each time, although it never has many nodes.
pub(super) fn build<'g, R: Release>(
    nodes: &mut Nodes<'g, R>,
    step: &PathNode<'g, R>,
    separators: &[&[u8]],
    children: &[Node<'g, R>],
) -> Replacement<'g, R> {
    let level = level_above(children, step.inner.header().level);
    let (fences, old) = (step.fences, &[step.inner]);
    if separators.len() <= FANOUT {
        let node = nodes.inner_like(old, level, fences, separators, children);
        return Replacement::One(node);
    }
    // A key at the end likely belongs to an ascending row with more keys to follow: the left node
    // stays full. The same holds for descending rows.
    let middle = match step.child_index {
        0 => 1,
        child_index if child_index + 1 >= separators.len() => FANOUT - 1,
        _ => separators.len() / 2,
    };
    let (left, right) = (
        fences.below(separators[middle]),
        fences.from(separators[middle]),
    );
    Replacement::Two(
        nodes.inner_like(
            old,
            level,
            left,
            &separators[..middle],
            &children[..=middle],
        ),
        separators[middle].to_vec(),
        nodes.inner_like(
            old,
            level,
            right,
            &separators[middle + 1..],
            &children[middle + 1..],
        ),
    )
}

/// Returns the level of a node with these children that replaces one of level `before`.
fn level_above<R: Release>(children: &[Node<'_, R>], before: u8) -> u8 {
    // The nodes below the lowest inner nodes and route nodes need not be read, and are rarely in
    // the cache.
    if before == 1 || before == BASE + 1 {
        return before;
    }
    let highest = children.iter().map(|child| child.header().level).max();
    let level = highest.map_or(before, |highest| highest + 1);
    debug_assert!(
        level <= before,
        "children are lower than what they hang from"
    );
    level
}
