//! What all nodes have in common.

use ats_sync::shim::atomic::{AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The level of base nodes. Inner nodes of a base node are below it, route nodes above.
pub(super) const BASE: u8 = 128;

/// Most separators of an inner node.
pub(super) const FANOUT: usize = if cfg!(any(loom, shuttle)) { 7 } else { 63 };

const DEAD: u8 = 1;
const SMALL: u8 = 2;

/// What the nodes have in common; first in all, so that a pointer to it is a pointer to the node.
#[repr(C)]
pub(super) struct Header {
    /// Height: 0 is a leaf, then inner nodes; [`BASE`] is a base node, and route nodes are above.
    pub level: u8,
    /// [`DEAD`] is set when the node is about to be replaced. Nothing in it changes any more. [`SMALL`] says of a leaf
    /// that it is small, and never changes.
    flags: AtomicU8,
}

impl Header {
    pub(super) fn new(level: u8) -> Self {
        Header {
            level,
            flags: AtomicU8::new(0),
        }
    }

    /// That of a leaf.
    pub(super) fn of_leaf(is_small: bool) -> Self {
        Header {
            level: 0,
            flags: AtomicU8::new(if is_small { SMALL } else { 0 }),
        }
    }

    /// That of a node of the same kind.
    pub(super) fn like(other: &Self) -> Self {
        Header {
            level: other.level,
            flags: AtomicU8::new(other.flags.load(Relaxed) & SMALL),
        }
    }

    /// Whether a leaf is small.
    #[inline(always)]
    pub(super) fn is_small(&self) -> bool {
        self.flags.load(Relaxed) & SMALL != 0
    }

    /// Whether the node was, or is about to be, replaced. Exact for the holder of the base node's lock.
    /// A thread that sees `false` knows that the node was current at that moment.
    #[inline]
    pub(super) fn is_dead(&self) -> bool {
        self.flags.load(Acquire) & DEAD != 0
    }

    /// To be called before the replacement is published, by the holder of the lock. No other thread stores to it.
    pub(super) fn set_dead(&self) {
        let flags = self.flags.load(Relaxed);
        self.flags.store(flags | DEAD, Release);
    }
}

/// Where a node is, or was: this alone says not whether it lives. While it does, a
/// [`Node`](super::link::Node) leads to it.
pub(super) type NodePtr = *mut Header;
