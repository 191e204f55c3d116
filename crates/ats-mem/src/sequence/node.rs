//! Nodes: which slots have children, and the links to these.

use super::block::{BlockHeader, HEAD, Link};
use crate::slab;
pub(super) use ats_sync::model::SEQUENCE_BITS as BITS;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// Most children of a node.
pub(super) const FANOUT: u32 = 1 << BITS;
/// Nodes on the way to the value at the largest position.
#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) const MAX_HEIGHT: u32 = u64::BITS.div_ceil(BITS);

impl Link {
    /// The node behind the link.
    ///
    /// # Safety
    /// It is a node, and lives as long as `'a` (SEQUENCE-1).
    #[inline(always)]
    pub(super) unsafe fn node<'a>(self) -> Node<'a> {
        Node {
            block: self.block(),
            live: PhantomData,
        }
    }
}

/// A node, for as long as it lives.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    block: NonNull<u8>,
    live: PhantomData<&'a [Link]>,
}

impl<'a> Node<'a> {
    /// A new node in which the slots of a bitmap have the links of these parts, in their order;
    /// with one reference.
    fn make(bitmap: u32, parts: [&[Link]; 3]) -> Link {
        let children = parts.iter().map(|part| part.len()).sum::<usize>();
        debug_assert_eq!(children, bitmap.count_ones() as usize);
        let block = slab::allocate(node_bytes(children as u32));
        // SAFETY: the block is new, and has room for the head and as many links.
        unsafe {
            block.cast().write(BlockHeader::new(bitmap));
            let mut place = block.add(HEAD).cast::<Link>();
            for part in parts {
                ptr::copy_nonoverlapping(part.as_ptr(), place.as_ptr(), part.len());
                place = place.add(part.len());
            }
        }
        Link::draft(block)
    }

    /// A node with a single child.
    pub(super) fn single(slot: u32, link: Link) -> Link {
        Node::make(1 << slot, [&[link], &[], &[]])
    }

    /// A copy of this node in which a slot has this link, or none.
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

    /// The slots that have a child.
    #[inline(always)]
    pub(super) fn bitmap(self) -> u32 {
        self.head().shape()
    }

    #[inline(always)]
    pub(super) fn has(self, slot: u32) -> bool {
        self.bitmap() >> slot & 1 != 0
    }

    /// The number of children that come before that of a slot.
    #[inline(always)]
    fn index(self, slot: u32) -> usize {
        (self.bitmap() & ((1 << slot) - 1)).count_ones() as usize
    }

    /// The links, in the order of their slots.
    #[inline(always)]
    pub(super) fn links(self) -> &'a [Link] {
        // SAFETY: behind the head of a node there is a link for each bit. They change only through
        // `set`, which has the node for itself (SEQUENCE-2).
        unsafe {
            let start = self.block.add(HEAD).cast::<Link>();
            std::slice::from_raw_parts(start.as_ptr(), self.bitmap().count_ones() as usize)
        }
    }

    /// The slot of the link at this place among the links.
    pub(super) fn slot_at(self, index: usize) -> u32 {
        let slot = slots(self.bitmap()).nth(index);
        slot.expect("a link for each slot of the bitmap")
    }

    #[inline(always)]
    pub(super) fn child(self, slot: u32) -> Option<Link> {
        self.has(slot).then(|| self.links()[self.index(slot)])
    }

    /// Changes the link of a slot that has one.
    ///
    /// # Safety
    /// No other code can reach the node (SEQUENCE-2, SEQUENCE-7), and the caller has no slice of
    /// its links.
    pub(super) unsafe fn set(self, slot: u32, link: Link) {
        debug_assert!(self.has(slot));
        // SAFETY: the caller says that no other code can reach the node (SEQUENCE-2, SEQUENCE-7)
        // and that it has no slice of the links. The slot has a link, so its index is that of one.
        unsafe { self.set_at(self.index(slot), link) };
    }

    /// Changes the link at this place among the links.
    ///
    /// # Safety
    /// There is one, and as for [`set`](Node::set).
    pub(super) unsafe fn set_at(self, index: usize, link: Link) {
        debug_assert!(index < self.links().len());
        // SAFETY: no other code reads the links (SEQUENCE-2, SEQUENCE-7), and there are enough of
        // them.
        unsafe { self.block.add(HEAD).cast::<Link>().add(index).write(link) };
    }

    /// Bytes of memory this node takes.
    pub(super) fn bytes(self) -> usize {
        slab::block_size(node_bytes(self.bitmap().count_ones()))
    }

    /// Frees the node, whatever its children.
    ///
    /// # Safety
    /// It is not used afterwards.
    pub(super) unsafe fn free(self) {
        // SAFETY: the block was allocated in `make` for as many children.
        unsafe { slab::free(self.block, node_bytes(self.bitmap().count_ones())) };
    }
}

fn node_bytes(children: u32) -> usize {
    HEAD + children as usize * size_of::<Link>()
}

/// The slots of a bitmap, ascending.
pub(super) fn slots(mut bitmap: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let slot = (bitmap != 0).then(|| bitmap.trailing_zeros())?;
        bitmap &= bitmap - 1;
        Some(slot)
    })
}

/// The slot that leads to a position, in a node whose values are this many steps away.
#[inline(always)]
pub(super) fn slot_of(position: u64, height: u32) -> u32 {
    // One step from the values the lowest bits choose.
    (position >> ((height - 1) * BITS)) as u32 & (FANOUT - 1)
}

/// The least height of a node that leads to this position.
pub(super) fn height_for(position: u64) -> u32 {
    (u64::BITS - position.leading_zeros()).div_ceil(BITS).max(1)
}
