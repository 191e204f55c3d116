//! Joins of a base node with its neighbour, without locks.
//!
//! ```text
//!        grand                      grand
//!          |                          |
//!        parent          ->         rest         rest: the other child of `parent`,
//!        |    |                    |    |              or `joined` itself if that was `neighbour`
//!     main   rest              joined   ...
//!           |    |
//!   neighbour    ...             (or the mirror image)
//! ```
//!
//! The steps are those of the paper:
//! 1. `main` replaces the base node to be joined, and `neighbour` the next one. Both are copies
//!    that refer to the join, so that no update replaces them.
//! 2. `parent` and `grand` are claimed (LOCK_FREE-4), so no other join changes their children or
//!    takes them out.
//! 3. The plan is written, and the join *commits*: it cannot be undone any more, and each thread
//!    that meets it can complete it.
//! 4. `joined` replaces `neighbour`, then `rest` replaces `parent`. Then the join is *done*, and
//!    `grand` is free again.
//!
//! An update that meets the join before step 3 aborts it; then `main` and `neighbour` become
//! replaceable, and stay in the tree. An update that meets it later completes it. Each step of the
//! completion exchanges a node that never comes back, so any number of threads can do all of them,
//! in this order.
//!
//! The invariants (LOCK_FREE-1 and so on) are those of [`lock_free`](super).

use super::Routes;
use super::edit::Edit;
use super::node::{
    ABORTED, Base, COMMITTED, DONE, Join, Node, NodeBox, PREPARING, Part, Plan, Route, Side,
};
use ats_mem::record::Release;
use ats_sync::Guard;
use std::ptr;
use std::sync::Arc;

/// The route nodes that a join has claimed. Dropping this releases them.
struct Claims<'g, R: Release> {
    join: &'g Join<R>,
    claimed: [Option<&'g Route<R>>; 2],
}

impl<R: Release> Drop for Claims<'_, R> {
    fn drop(&mut self) {
        let claimed = self.claimed.into_iter().flatten();
        claimed.for_each(|route| route.disclaim(self.join.name()));
    }
}

impl<R: Release> Routes<R> {
    /// Completes or aborts the join in which a base node has a part, if there is one. Afterwards
    /// the base node is replaceable, or was taken out.
    pub(super) fn help(&self, base: &Base<R>, guard: &Guard) {
        let Some(Part { join, .. }) = &base.part else {
            return;
        };
        if !join.change_state(PREPARING, ABORTED) && join.state() == COMMITTED {
            self.complete(join, guard);
        }
    }

    /// Joins a base node with the next one below its parent, unless another thread interferes. The
    /// caller has just put the base node into the tree.
    pub(super) fn join<'g>(&'g self, node: &'g Node<R>, base: &'g Base<R>, guard: &'g Guard) {
        let Some(parent) = self.parent(base, guard).and_then(Node::as_route) else {
            return;
        };
        let Some(side) = parent.side_of(node) else {
            return;
        };
        let (next, next_base) = outermost(parent.slot(side.other()).load(guard), side, guard);
        if !next_base.is_replaceable() {
            return;
        }
        let join = Join::new();
        let part = |is_main| {
            Some(Part {
                join: Arc::clone(&join),
                is_main,
            })
        };
        // The statistics begin at 0, so if this join fails another one is due after as many
        // updates.
        let main = Node::base(base.link(), 0, base.parent, part(true));
        let Ok(main) = parent.slot(side).replace(node, main, guard) else {
            return;
        };
        // SAFETY: this thread has just taken it out of the tree (LOCK_FREE-3).
        unsafe { Node::retire(node, guard) };
        let neighbour = Node::base(
            next_base.link(),
            next_base.statistics,
            next_base.parent,
            part(false),
        );
        if let Ok(neighbour) = self.try_replace(next, next_base, neighbour, guard)
            && self.commit(&join, [main, neighbour], side, guard)
        {
            self.complete(&join, guard);
            self.count_join();
        } else {
            join.change_state(PREPARING, ABORTED);
        }
    }

    /// Does steps 2 and 3. Returns `false` if the join has not committed.
    fn commit<'g>(
        &'g self,
        join: &Arc<Join<R>>,
        [main, neighbour]: [&'g Node<R>; 2],
        side: Side,
        guard: &'g Guard,
    ) -> bool {
        let (Some(first), Some(second)) = (main.as_base(), neighbour.as_base()) else {
            return false;
        };
        let Some(parent) = self.parent(first, guard) else {
            return false;
        };
        let Some(route) = parent.as_route() else {
            return false;
        };
        let mut claims = Claims {
            join,
            claimed: [None; 2],
        };
        if !route.claim(join.name()) {
            return false;
        }
        claims.claimed[0] = Some(route);
        let grand = match self.parent_of(parent, &route.key, guard) {
            Above::Root => ptr::null(),
            Above::Lost => return false,
            Above::Route(node, grand) => {
                if !grand.claim(join.name()) {
                    return false;
                }
                claims.claimed[1] = Some(grand);
                ptr::from_ref(node)
            }
        };
        let rest = route.slot(side.other()).peek();
        let is_next = ptr::eq(rest, neighbour);
        let mut edit = Edit::new();
        let tree = match side {
            Side::Left => edit.join(first.tree(), &route.key, second.tree()),
            Side::Right => edit.join(second.tree(), &route.key, first.tree()),
        };
        let part = Part {
            join: Arc::clone(join),
            is_main: false,
        };
        let joined_parent = if is_next { grand } else { second.parent };
        let joined = NodeBox::into_raw(Node::base(tree, 0, joined_parent, Some(part)));
        let plan = Plan {
            parent,
            grand,
            main,
            neighbour,
            joined,
            rest: if is_next { joined } else { rest },
            replaced: edit.take_replaced(),
        };
        let is_first = join.plan.set(plan).is_ok();
        debug_assert!(is_first, "a join is planned once");
        if join.change_state(PREPARING, COMMITTED) {
            edit.keep();
            // The completion of the join releases the claims.
            claims.claimed = [None; 2];
            return true;
        }
        // SAFETY: it comes from `into_raw`. The plan refers to it, but no thread reads the plan of
        // a join that has not committed (LOCK_FREE-5).
        drop(unsafe { NodeBox::from_raw(joined) });
        false
    }

    /// Does step 4. The caller has committed the join, or has found it committed under its guard
    /// (LOCK_FREE-5).
    fn complete(&self, join: &Join<R>, guard: &Guard) {
        let Some(plan) = join.plan.get() else {
            return;
        };
        // SAFETY: the nodes of the plan are retired when the join is done, which it was not under
        // this guard (LOCK_FREE-5).
        let [neighbour, grand] = unsafe { [plan.neighbour.as_ref(), plan.grand.as_ref()] };
        if let Some(base) = neighbour.and_then(Node::as_base)
            && let Some(slot) = self.slot_of(plan.neighbour, base, guard)
        {
            slot.exchange(plan.neighbour, plan.joined);
        }
        let grand = grand.and_then(Node::as_route);
        let slot = match grand {
            None => Some(&self.root),
            Some(grand) => grand.side_of(plan.parent).map(|side| grand.slot(side)),
        };
        if let Some(slot) = slot {
            slot.exchange(plan.parent, plan.rest);
        }
        if join.change_state(COMMITTED, DONE) {
            // SAFETY: the nodes have been taken out above, by this thread or another one, and only
            // one thread comes here (LOCK_FREE-3). The nodes of the containers could be reached
            // only through `main` and `neighbour`.
            unsafe {
                for node in [plan.parent, plan.main, plan.neighbour] {
                    Node::retire(node, guard);
                }
                plan.replaced.iter().for_each(|link| link.retire(guard));
            }
        }
        // `grand` is released after the join is done: so it stays in the tree while other threads
        // may complete the join.
        if let Some(grand) = grand {
            grand.disclaim(join.name());
        }
    }

    /// Finds the node from which a route node hangs. `key` is the key of the route node.
    fn parent_of<'g>(&'g self, node: &Node<R>, key: &[u8], guard: &'g Guard) -> Above<'g, R> {
        let (mut here, mut above) = (self.root.load(guard), Above::Root);
        while !ptr::eq(here, node) {
            let Node::Route(route) = here else {
                return Above::Lost;
            };
            above = Above::Route(here, route);
            here = route.towards(*key < *route.key).load(guard);
        }
        above
    }
}

/// The parent of a route node: the root of the tree, or another route node.
enum Above<'g, R: Release> {
    Root,
    Route(&'g Node<R>, &'g Route<R>),
    /// The route node is not in the tree any more.
    Lost,
}

/// Returns the leftmost or rightmost base node below a node.
fn outermost<'g, R: Release>(
    node: &'g Node<R>,
    side: Side,
    guard: &'g Guard,
) -> (&'g Node<R>, &'g Base<R>) {
    let mut here = node;
    loop {
        match here {
            Node::Base(base) => return (here, base),
            Node::Route(route) => here = route.slot(side).load(guard),
        }
    }
}
