//! The common header of all nodes.

pub(super) use ats_sync::model::SEPARATORS as FANOUT;
use ats_sync::shim::atomic::{AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The level of base nodes. Inner nodes of a base node are below it, route nodes above.
pub(super) const BASE: u8 = 128;

const DEAD: u8 = 1;
const SMALL: u8 = 2;
/// The unit of the tombstone count, which is in the upper bits of the flags.
const TOMBSTONE: u8 = 4;

/// Largest number of tombstones that a leaf can count.
pub(super) const MOST_TOMBSTONES: usize = (u8::MAX / TOMBSTONE) as usize;

/// The common header of all nodes. It is the first field of each, so that a pointer to it is a
/// pointer to the node.
#[repr(C)]
pub(super) struct Header {
    /// Height: 0 is a leaf, then inner nodes; [`BASE`] is a base node, and route nodes are above.
    pub level: u8,
    /// [`DEAD`] is set when the node is about to be replaced; from then on the node does not
    /// change. [`SMALL`] marks a small leaf, and never changes. The other bits count the tombstones
    /// of a leaf. Only the holder of the lock changes them.
    flags: AtomicU8,
}

impl Header {
    pub(super) fn new(level: u8) -> Self {
        Header {
            level,
            flags: AtomicU8::new(0),
        }
    }

    /// Returns the header of a new leaf.
    pub(super) fn of_leaf(is_small: bool) -> Self {
        Header {
            level: 0,
            flags: AtomicU8::new(if is_small { SMALL } else { 0 }),
        }
    }

    /// Returns the header of a copy of a node, with as many tombstones.
    pub(super) fn like(other: &Self) -> Self {
        Header {
            level: other.level,
            flags: AtomicU8::new(other.flags.load(Relaxed) & !DEAD),
        }
    }

    /// Returns the number of tombstones of a leaf. Exact for the holder of the lock.
    #[inline]
    pub(super) fn tombstones(&self) -> usize {
        usize::from(self.flags.load(Relaxed) / TOMBSTONE)
    }

    /// Counts a new tombstone. The caller holds the lock; the node is not dead.
    #[inline]
    pub(super) fn add_tombstone(&self) {
        let flags = self.flags.load(Relaxed);
        self.flags.store(flags + TOMBSTONE, Release);
    }

    /// Counts the removal of a tombstone. The caller holds the lock; the node is not dead.
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
    /// base node's lock. If the result is `false`, the node was current at that moment.
    #[inline]
    pub(super) fn is_dead(&self) -> bool {
        self.flags.load(Acquire) & DEAD != 0
    }

    /// Marks the node as dead. The holder of the lock must call this before it publishes the
    /// replacement.
    pub(super) fn set_dead(&self) {
        let flags = self.flags.load(Relaxed);
        self.flags.store(flags | DEAD, Release);
    }
}

/// The address of a node that may have been freed. A [`Node`](super::link::Node) refers to a live
/// one.
pub(super) type NodePtr = *mut Header;
