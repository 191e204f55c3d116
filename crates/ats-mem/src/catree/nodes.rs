//! Creation and retirement of nodes, with accounting of their memory.

use super::base::{Base, Counts};
use super::block::Block;
use super::fences::Fences;
use super::header::BASE;
use super::inner::Inner;
use super::item::Item;
use super::kind::Kind;
use super::leaf::{AsBlock, Leaf};
use super::link::{Link, Node, leak};
use super::sizes::{LEAF, SMALL};
use crate::record::Release;
use crate::slab::SlabBox;
use ats_sync::Guard;

/// The replacement of a node.
pub(super) enum Replacement<'g, R: Release> {
    One(Node<'g, R>),
    /// Two nodes; the second begins at this separator.
    Two(Node<'g, R>, Vec<u8>, Node<'g, R>),
}

/// Two nodes or trees, and the first key that belongs to the second.
pub(super) struct Parts<'g, R: Release> {
    pub left: Node<'g, R>,
    pub separator: Vec<u8>,
    pub right: Node<'g, R>,
}

impl<'g, R: Release> From<Parts<'g, R>> for Replacement<'g, R> {
    fn from(parts: Parts<'g, R>) -> Self {
        Replacement::Two(parts.left, parts.separator, parts.right)
    }
}

/// Nodes made and marked dead by one change of structure.
pub(super) struct Nodes<'g, R: Release> {
    guard: &'g Guard,
    /// Bytes of new nodes minus bytes of dead ones.
    bytes: i64,
    dead: Vec<Node<'g, R>>,
}

impl<'g, R: Release> Nodes<'g, R> {
    pub(super) fn new(guard: &'g Guard) -> Self {
        Nodes {
            guard,
            bytes: 0,
            dead: Vec::new(),
        }
    }

    /// Makes a leaf; see [`Leaf::build`].
    pub(super) fn leaf(
        &mut self,
        fences: Fences<'_>,
        items: &[Item<'_, R>],
        like: Option<&[u8]>,
    ) -> Node<'g, R> {
        let leaf = Leaf::build(fences, items, like, self.guard);
        self.bytes += leaf.bytes() as i64;
        leaf.node()
    }

    /// Makes an inner node or a route node; see [`Inner::build`].
    pub(super) fn inner(
        &mut self,
        level: u8,
        fences: Fences<'_>,
        separators: &[&[u8]],
        children: &[Node<'g, R>],
    ) -> Node<'g, R> {
        self.inner_like(&[], level, fences, separators, children)
    }

    /// Makes an inner node that replaces another, or a part of it.
    pub(super) fn inner_like(
        &mut self,
        old: &[&Inner<R>],
        level: u8,
        fences: Fences<'_>,
        separators: &[&[u8]],
        children: &[Node<'g, R>],
    ) -> Node<'g, R> {
        // Route nodes compare whole keys, so that their range can be extended.
        let skip = if level > BASE { 0 } else { fences.skip() };
        let inner = Inner::build(level, skip, separators, children);
        for old in old {
            inner.inherit_counts(old);
        }
        self.bytes += inner.bytes() as i64;
        Node::of(leak(inner, self.guard))
    }

    /// Makes a base node, which counts its own memory.
    pub(super) fn base(&self, root: Node<'g, R>, counts: Counts, join_delay: u32) -> Node<'g, R> {
        let base = Base::new(Link::to(Some(root)), counts);
        base.set_join_delay(join_delay);
        Node::of(leak(base, self.guard))
    }

    /// Returns the bytes of new nodes minus those of dead ones, so far.
    pub(super) fn bytes(&self) -> i64 {
        self.bytes
    }

    /// Marks a node as replaced; [`finish`](Nodes::finish) retires it. The caller holds the lock
    /// that guards it, and has not published its replacement yet.
    pub(super) fn mark_dead(&mut self, node: Node<'g, R>) {
        node.header().set_dead();
        self.bytes -= match node.kind() {
            Kind::Leaf(leaf) => leaf.bytes() as i64,
            Kind::Inner(inner) => inner.bytes() as i64,
            Kind::Base(_) => 0,
        };
        self.dead.push(node);
    }

    /// Retires the nodes marked dead. Returns the growth of the nodes in bytes.
    ///
    /// # Safety
    /// The replacement of the nodes marked dead must have been published.
    pub(super) unsafe fn finish(self) -> i64 {
        for node in self.dead {
            // SAFETY: the nodes were marked dead once (CATREE-3), and no link in use leads to them
            // any more.
            unsafe { retire(node, self.guard) };
        }
        self.bytes
    }
}

/// Creates an empty base node with an empty leaf.
pub(super) fn empty_base<R: Release>() -> SlabBox<Base<R>> {
    let bytes = Block::<R, SMALL>::bytes() as i64;
    let counts = Counts {
        bytes,
        node_bytes: bytes,
        ..Counts::default()
    };
    Base::new(Link::owning(Leaf::empty()), counts)
}

/// Retires a removed node, without its children or records.
///
/// # Safety
/// The node must be marked dead, its replacement must have been published, and it must be retired
/// only once.
pub(super) unsafe fn retire<R: Release>(node: Node<'_, R>, guard: &Guard) {
    unsafe fn free<N>(raw: *mut u8) {
        // SAFETY: `raw` is a node of this type, which no thread has any more after the grace period
        // (CATREE-6). Its children are in its replacement or were retired themselves.
        drop(unsafe { SlabBox::from_raw(raw.cast::<N>()) });
    }
    let (bytes, free): (usize, unsafe fn(*mut u8)) = match node.kind() {
        Kind::Leaf(leaf) => (
            leaf.bytes(),
            match leaf.as_block() {
                AsBlock::Full(_) => free::<Block<R, LEAF>>,
                AsBlock::Small(_) => free::<Block<R, SMALL>>,
            },
        ),
        Kind::Inner(inner) => (inner.bytes(), free::<Inner<R>>),
        Kind::Base(_) => (Base::<R>::bytes(), free::<Base<R>>),
    };
    // SAFETY: the caller promises that no link in use leads to the node any more, and that it is
    // retired once (CATREE-6).
    unsafe { guard.retire(node.pointer().cast(), bytes, free) };
}
