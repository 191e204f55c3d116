//! Walks: from base node to base node, each as it is when the walk comes to it.
//!
//! A walk remembers the route nodes that it has passed on the side where it began, and goes on from
//! the last of them. It misses nothing:
//! - The part below a child of a route node has at least the keys that belonged there when the node
//!   was in the tree: it loses them only together with the node, whose slots then keep what had
//!   them (LOCK_FREE-1), and a join adds to them. So a container that is found on the way has all
//!   keys between the ends that the way tells. It may have more, which are passed over: the walk
//!   comes to them later.
//! - A base node that has got keys from beyond a route node may be split there. Then the walk
//!   passes this route node on a way below it, and must not come back to it. It sees that by the
//!   keys, and starts again at the root.

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
                    node = match way.last().is_some_and(is_passed) {
                        true => self.start_again(&mut way, guard),
                        false => route.slot(Side::Right).load(guard),
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
                    node = match way.last().is_some_and(is_passed) {
                        true => self.start_again(&mut way, guard),
                        false => route.slot(Side::Left).load(guard),
                    };
                }
                _ => return,
            }
        }
    }
}

/// Goes down to a base node, to the left of those keys of which `is_left` says so. Remembers the
/// route nodes that it passes on this side.
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
