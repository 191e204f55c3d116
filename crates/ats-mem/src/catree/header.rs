//! The part that all nodes have in common.

pub(super) use ats_sync::model::SEPARATORS as FANOUT;
use ats_sync::shim::atomic::{AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The level of base nodes. Inner nodes of a base node are below it, route nodes above.
pub(super) const BASE: u8 = 128;

const DEAD: u8 = 1;
const SMALL: u8 = 2;
/// One tombstone: the bits above count them.
const TOMBSTONE: u8 = 4;

/// Most tombstones that a leaf can count.
pub(super) const MOST_TOMBSTONES: usize = (u8::MAX / TOMBSTONE) as usize;

/// The part that the nodes have in common; first in all, so that a pointer to it is a pointer to
/// the node.
#[repr(C)]
pub(super) struct Header {
    /// Height: 0 is a leaf, then inner nodes; [`BASE`] is a base node, and route nodes are above.
    pub level: u8,
    /// [`DEAD`] is set when the node is about to be replaced. Nothing in it changes any more.
    /// [`SMALL`] says of a leaf that it is small, and never changes. The other bits count the
    /// tombstones of a leaf. Changed by the holder of the lock only.
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

    /// That of a copy of a node, with as many tombstones.
    pub(super) fn like(other: &Self) -> Self {
        Header {
            level: other.level,
            flags: AtomicU8::new(other.flags.load(Relaxed) & !DEAD),
        }
    }

    /// The number of tombstones of a leaf. Exact for the holder of the lock.
    #[inline]
    pub(super) fn tombstones(&self) -> usize {
        usize::from(self.flags.load(Relaxed) / TOMBSTONE)
    }

    /// Counts a tombstone that comes. For the holder of the lock; the node is not dead.
    #[inline]
    pub(super) fn add_tombstone(&self) {
        let flags = self.flags.load(Relaxed);
        self.flags.store(flags + TOMBSTONE, Release);
    }

    /// Counts a tombstone that goes. For the holder of the lock; the node is not dead.
    #[inline]
    pub(super) fn remove_tombstone(&self) {
        let flags = self.flags.load(Relaxed);
        self.flags.store(flags - TOMBSTONE, Release);
    }

    /// Returns `true` if a leaf is small.
    #[inline(always)]
    pub(super) fn is_small(&self) -> bool {
        self.flags.load(Relaxed) & SMALL != 0
    }

    /// Returns `true` if the node was, or is about to be, replaced. Exact for the holder of the
    /// base node's lock. A thread that sees `false` knows that the node was current at that moment.
    #[inline]
    pub(super) fn is_dead(&self) -> bool {
        self.flags.load(Acquire) & DEAD != 0
    }

    /// To be called before the replacement is published, by the holder of the lock.
    pub(super) fn set_dead(&self) {
        let flags = self.flags.load(Relaxed);
        self.flags.store(flags | DEAD, Release);
    }
}

/// The address of a node that is, or was, there: this alone says not if it lives. While it does, a
/// [`Node`](super::link::Node) leads to it.
pub(super) type NodePtr = *mut Header;
