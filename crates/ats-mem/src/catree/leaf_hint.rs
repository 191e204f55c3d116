//! Leaf hints: leaves that a thread remembers between calls.
//!
//! A thread may read a leaf that it has found under an earlier guard if
//! - it belongs to the same tree, which has not freed its nodes without a grace period since;
//! - no object reachable then has been freed ([`Guard::is_still`], EPOCH-5);
//! - the leaf is not dead. A node is marked dead before its replacement is published (CATREE-3), so
//!   a leaf that is not dead was current at some moment since the call began.
//!
//! A hint belongs to its thread: recording it writes no shared memory.

use super::header::NodePtr;
use super::kind::Kind;
use super::leaf::Leaf;
use super::link::Node;
use crate::identity::Identity;
use crate::record::Release;
use ats_sync::Guard;
use std::ptr;

/// A leaf, and the epoch in which it was found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct LeafHint {
    /// Identity of the tree; 0 is none.
    identity: u64,
    epoch: u64,
    leaf: NodePtr,
}

impl LeafHint {
    pub(super) const NONE: Self = LeafHint {
        identity: 0,
        epoch: 0,
        leaf: ptr::null_mut(),
    };

    #[inline(always)]
    pub(super) fn of<R: Release>(identity: &Identity, leaf: Leaf<'_, R>, guard: &Guard) -> Self {
        LeafHint {
            identity: identity.number(),
            epoch: guard.epoch(),
            leaf: leaf.node().pointer(),
        }
    }

    /// Returns the leaf, if it belongs to this tree, may be read, and is current. It lives as long
    /// as the guard.
    #[inline(always)]
    pub(super) fn recall<'g, R: Release>(
        self,
        identity: &Identity,
        guard: &'g Guard,
    ) -> Option<Leaf<'g, R>> {
        if self.identity != identity.number() || !guard.is_still(self.epoch) {
            return None;
        }
        // SAFETY: the leaf was reachable under a guard of the recorded epoch, which is still the
        // current one, so it lives as long as this guard (EPOCH-5, CATREE-6). It belongs to this
        // tree, hence has this type; a tree that frees its nodes without epochs changes its
        // identity.
        let leaf = unsafe { Node::<R>::at(self.leaf) };
        match leaf.kind() {
            Kind::Leaf(leaf) if !leaf.header().is_dead() => Some(leaf),
            _ => None,
        }
    }
}
