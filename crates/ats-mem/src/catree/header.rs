//! What all nodes have in common.

use ats_sync::shim::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};

/// The level of base nodes. Inner nodes of a base node are below it, route nodes above.
pub(super) const BASE: u8 = 128;

/// Most separators of an inner node.
pub(super) const FANOUT: usize = if cfg!(any(loom, shuttle)) { 7 } else { 63 };

/// What the nodes have in common; first in all, so that a pointer to it is a pointer to the node.
#[repr(C)]
pub(super) struct Header {
    /// Height: 0 is a leaf, then inner nodes; [`BASE`] is a base node, and route nodes are above.
    pub level: u8,
    /// Set when the node is about to be replaced. Nothing in it changes any more.
    dead: AtomicBool,
}

impl Header {
    pub(super) fn new(level: u8) -> Self {
        Header {
            level,
            dead: AtomicBool::new(false),
        }
    }

    /// Whether the node was, or is about to be, replaced. Exact for the holder of the base node's lock.
    /// A thread that sees `false` knows that the node was current at that moment.
    #[inline]
    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Acquire)
    }

    /// To be called before the replacement is published.
    pub(super) fn set_dead(&self) {
        self.dead.store(true, Release);
    }
}

/// Where a node is, or was: this alone says not whether it lives. While it does, a
/// [`Node`](super::link::Node) leads to it.
pub(super) type NodePtr = *mut Header;
