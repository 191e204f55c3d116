//! Nodes: a bitmap of slots with children, and the links to these.

use super::block::{BlockHeader, HEAD, Link};
use crate::slab;
pub(super) use ats_sync::model::SEQUENCE_BITS as BITS;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// Largest number of children of a node.
pub(super) const FANOUT: u32 = 1 << BITS;
/// Number of nodes on the path to the value at the largest position.
#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) const MAX_HEIGHT: u32 = u64::BITS.div_ceil(BITS);

impl Link {
    /// Returns the node behind the link.
    ///
    /// # Safety
    /// The block must be a node, and live during `'a` (SEQUENCE-1).
    #[inline(always)]
    pub(super) unsafe fn node<'a>(self) -> Node<'a> {
        Node {
            block: self.block(),
            live: PhantomData,
        }
    }
}

/// A live node.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    block: NonNull<u8>,
    live: PhantomData<&'a [Link]>,
}

impl<'a> Node<'a> {
    /// Creates a node with one reference, in which the slots of a bitmap have the links of these
    /// parts, in order.
    fn make(bitmap: u32, parts: [&[Link]; 3]) -> Link {
        let children = parts.iter().map(|part| part.len()).sum::<usize>();
        debug_assert_eq!(children, bitmap.count_ones() as usize);
        let block = slab::allocate(node_bytes(children as u32));
        // SAFETY: the block is new, and has room for the head and this many links.
        unsafe {
            block.cast().write(BlockHeader::new(bitmap));
            let mut end = block.add(HEAD).cast::<Link>();
            for part in parts {
                ptr::copy_nonoverlapping(part.as_ptr(), end.as_ptr(), part.len());
                end = end.add(part.len());
            }
        }
        Link::draft(block)
    }

    /// Creates a node with a single child.
    pub(super) fn single(slot: u32, link: Link) -> Link {
        Node::make(1 << slot, [&[link], &[], &[]])
    }

    /// Copies this node, with this link in a slot, or none.
    pub(super) fn copy_with(self, slot: u32, link: Option<Link>) -> Link {
        let (before, rest) = self.links().split_at(self.index(slot));
        let after = &rest[usize::from(self.has(slot))..];
        match link {
            Some(link) => Node::make(self.bitmap() | 1 << slot, [before, &[link], after]),
            None => Node::make(self.bitmap() & !(1 << slot), [before, &[], after]),
        }
    }

    #[inline(always)]
    fn head(self) -> &'a BlockHeader {
        // SAFETY: every block begins with a head, and this one lives (SEQUENCE-1).
        unsafe { self.block.cast().as_ref() }
    }

    /// Returns the slots with children.
    #[inline(always)]
    pub(super) fn bitmap(self) -> u32 {
        self.head().shape()
    }

    #[inline(always)]
    pub(super) fn has(self, slot: u32) -> bool {
        self.bitmap() >> slot & 1 != 0
    }

    /// Returns the number of children before that of a slot.
    #[inline(always)]
    fn index(self, slot: u32) -> usize {
        (self.bitmap() & ((1 << slot) - 1)).count_ones() as usize
    }

    /// Returns the links, in the order of their slots.
    #[inline(always)]
    pub(super) fn links(self) -> &'a [Link] {
        // SAFETY: the head of a node is followed by a link for each bit. They change only through
        // `set`, which has exclusive access to the node (SEQUENCE-2).
        unsafe {
            let start = self.block.add(HEAD).cast::<Link>();
            std::slice::from_raw_parts(start.as_ptr(), self.bitmap().count_ones() as usize)
        }
    }

    /// Returns the slot of the link with this index.
    pub(super) fn slot_at(self, index: usize) -> u32 {
        let slot = slots(self.bitmap()).nth(index);
        slot.expect("a link for each slot of the bitmap")
    }

    #[inline(always)]
    pub(super) fn child(self, slot: u32) -> Option<Link> {
        self.has(slot).then(|| self.links()[self.index(slot)])
    }

    /// Changes the link of an occupied slot.
    ///
    /// # Safety
    /// No other code may reach the node (SEQUENCE-2, SEQUENCE-7), and the caller must have no slice
    /// of its links.
    pub(super) unsafe fn set(self, slot: u32, link: Link) {
        debug_assert!(self.has(slot));
        // SAFETY: the caller promises that no other code can reach the node (SEQUENCE-2,
        // SEQUENCE-7) and that it has no slice of the links. The slot has a link, so its index is
        // that of one.
        unsafe { self.set_at(self.index(slot), link) };
    }

    /// Changes the link with this index.
    ///
    /// # Safety
    /// The index must be that of a link; otherwise the same as for [`set`](Node::set).
    pub(super) unsafe fn set_at(self, index: usize, link: Link) {
        debug_assert!(index < self.links().len());
        // SAFETY: no other code reads the links (SEQUENCE-2, SEQUENCE-7), and the caller promises
        // that the index is valid.
        unsafe { self.block.add(HEAD).cast::<Link>().add(index).write(link) };
    }

    /// Returns the bytes of memory of this node.
    pub(super) fn bytes(self) -> usize {
        slab::block_size(node_bytes(self.bitmap().count_ones()))
    }

    /// Frees the node without its children.
    ///
    /// # Safety
    /// The node must not be used afterwards.
    pub(super) unsafe fn free(self) {
        // SAFETY: the block was allocated in `make` for this many children.
        unsafe { slab::free(self.block, node_bytes(self.bitmap().count_ones())) };
    }
}

fn node_bytes(children: u32) -> usize {
    HEAD + children as usize * size_of::<Link>()
}

/// Returns the slots of a bitmap, ascending.
pub(super) fn slots(mut bitmap: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let slot = (bitmap != 0).then(|| bitmap.trailing_zeros())?;
        bitmap &= bitmap - 1;
        Some(slot)
    })
}

/// Returns the slot that leads to a position, in a node of this height.
#[inline(always)]
pub(super) fn slot_of(position: u64, height: u32) -> u32 {
    // One step from the values, the lowest bits select the slot.
    (position >> ((height - 1) * BITS)) as u32 & (FANOUT - 1)
}

/// Returns the smallest height of a node that leads to this position.
pub(super) fn height_for(position: u64) -> u32 {
    (u64::BITS - position.leading_zeros()).div_ceil(BITS).max(1)
}
