//! The tree itself: how it is made, and how it is freed.

use super::account::Weights;
use super::adapting::Adapting;
use super::base::Base;
use super::block::Block;
use super::header::{BASE, NodePtr};
use super::inner::Inner;
use super::known_leaf::Identity;
use super::link::{Link, Node};
use super::nodes::empty_base;
use super::sizes::{LEAF, SMALL};
use crate::record::Release;
use crate::slab::SlabBox;
use ats_sync::{Gate, Guard};
use std::mem;

/// An ordered store of records; see the documentation of [`catree`](super).
pub struct CaTree<R: Release> {
    pub(super) root: Link<R>,
    /// The gate that writers pass, and a census closes.
    pub(super) gate: Gate,
    /// The identity by which cursors know the tree.
    pub(super) identity: Identity,
    pub(super) adapting: Adapting,
    pub(super) weights: Weights,
    /// Nodes not yet freed by `free_some`.
    doomed: Vec<NodePtr>,
}

// SAFETY: nodes are shared between threads by design: their mutable words are atomics or behind
// locks (C1, C2), and records may be released on any thread (`Release`).
unsafe impl<R: Release> Send for CaTree<R> {}
// SAFETY: as for `Send` (C1, C2).
unsafe impl<R: Release> Sync for CaTree<R> {}

impl<R: Release> Default for CaTree<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Release> CaTree<R> {
    /// An empty store of records of which each is one object.
    pub fn new() -> Self {
        Self::with_weights(Weights::One)
    }

    /// An empty store of records of which each has as many objects as its [tally](Release::tally) says. No value
    /// is without words.
    pub fn of_many_objects() -> Self {
        Self::with_weights(Weights::Objects)
    }

    /// An empty store of records of the same kind.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::with_weights(self.weights)
    }

    fn with_weights(weights: Weights) -> Self {
        CaTree {
            weights,
            root: Link::owning(empty_base::<R>()),
            gate: Gate::new(),
            identity: Identity::new(),
            adapting: Adapting::new(),
            doomed: Vec::new(),
        }
    }

    /// The node at the root.
    #[inline(always)]
    pub(super) fn root<'g>(&'g self, _guard: &'g Guard) -> Node<'g, R> {
        // SAFETY: the thread is pinned (C6), and there is a root at any time.
        unsafe { self.root.load() }
    }

    /// Frees up to about `budget` records and nodes of those that were there when this was called first;
    /// true when all of them have been freed. So that a large store can be freed in slices; dropping it
    /// frees the rest at once.
    pub fn free_some(&mut self, budget: usize) -> bool {
        if self.doomed.is_empty() {
            let root = mem::replace(&mut self.root, Link::owning(empty_base::<R>()));
            self.adapting.forget();
            // The leaves that cursors remember are freed without a grace period.
            self.identity = Identity::new();
            self.doomed.push(root.pointer());
        }
        let mut freed = 0;
        while freed < budget {
            let Some(node) = self.doomed.pop() else {
                return true;
            };
            // SAFETY: the tree is borrowed exclusively, so no reference into it is left (C6), and every
            // node has one parent, so this is the only way to it.
            freed += 1 + unsafe { self.free_node(node) };
        }
        self.doomed.is_empty()
    }

    /// Frees a node, with the records of a leaf; remembers the children of others. Returns how many
    /// records there were.
    ///
    /// # Safety
    /// No other thread can reach the node.
    unsafe fn free_node(&mut self, node: NodePtr) -> usize {
        // SAFETY: the caller's promise; nodes and records come from boxes, and no others lead to them (C6).
        unsafe {
            match (*node).level {
                0 if !(*node).is_small() => {
                    SlabBox::from_raw(node.cast::<Block<R, LEAF>>()).free_records()
                }
                0 => SlabBox::from_raw(node.cast::<Block<R, SMALL>>()).free_records(),
                BASE => {
                    let base = SlabBox::from_raw(node.cast::<Base<R>>());
                    self.doomed.push(base.root().pointer());
                    0
                }
                _ => {
                    let inner = SlabBox::from_raw(node.cast::<Inner<R>>());
                    let children = inner.children().into_iter().map(Node::pointer);
                    self.doomed.extend(children);
                    0
                }
            }
        }
    }
}

impl<R: Release> Drop for CaTree<R> {
    fn drop(&mut self) {
        // What `free_some` has left, and what was put into the store since.
        self.doomed.push(self.root.pointer());
        while let Some(node) = self.doomed.pop() {
            // SAFETY: as in `free_some` (C6).
            unsafe { self.free_node(node) };
        }
    }
}
