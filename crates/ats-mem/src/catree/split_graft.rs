//! Split of a base node's B+tree into two, and graft of two into one.
//!
//! Both change one path: the nodes on it are copied, those beside it are reused. So the cost is
//! O(height) nodes, and no record moves. Trees need not be equally high, nor their
//! nodes equally far from the leaves: a node with one child is replaced by the child.

use super::fences::Fences;
use super::header::FANOUT;
use super::inner::Inner;
use super::kind::Kind;
use super::leaf::Leaf;
use super::leaf_edit::{fit_together, two_leaves};
use super::link::Node;
use super::nodes::{Nodes, Parts, Replacement};
use super::path::{PathNode, with_child};
use super::simd_search::Baseline;
use crate::record::Release;
use std::cmp::Ordering;

/// The point at which a leaf is split.
#[derive(Clone, Copy)]
pub(super) enum SplitPoint<'k> {
    Middle,
    /// A point that puts these two ascending keys on different sides.
    Between(&'k [u8], &'k [u8]),
}

/// Splits the tree below `node`, and marks the nodes on the path dead. Returns `None`, and changes
/// nothing, if it cannot be split at this point.
pub(super) fn split<'g, R: Release>(
    node: Node<'g, R>,
    fences: Fences<'_>,
    wish: SplitPoint<'_>,
    nodes: &mut Nodes<'g, R>,
) -> Option<Parts<'g, R>> {
    match node.kind() {
        Kind::Leaf(leaf) => split_leaf(leaf, fences, wish, nodes),
        Kind::Inner(inner) => split_inner(inner, fences, wish, nodes),
        Kind::Base(_) => unreachable!("no base node is below another"),
    }
}

fn split_leaf<'g, R: Release>(
    leaf: Leaf<'g, R>,
    fences: Fences<'_>,
    wish: SplitPoint<'_>,
    nodes: &mut Nodes<'g, R>,
) -> Option<Parts<'g, R>> {
    let items = leaf.items();
    let rank = |key: &[u8]| items.partition_point(|item| item.key() < key);
    let middle = match wish {
        SplitPoint::Middle => items.len() / 2,
        SplitPoint::Between(low, high) => (rank(low) + rank(high)).div_ceil(2),
    };
    let last = items.len().checked_sub(1).filter(|last| *last > 0)?;
    nodes.mark_dead(leaf.node());
    Some(two_leaves(nodes, fences, &items, middle.clamp(1, last)))
}

fn split_inner<'g, R: Release>(
    inner: &'g Inner<R>,
    fences: Fences<'_>,
    wish: SplitPoint<'_>,
    nodes: &mut Nodes<'g, R>,
) -> Option<Parts<'g, R>> {
    let (low, high) = match wish {
        // The children to the left and right of the separator in the middle.
        SplitPoint::Middle => (inner.len() / 2, inner.len() / 2 + 1),
        SplitPoint::Between(low, high) => (
            inner.child_for::<Baseline>(low),
            inner.child_for::<Baseline>(high),
        ),
    };
    let separators = inner.separators();
    let children = inner.children();
    let parts = if low < high {
        let at = low + (high - low - 1) / 2;
        let fence = separators[at];
        Parts {
            left: side(
                nodes,
                inner,
                fences.below(fence),
                &separators[..at],
                &children[..=at],
            ),
            separator: fence.to_vec(),
            right: side(
                nodes,
                inner,
                fences.from(fence),
                &separators[at + 1..],
                &children[at + 1..],
            ),
        }
    } else {
        let at = low;
        let below = split(children[at], fences.of_child(inner, at), wish, nodes)?;
        let fence = &below.separator;
        let (mut lefts, mut rights) = (children[..=at].to_vec(), children[at..].to_vec());
        lefts[at] = below.left;
        rights[0] = below.right;
        Parts {
            left: side(nodes, inner, fences.below(fence), &separators[..at], &lefts),
            right: side(nodes, inner, fences.from(fence), &separators[at..], &rights),
            separator: below.separator,
        }
    };
    nodes.mark_dead(Node::of(inner));
    Some(parts)
}

/// Returns a node of these children, a part of those of `inner`; a single child needs no node.
fn side<'g, R: Release>(
    nodes: &mut Nodes<'g, R>,
    inner: &Inner<R>,
    fences: Fences<'_>,
    separators: &[&[u8]],
    children: &[Node<'g, R>],
) -> Node<'g, R> {
    match children {
        [child] => *child,
        _ => {
            let level = inner.header().level;
            nodes.inner_like(&[inner], level, fences, separators, children)
        }
    }
}

/// Grafts two trees into one: all keys of `left` are below `separator`, those of `right` are not.
/// `fences` is the range of both. Marks the replaced nodes dead.
pub(super) fn graft<'g, R: Release>(
    left: Node<'g, R>,
    separator: &[u8],
    right: Node<'g, R>,
    fences: Fences<'g>,
    nodes: &mut Nodes<'g, R>,
) -> Node<'g, R> {
    match unite(left, separator, right, fences, nodes) {
        Replacement::One(node) => node,
        Replacement::Two(left, separator, right) => {
            let level = left.header().level.max(right.header().level) + 1;
            nodes.inner(level, fences, &[&separator], &[left, right])
        }
    }
}

/// Unites two nodes into one or two, not higher than the higher of them.
fn unite<'g, R: Release>(
    left: Node<'g, R>,
    separator: &[u8],
    right: Node<'g, R>,
    fences: Fences<'g>,
    nodes: &mut Nodes<'g, R>,
) -> Replacement<'g, R> {
    let as_they_are = || Replacement::Two(left, separator.to_vec(), right);
    let order = left.header().level.cmp(&right.header().level);
    match (left.kind(), right.kind(), order) {
        (Kind::Leaf(a), Kind::Leaf(b), _) => {
            let items = [a.items(), b.items()];
            if !fit_together(items[0].len(), items[1].len()) {
                return as_they_are();
            }
            nodes.mark_dead(left);
            nodes.mark_dead(right);
            Replacement::One(nodes.leaf(fences, &items.concat(), None))
        }
        (Kind::Inner(a), Kind::Inner(b), Ordering::Equal) => {
            if a.len() + 1 + b.len() > FANOUT {
                return as_they_are();
            }
            nodes.mark_dead(left);
            nodes.mark_dead(right);
            let separators = [a.separators(), vec![separator], b.separators()].concat();
            let children = [a.children(), b.children()].concat();
            let level = a.header().level;
            let node = nodes.inner_like(&[a, b], level, fences, &separators, &children);
            Replacement::One(node)
        }
        (Kind::Inner(a), _, Ordering::Greater) => {
            let child_index = a.len();
            let inside = fences.of_child(a, child_index);
            let with = unite(a.child(child_index), separator, right, inside, nodes);
            with_child(
                &PathNode {
                    inner: a,
                    child_index,
                    fences,
                },
                with,
                nodes,
            )
        }
        (_, Kind::Inner(b), _) => {
            let child_index = 0;
            let inside = fences.of_child(b, child_index);
            let with = unite(left, separator, b.child(child_index), inside, nodes);
            with_child(
                &PathNode {
                    inner: b,
                    child_index,
                    fences,
                },
                with,
                nodes,
            )
        }
        _ => unreachable!("base nodes do not hang below base nodes, and leaves are the lowest"),
    }
}
