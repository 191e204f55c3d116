//! The way from the root to a base node, which takes no lock and writes nothing.
//!
//! The invariants (PAPER_TREE-1 and so on) are those of [`paper_tree`](super).

use super::Routes;
use super::base::Base;
use super::link::Link;
use super::node::Node;
use super::route::Route;
use super::side::Side;
use ats_mem::record::Release;
use ats_sync::{Guard, Held};
use std::ptr;

/// The place of a base node. Right as long as the base node is valid (PAPER_TREE-3).
pub(super) struct Place<'g, R: Release> {
    pub(super) base: &'g Base<R>,
    /// The word that leads to it.
    pub(super) link: &'g Link<R>,
    /// The route node that has this word, and on which side; none if it is that of the root.
    pub(super) parent: Option<(&'g Route<R>, Side)>,
    /// The number of route nodes on the way.
    pub(super) levels: usize,
}

impl<R: Release> Routes<R> {
    /// The base node of a key.
    #[inline]
    pub(super) fn find<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Place<'g, R> {
        self.descend(guard, |route| route.side_of(key))
    }

    /// Goes down from the root, with the side to take at each route node.
    #[inline]
    pub(super) fn descend<'g>(
        &'g self,
        guard: &'g Guard,
        turn: impl FnMut(&'g Route<R>) -> Side,
    ) -> Place<'g, R> {
        descend_from(&self.root, None, guard, turn)
    }

    /// The base node next to the child on this side of a route node: that which is beyond the route
    /// node.
    pub(super) fn neighbour<'g>(
        &'g self,
        parent: &'g Route<R>,
        side: Side,
        guard: &'g Guard,
    ) -> Place<'g, R> {
        let beyond = side.other();
        descend_from(parent.child(beyond), Some((parent, beyond)), guard, |_| {
            side
        })
    }

    /// Locks the parent of a route node, which is valid and locked, if it has one. Returns the word
    /// in it that leads to the route node, or that of the root.
    pub(super) fn lock_parent<'g>(
        &'g self,
        route: &'g Route<R>,
        guard: &'g Guard,
    ) -> (&'g Link<R>, Option<(&'g Route<R>, Held<'g>)>) {
        loop {
            // A valid route node is on the way to its separator: each node on the way was linked at
            // some moment since the root was read, and led there then.
            let (mut link, mut parent) = (&self.root, None);
            loop {
                match link.load(guard) {
                    Node::Route(here) if ptr::eq(here, route) => break,
                    Node::Route(here) => {
                        link = here.child(here.side_of(route.separator()));
                        parent = Some(here);
                    }
                    Node::Base(_) => unreachable!("a valid route node is linked (PAPER_TREE-3)"),
                }
            }
            let Some(parent) = parent else {
                return (link, None);
            };
            let held = parent.lock();
            // It has no other parent than this one before this one is spliced out (PAPER_TREE-2).
            if parent.is_valid(&held) {
                return (link, Some((parent, held)));
            }
        }
    }
}

/// Goes down from a word, which this route node has on that side.
#[inline]
fn descend_from<'g, R: Release>(
    link: &'g Link<R>,
    parent: Option<(&'g Route<R>, Side)>,
    guard: &'g Guard,
    mut turn: impl FnMut(&'g Route<R>) -> Side,
) -> Place<'g, R> {
    let (mut link, mut parent, mut levels) = (link, parent, 0);
    loop {
        match link.load(guard) {
            Node::Base(base) => {
                return Place {
                    base,
                    link,
                    parent,
                    levels,
                };
            }
            Node::Route(route) => {
                let side = turn(route);
                link = route.child(side);
                parent = Some((route, side));
                levels += 1;
            }
        }
    }
}
