//! Walks over the base nodes, each as of the moment at which the walk comes to it.
//!
//! A walk remembers the route nodes at which it has turned towards its start, and goes on at the
//! other child of the last of them. It misses nothing:
//! - The subtree of a child of a route node covers at least the range of keys that it had when the
//!   route node was in the tree. It loses keys only together with the route node, whose slots then
//!   keep their nodes (LOCK_FREE-1); a join adds keys. So a container that is found on the path has
//!   all keys between the separators on the path. It may have more; these are skipped, and the walk
//!   comes to them later.
//! - A base node that has got keys from beyond a route node may be split there. Then the walk
//!   passes the key of this route node on a path below it, and must not go on from the route node
//!   itself. It notices this by comparing keys, and starts again at the root.

use super::Routes;
use super::node::{Base, Node, Route, Side};
use ats_mem::record::{Record, Release};
use ats_sync::Guard;
use std::ops::Bound;

impl<R: Release> Routes<R> {
    pub(super) fn walk_up<'g>(
        &'g self,
        from: Bound<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    ) {
        let (mut from, mut node) = (from, self.root.load(guard));
        let mut way = Vec::new();
        loop {
            let is_left = |separator: &[u8]| match from {
                Bound::Unbounded => true,
                Bound::Included(key) | Bound::Excluded(key) => key < separator,
            };
            let base = down(node, is_left, Side::Left, &mut way, guard);
            let next = way.pop();
            let high = next.map(|route| &*route.key);
            base.tree().up(from, high, most, found);
            match next {
                Some(route) if found.len() < most => {
                    from = Bound::Included(&route.key);
                    let is_passed = |above: &&Route<R>| *above.key <= *route.key;
                    node = if way.last().is_some_and(is_passed) {
                        self.start_again(&mut way, guard)
                    } else {
                        route.slot(Side::Right).load(guard)
                    };
                }
                _ => return,
            }
        }
    }

    fn start_again<'g>(&'g self, way: &mut Vec<&'g Route<R>>, guard: &'g Guard) -> &'g Node<R> {
        way.clear();
        self.root.load(guard)
    }

    pub(super) fn walk_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    ) {
        let (mut below, mut node) = (below, self.root.load(guard));
        let mut way = Vec::new();
        loop {
            let is_left = |separator: &[u8]| below.is_some_and(|below| below <= separator);
            let base = down(node, is_left, Side::Right, &mut way, guard);
            let next = way.pop();
            let low = next.map(|route| &*route.key);
            base.tree().down(low, below, most, found);
            match next {
                Some(route) if found.len() < most => {
                    below = Some(&route.key);
                    let is_passed = |above: &&Route<R>| *above.key >= *route.key;
                    node = if way.last().is_some_and(is_passed) {
                        self.start_again(&mut way, guard)
                    } else {
                        route.slot(Side::Left).load(guard)
                    };
                }
                _ => return,
            }
        }
    }
}

/// Descends to a base node: to the left at the keys for which `is_left` is `true`. Pushes the route
/// nodes at which it turns to `side`.
fn down<'g, R: Release>(
    node: &'g Node<R>,
    is_left: impl Fn(&[u8]) -> bool,
    side: Side,
    way: &mut Vec<&'g Route<R>>,
    guard: &'g Guard,
) -> &'g Base<R> {
    let mut node = node;
    loop {
        match node {
            Node::Base(base) => return base,
            Node::Route(route) => {
                let left = is_left(&route.key);
                if left == (side == Side::Left) {
                    way.push(route);
                }
                node = route.towards(left).load(guard);
            }
        }
    }
}
