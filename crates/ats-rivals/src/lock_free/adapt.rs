//! Adaptation to contention: splits and joins of base nodes.
//!
//! The invariants (LOCK_FREE-1 and so on) are those of [`lock_free`](super).

use super::edit::Edit;
use super::node::{Base, JOIN_BELOW, Node, SPLIT_ABOVE};
use super::{LockFreeTree, Routes};
use ats_mem::Adaptation;
use ats_mem::forcing::Forced;
use ats_mem::record::Release;
use ats_sync::count::atomic::Ordering::Relaxed;
use ats_sync::{Guard, pin};

impl<R: Release> Routes<R> {
    /// Splits or joins a base node if its statistics demand it. The caller has just put it into
    /// the tree.
    pub(super) fn adapt<'g>(&'g self, node: &'g Node<R>, guard: &'g Guard) {
        let Node::Base(base) = node else {
            return;
        };
        match self.forcing.decide_forced() {
            _ if base.tree().is_empty() => self.join(node, base, guard),
            Some(Forced::Split) => self.split(node, base, guard),
            Some(Forced::Join) => self.join(node, base, guard),
            None if base.statistics > SPLIT_ABOVE => self.split(node, base, guard),
            None if base.statistics < JOIN_BELOW => self.join(node, base, guard),
            None => {}
        }
    }

    fn split(&self, node: &Node<R>, base: &Base<R>, guard: &Guard) {
        let mut edit = Edit::new();
        let Some((left, key, right)) = edit.split(base.tree()) else {
            return;
        };
        let route = Node::route(left, key, right);
        match self.try_replace(node, base, route, guard) {
            Ok(_) => {
                // SAFETY: this thread has just taken the base node out of the tree (TREAP-2).
                unsafe { edit.retire_replaced(guard) };
                self.splits.fetch_add(1, Relaxed);
            }
            Err(route) => Node::drop_new(route),
        }
    }

    pub(super) fn count_join(&self) {
        self.joins.fetch_add(1, Relaxed);
    }

    /// Visits all nodes from the root on, each with the number of route nodes above it.
    pub(super) fn visit<'g>(&'g self, guard: &'g Guard, visit: &mut dyn FnMut(&'g Node<R>, usize)) {
        let mut left = vec![(self.root.load(guard), 0)];
        while let Some((node, depth)) = left.pop() {
            visit(node, depth);
            if let Node::Route(route) = node {
                left.extend(route.children(guard).map(|child| (child, depth + 1)));
            }
        }
    }
}

impl<R: Release> LockFreeTree<R> {
    /// Returns statistics of the tree's adaptation to contention, approximate while it is changing.
    /// There are no figures of locks. O(base nodes).
    pub fn adaptation(&self) -> Adaptation {
        let routes = self.map();
        let mut adaptation = Adaptation {
            splits: routes.splits.load(Relaxed),
            joins: routes.joins.load(Relaxed),
            ..Adaptation::default()
        };
        routes.visit(&pin(), &mut |node, depth| match node {
            Node::Route(_) => adaptation.route_nodes += 1,
            Node::Base(_) => {
                adaptation.base_nodes += 1;
                adaptation.depth = adaptation.depth.max(depth);
            }
        });
        adaptation
    }
}
