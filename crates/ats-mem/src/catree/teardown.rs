//! Teardown: the nodes and records of a tree, or of nodes taken out of one, are freed in slices.

use super::base::Base;
use super::block::Block;
use super::header::{BASE, NodePtr};
use super::inner::Inner;
use super::link::Node;
use super::sizes::{LEAF, SMALL};
use crate::record::Release;
use crate::slab::SlabBox;
use std::marker::PhantomData;

/// Nodes to be freed, each with everything below it. Dropping this frees the rest.
///
/// # Invariant
/// - TEARDOWN-1. No other thread can reach the nodes, or anything below them, and no node is below
///   two.
pub(super) struct Teardown<R: Release> {
    nodes: Vec<NodePtr>,
    owned: PhantomData<SlabBox<Base<R>>>,
}

impl<R: Release> Teardown<R> {
    pub(super) fn new() -> Self {
        Teardown {
            nodes: Vec::new(),
            owned: PhantomData,
        }
    }

    /// Returns `true` if no node is left.
    pub(super) fn is_done(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a node, and everything below it.
    ///
    /// # Safety
    /// The node must belong to a tree of `R`, and the caller hands it over. No other thread may be
    /// able to reach it.
    pub(super) unsafe fn add(&mut self, node: NodePtr) {
        self.nodes.push(node);
    }

    /// Frees up to about `budget` records and nodes. Returns `true` if none is left.
    pub(super) fn free(&mut self, budget: usize) -> bool {
        let mut freed = 0;
        while freed < budget {
            let Some(node) = self.nodes.pop() else {
                return true;
            };
            freed += 1 + self.free_node(node);
        }
        self.is_done()
    }

    /// Frees a node, with the records of a leaf, and adds the children of other nodes. Returns the
    /// number of records freed.
    fn free_node(&mut self, node: NodePtr) -> usize {
        // SAFETY: the node was one of `nodes`, so no other thread can reach it, and every node has
        // one parent, so this is the only path to it (TEARDOWN-1). Nodes and records come from
        // boxes, and no other links lead to them (CATREE-6).
        unsafe {
            match (*node).level {
                0 if !(*node).is_small() => {
                    SlabBox::from_raw(node.cast::<Block<R, LEAF>>()).free_records()
                }
                0 => SlabBox::from_raw(node.cast::<Block<R, SMALL>>()).free_records(),
                BASE => {
                    let base = SlabBox::from_raw(node.cast::<Base<R>>());
                    self.nodes.push(base.root().pointer());
                    0
                }
                _ => {
                    let inner = SlabBox::from_raw(node.cast::<Inner<R>>());
                    let children = inner.children().into_iter().map(Node::pointer);
                    self.nodes.extend(children);
                    0
                }
            }
        }
    }
}

impl<R: Release> Drop for Teardown<R> {
    fn drop(&mut self) {
        self.free(usize::MAX);
    }
}
