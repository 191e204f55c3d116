//! The root of the tree, as needed by readers.
//!
//! Other files add the read operations: lookups of [one key](super::find), [walks](super::walk),
//! [paths](super::path) to be changed, and the [prefetch of batches](super::batch_prefetch). None
//! of them can lock, count or adapt. The search for the [leaf of a writer](super::locked_leaf)
//! takes the lock by a function that its caller passes.

use super::base::Base;
use super::fences::Fences;
use super::header::NodePtr;
use super::kind::Kind;
use super::link::{Link, Node};
use super::nodes::empty_base;
use crate::identity::Identity;
use crate::record::Release;
use ats_sync::Guard;
use std::mem;
use std::ops::ControlFlow;

/// The link to the nodes of a tree, and the identity by which threads recognize these between
/// calls.
pub(super) struct Root<R: Release> {
    link: Link<R>,
    identity: Identity,
}

impl<R: Release> Root<R> {
    /// Creates the root of an empty tree.
    pub(super) fn new() -> Self {
        Root {
            link: Link::owning(empty_base::<R>()),
            identity: Identity::new(),
        }
    }

    /// Returns the link itself, which is stored to only under the lock of adaptation (CATREE-2).
    pub(super) fn link(&self) -> &Link<R> {
        &self.link
    }

    /// Returns the identity of the tree.
    #[inline(always)]
    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the node at the root.
    #[inline(always)]
    pub(super) fn node<'g>(&'g self, _guard: &'g Guard) -> Node<'g, R> {
        // SAFETY: the thread is pinned (CATREE-6), and the tree always has a root.
        unsafe { self.link.load() }
    }

    /// Takes the nodes out; the tree is empty afterwards. They may be freed without a grace period:
    /// the tree gets another identity, so that threads do not use remembered leaves.
    pub(super) fn take(&mut self) -> NodePtr {
        mem::replace(self, Self::new()).link.pointer()
    }

    /// Returns `true` if a base node, which the caller holds and which is valid, is the only one.
    pub(super) fn is_only(&self, base: &Base<R>, guard: &Guard) -> bool {
        // Only its holder can replace it.
        self.node(guard) == Node::of(base)
    }

    /// Visits the base nodes in the order of their keys until `visit` breaks. One that is split or
    /// joined meanwhile may be visited or missed, or visited although it is dead.
    pub(super) fn for_each_base<'g>(
        &'g self,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Base<R>, Fences<'g>) -> ControlFlow<()>,
    ) {
        let mut ahead = vec![(self.node(guard), Fences::NONE)];
        while let Some((node, fences)) = ahead.pop() {
            match node.kind() {
                Kind::Base(base) => {
                    if visit(base, fences).is_break() {
                        return;
                    }
                }
                Kind::Inner(inner) => {
                    for child_index in (0..=inner.len()).rev() {
                        ahead.push((
                            inner.child(child_index),
                            fences.of_child(inner, child_index),
                        ));
                    }
                }
                Kind::Leaf(_) => unreachable!("a base node is above each leaf"),
            }
        }
    }
}
