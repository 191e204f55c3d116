//! Making nodes and taking them out of use, with an account of their memory.

use super::base::{Base, Counts};
use super::fences::Fences;
use super::header::{BASE, NodePtr, level};
use super::node::{Inner, Item, Leaf};
use super::subtree_counts::SubtreeCounts;
use crate::record::Release;
use crate::slab::SlabBox;
use ats_sync::Guard;
use std::marker::PhantomData;

/// What comes in the place of a node.
pub(super) enum Replacement {
    One(NodePtr),
    /// Two nodes, the second from this separator on.
    Two(NodePtr, Vec<u8>, NodePtr),
}

/// Two nodes or trees, and the first key that belongs to the second.
pub(super) struct Parts {
    pub left: NodePtr,
    pub separator: Vec<u8>,
    pub right: NodePtr,
}

impl From<Parts> for Replacement {
    fn from(parts: Parts) -> Self {
        Replacement::Two(parts.left, parts.separator, parts.right)
    }
}

/// The nodes made and marked dead by one change of structure.
pub(super) struct Nodes<'g, R: Release> {
    pub guard: &'g Guard,
    /// Bytes made less bytes marked dead.
    bytes: i64,
    doomed: Vec<NodePtr>,
    owned: PhantomData<R>,
}

impl<'g, R: Release> Nodes<'g, R> {
    pub(super) fn new(guard: &'g Guard) -> Self {
        Nodes {
            guard,
            bytes: 0,
            doomed: Vec::new(),
            owned: PhantomData,
        }
    }

    /// Makes a leaf; see [`Leaf::build`].
    pub(super) fn leaf(
        &mut self,
        fences: Fences<'_>,
        items: &[Item<R>],
        like: Option<&[u8]>,
    ) -> NodePtr {
        self.bytes += Leaf::<R>::bytes() as i64;
        SlabBox::into_raw(Leaf::build(fences.skip(), items, like)).cast()
    }

    /// Makes an inner node or a route node; see [`Inner::build`].
    pub(super) fn inner(
        &mut self,
        level: u8,
        fences: Fences<'_>,
        separators: &[&[u8]],
        children: &[NodePtr],
    ) -> NodePtr {
        // Route nodes compare whole keys, so that their range can be extended.
        let skip = if level > BASE { 0 } else { fences.skip() };
        let inner = Inner::build(level, skip, separators, children);
        self.bytes += inner.bytes() as i64;
        SlabBox::into_raw(inner).cast()
    }

    /// Makes an inner node that replaces another, or a part of it.
    pub(super) fn inner_like(
        &mut self,
        old: &[&Inner],
        level: u8,
        fences: Fences<'_>,
        separators: &[&[u8]],
        children: &[NodePtr],
    ) -> NodePtr {
        let node = self.inner(level, fences, separators, children);
        // SAFETY: the node has just been made, as an inner node.
        let inner = unsafe { &*node.cast::<Inner>() };
        old.iter()
            .for_each(|old| SubtreeCounts::inherit(inner, old));
        self.bytes += inner.subtree_counts.bytes() as i64;
        node
    }

    /// Makes a base node. Its memory is counted in itself.
    pub(super) fn base(root: NodePtr, counts: Counts, join_delay: u32) -> NodePtr {
        let base = Base::new(root, counts);
        base.set_join_delay(join_delay);
        SlabBox::into_raw(base).cast()
    }

    /// Bytes made less bytes marked dead, so far.
    pub(super) fn bytes(&self) -> i64 {
        self.bytes
    }

    /// The level of a node.
    pub(super) fn level(&self, node: NodePtr) -> u8 {
        level(node, self.guard)
    }

    /// Marks a node as replaced; [`finish`](Nodes::finish) retires it. The caller holds the lock that
    /// guards it, and has not published its replacement yet.
    pub(super) fn mark_dead(&mut self, node: NodePtr) {
        // SAFETY: the node is alive, since the caller holds its lock.
        unsafe { (*node).set_dead() };
        self.bytes -= bytes_of::<R>(node, self.guard) as i64;
        self.doomed.push(node);
    }

    /// Retires what was marked dead, which no thread can reach any more. Returns by how many bytes the
    /// nodes have become larger.
    pub(super) fn finish(self) -> i64 {
        for node in self.doomed {
            retire::<R>(node, self.guard);
        }
        self.bytes
    }
}

/// Bytes of a node, counted where its maker counts them: those of a base node are its own affair.
fn bytes_of<R: Release>(node: NodePtr, guard: &Guard) -> usize {
    match level(node, guard) {
        0 => Leaf::<R>::bytes(),
        BASE => 0,
        // SAFETY: the level says that it is an inner or a route node.
        _ => unsafe { (*node.cast::<Inner>()).bytes() },
    }
}

/// Retires a node that was taken out, without its children or records.
pub(super) fn retire<R: Release>(node: NodePtr, guard: &Guard) {
    unsafe fn free<N>(raw: *mut u8) {
        // SAFETY: `raw` is a node of this kind that no thread can reach after the grace period. What it
        // led to is in its replacement or was retired itself.
        drop(unsafe { SlabBox::from_raw(raw.cast::<N>()) });
    }
    let (bytes, free) = match level(node, guard) {
        0 => (Leaf::<R>::bytes(), free::<Leaf<R>> as unsafe fn(*mut u8)),
        BASE => (Base::bytes(), free::<Base> as unsafe fn(*mut u8)),
        _ => (
            bytes_of::<R>(node, guard),
            free::<Inner> as unsafe fn(*mut u8),
        ),
    };
    // SAFETY: the callers have made the node unreachable, once.
    unsafe { guard.retire(node.cast(), bytes, free) };
}
