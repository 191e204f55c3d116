//! The common part of all nodes: their number, and their release.
//!
//! The invariants (PAPER_TREE-1 and so on) are those of [`paper_tree`](super).

use super::Routes;
use super::base::Base;
use super::node::{Made, Node};
use super::route::Route;
use super::side::Side;
use ats_mem::Adaptation;
use ats_mem::record::{Record, Release};
use ats_sync::Guard;
use ats_sync::count::atomic::Ordering::Relaxed;
use std::ops::{Bound, ControlFlow};
use std::ptr::NonNull;

impl<R: Release> Routes<R> {
    /// Visits the nodes, each with the number of route nodes above it. Those that are split or
    /// joined meanwhile may be visited, be missed, or be visited though they are not valid.
    fn visit_nodes<'g>(&'g self, guard: &'g Guard, visit: &mut dyn FnMut(Node<'g, R>, usize)) {
        let mut ahead = vec![(&self.root, 0)];
        while let Some((link, levels)) = ahead.pop() {
            let node = link.load(guard);
            if let Node::Route(route) = node {
                ahead.push((route.child(Side::Right), levels + 1));
                ahead.push((route.child(Side::Left), levels + 1));
            }
            visit(node, levels);
        }
    }

    /// Bytes of memory of the route nodes and base nodes.
    pub(super) fn node_bytes(&self, guard: &Guard) -> usize {
        let mut bytes = 0;
        self.visit_nodes(guard, &mut |node, _| {
            bytes += match node {
                Node::Route(route) => Route::bytes(route),
                Node::Base(base) => Base::bytes(base),
            };
        });
        bytes
    }

    pub(super) fn adaptation(&self, guard: &Guard) -> Adaptation {
        let mut sum = Adaptation {
            splits: self.splits.load(Relaxed),
            joins: self.joins.load(Relaxed),
            ..Adaptation::default()
        };
        self.visit_nodes(guard, &mut |node, levels| match node {
            Node::Route(_) => sum.route_nodes += 1,
            Node::Base(base) => {
                sum.base_nodes += 1;
                sum.depth = sum.depth.max(levels);
                if let Some(contents) = base.read() {
                    sum.contended += contents.turns.contended;
                    sum.uncontended += contents.turns.uncontended;
                }
            }
        });
        sum
    }

    /// All records, for a caller that has the tree alone.
    pub(super) fn records(&mut self) -> Vec<NonNull<Record<R>>> {
        let mut records = Vec::new();
        let guard = ats_sync::pin();
        self.visit_nodes(&guard, &mut |node, _| {
            if let Node::Base(base) = node
                && let Some(contents) = base.read()
            {
                let _ = contents.records.visit_up(Bound::Unbounded, &mut |record| {
                    records.push(record.pointer());
                    ControlFlow::Continue(())
                });
            }
        });
        records.into_iter().filter_map(NonNull::new).collect()
    }
}

impl<R: Release> Drop for Routes<R> {
    fn drop(&mut self) {
        // SAFETY: the exclusive borrow shows that no other thread has the tree, nor references into
        // it. One word leads to each node that is not retired, as the routes are a tree.
        let mut ahead = vec![unsafe { self.root.take() }];
        while let Some(node) = ahead.pop() {
            if let Made::Route(route) = node {
                for side in [Side::Left, Side::Right] {
                    // SAFETY: the exclusive borrow shows that no other thread has the tree, and one
                    // word leads to each node that is not retired, so each is taken once.
                    ahead.push(unsafe { route.child(side).take() });
                }
            }
        }
    }
}
