//! The ordered store as a lock-free contention adapting tree with immutable containers.
//!
//! ```text
//!   route node            a key and two children; the tree of route nodes is not balanced
//!    |      |
//!   base   route          a base node is immutable: a container, and statistics
//!    |      |  |
//!   treap   ... ...       an immutable treap of leaves of up to 64 records
//! ```
//!
//! K. Winblad, K. Sagonas and B. Jonsson, *Lock-free contention adapting search trees* (TOPC
//! 8(2):10, 2021). An update makes a new container that shares most nodes with the old one, and
//! exchanges (by compare-and-swap) the base node for a new one. If another thread was faster it
//! tries again, and the statistics of the base node rise by 250; otherwise they fall by 1. Above
//! 1000 the base node is split in two, below -1000 it is [joined](join) with a neighbour.
//!
//! Good for: walks, which a change never disturbs; splits, which take one exchange. Bad at:
//! updates, each of which copies a leaf and the path to it, and fails if another thread has changed
//! any key of the base node; keys that ascend, since route nodes are never balanced.
//!
//! # Differences from the paper
//! - A change here decides about a key once, and the record that it has seen must stay until the
//!   change is made. So it holds [a lock of the key](super::key_locks) from the lookup until the
//!   exchange. Lookups are wait-free, and walks take no lock. Updates of different keys do not wait
//!   for each other unless their hashes select the same lock. Splits and joins hold no lock.
//! - There are no range queries that see one moment: a walk goes from base node to base node. A
//!   store asks for no more.
//! - A join that fails resets the statistics to 0, as in the trees with locks by the same authors.
//! - A base node that becomes empty is joined at once, as in Erlang/OTP. Otherwise a table used as
//!   a queue would have ever more empty base nodes before its first record.
//! - Nodes are retired to epochs, where the paper has a garbage collector. So base nodes share
//!   ownership of the state of their join, and a join is done before it releases its route nodes
//!   (LOCK_FREE-5).
//!
//! # Invariants
//! An exchange replaces the node in a slot. A node that has left its slot never comes back.
//! - LOCK_FREE-1. A base node leaves its slot when an update, a split or a join puts another node
//!   there. While it has a part in a join that is not over, only that join does so. The base node
//!   that a join has merged into its neighbour stays in its slot for ever, and goes together with
//!   its parent.
//! - LOCK_FREE-2. The parent of a base node in the tree is the route node from which it hangs,
//!   which is in the tree, too. Updates exchange in the slots of the parent, on any path that has
//!   led them to the base node. A route node that has been taken out is the parent of no
//!   replaceable base node, so no update is lost there.
//! - LOCK_FREE-3. A node is retired once: a base node that an exchange of one thread has taken out,
//!   by this thread; the nodes that a join takes out, by the thread that has made its state *done*.
//!   None of them can be reached from the root any more by then. So a thread can access a node as
//!   long as the guard lives under which it found it. A node that was never in the tree is dropped
//!   at once.
//! - LOCK_FREE-4. A join claims the route node that it takes out, and the one above. Only the join
//!   that has claimed a route node exchanges other route nodes in its slots, or takes it out. A
//!   route node that was taken out stays claimed.
//! - LOCK_FREE-5. A thread reads the plan of a join only if it has found it committed under the
//!   present guard. Then the join was not done before this guard, so the nodes of the plan are
//!   retired after that, if at all.
//! - LOCK_FREE-6. The range of keys of a base node does not change while it is in the tree, and the
//!   base node has all records of the range. A thread on a node that was taken out finds, in the
//!   nodes below it, the records as of some moment since it read the root.

mod adapt;
mod edit;
mod join;
mod leaf;
#[cfg(test)]
mod live;
mod node;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod treap;
mod walk;

use super::key_locks::KeyLocks;
use super::shared_map::{Exchange, SharedMap};
use super::shared_store::SharedStore;
use ats_mem::forcing::Forcing;
use ats_mem::record::{Record, Release};
use ats_sync::Guard;
use ats_sync::count::atomic::AtomicU64;
use edit::Edit;
use node::{Base, CONTENDED, Node, NodeBox, Slot, UNCONTENDED};
use std::ops::Bound;
use std::ptr::NonNull;
use treap::Link;

/// A lock-free contention adapting tree; see the documentation of [the crate](crate).
pub type LockFreeTree<R> = SharedStore<R, Routes<R>>;

/// Approximate bytes of leaves and inner nodes for each record.
const BYTES_EACH: usize = 12;

/// The tree: a root and its route nodes and base nodes.
pub struct Routes<R: Release> {
    root: Slot<R>,
    locks: KeyLocks,
    forcing: Forcing,
    splits: AtomicU64,
    joins: AtomicU64,
}

// SAFETY: nodes are shared between threads by design: their fields are atomic or constant, and
// threads access them as long as their guards allow (LOCK_FREE-3). Records may be released on any
// thread (`Release`).
unsafe impl<R: Release> Send for Routes<R> {}
// SAFETY: the fields of nodes are atomic or constant, and threads access them as long as their
// guards allow (LOCK_FREE-3); a shared map only lends shared records.
unsafe impl<R: Release> Sync for Routes<R> {}

/// A node, and the base node in it.
type Found<'g, R> = (&'g Node<R>, &'g Base<R>);

impl<R: Release> Default for Routes<R> {
    fn default() -> Self {
        Routes {
            root: Slot::new(Node::base(Link::Empty, 0, std::ptr::null(), None)),
            locks: KeyLocks::new(),
            forcing: Forcing::default(),
            splits: AtomicU64::new(0),
            joins: AtomicU64::new(0),
        }
    }
}

impl<R: Release> Routes<R> {
    /// Descends to the base node of a key.
    fn find<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Found<'g, R> {
        let mut node = self.root.load(guard);
        loop {
            match node {
                Node::Base(base) => return (node, base),
                Node::Route(route) => node = route.towards(*key < *route.key).load(guard),
            }
        }
    }

    /// Returns the route node from which a base node hangs, or `None` at the root.
    fn parent<'g>(&self, base: &Base<R>, _guard: &'g Guard) -> Option<&'g Node<R>> {
        // SAFETY: it is null or leads to a node that was in the tree together with the base node,
        // which was found under this guard (LOCK_FREE-2, LOCK_FREE-3).
        unsafe { base.parent.as_ref() }
    }

    /// Returns the slot of a base node, if it still is in the tree.
    fn slot_of<'g>(
        &'g self,
        node: *const Node<R>,
        base: &Base<R>,
        guard: &'g Guard,
    ) -> Option<&'g Slot<R>> {
        match self.parent(base, guard) {
            None => Some(&self.root),
            Some(parent) => {
                let route = parent.as_route()?;
                route.side_of(node).map(|side| route.slot(side))
            }
        }
    }

    /// Replaces a replaceable base node, which is retired, by a new node. Gives the new node back
    /// if another thread was faster.
    fn try_replace<'g>(
        &'g self,
        node: &Node<R>,
        base: &Base<R>,
        new: NodeBox<R>,
        guard: &'g Guard,
    ) -> Result<&'g Node<R>, NodeBox<R>> {
        let Some(slot) = self.slot_of(node, base, guard) else {
            return Err(new);
        };
        let new = slot.replace(node, new, guard)?;
        // SAFETY: this thread has just taken it out of the tree (LOCK_FREE-3).
        unsafe { Node::retire(node, guard) };
        Ok(new)
    }

    /// Carries out the decision about a key, starting at the base node in which it was looked up.
    /// Returns the new base node, or `None` if nothing changes. The caller holds the lock of the
    /// key.
    fn carry_out<'g>(
        &'g self,
        mut found: Found<'g, R>,
        key: &[u8],
        exchange: &Exchange<'g, R>,
        guard: &'g Guard,
    ) -> Option<&'g Node<R>> {
        let mut cost = UNCONTENDED;
        loop {
            let (node, base) = found;
            if base.is_replaceable() {
                let mut edit = Edit::new();
                let tree = match exchange {
                    Exchange::Keep => return None,
                    Exchange::Put(record) => edit.put(base.tree(), record),
                    Exchange::Take => edit.remove(base.tree(), key)?,
                };
                let new = Node::base(tree, base.after(cost), base.parent, None);
                if let Ok(new) = self.try_replace(node, base, new, guard) {
                    // SAFETY: the base node that led to the replaced nodes has just been taken out
                    // (TREAP-2).
                    unsafe { edit.retire_replaced(guard) };
                    return Some(new);
                }
            }
            self.help(base, guard);
            cost = CONTENDED;
            found = self.find(key, guard);
        }
    }
}

impl<R: Release> SharedMap<R> for Routes<R> {
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        let (_, base) = self.find(key, guard);
        base.tree().get(key)
    }

    fn change<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Exchange<'g, R>,
    ) {
        let held = self.locks.lock(key);
        let found = self.find(key, guard);
        // The record was there at some moment since the lock was taken (LOCK_FREE-6), and no other
        // thread may remove it since, so it is there now.
        let exchange = decide(found.1.tree().get(key));
        let changed = self.carry_out(found, key, &exchange, guard);
        drop(held);
        if let Some(node) = changed {
            self.adapt(node, guard);
        }
    }

    fn gather<'g>(
        &'g self,
        from: Bound<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    ) {
        self.walk_up(from, most, guard, found);
    }

    fn gather_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    ) {
        self.walk_down(below, most, guard, found);
    }

    fn all(&mut self) -> Vec<NonNull<Record<R>>> {
        let mut all = Vec::new();
        self.visit(&ats_sync::pin(), &mut |node, _| {
            if let Node::Base(base) = node {
                base.tree().all(&mut all);
            }
        });
        all
    }

    fn bytes(&self, records: usize, guard: &Guard) -> usize {
        let mut nodes = 0;
        self.visit(guard, &mut |_, _| nodes += 1);
        nodes * size_of::<Node<R>>() + records * BYTES_EACH + self.locks.bytes()
    }

    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        self.forcing.set(splits, joins);
    }
}

impl<R: Release> Drop for Routes<R> {
    fn drop(&mut self) {
        let mut left = vec![self.root.peek().cast_mut()];
        while let Some(node) = left.pop() {
            // SAFETY: the exclusive borrow shows that no other code looks at the tree, in which
            // each node is once. No join is under way, since each is done or aborted when the call
            // that began it returns.
            let node = unsafe { NodeBox::from_raw(node) };
            match &*node {
                Node::Route(route) => left.extend(route.hanging().map(<*const _>::cast_mut)),
                // SAFETY: the exclusive borrow shows that no other code looks at the tree, and the
                // nodes of a container are in that of one base node (TREAP-2).
                Node::Base(base) => unsafe { base.link().free_all() },
            }
        }
    }
}
