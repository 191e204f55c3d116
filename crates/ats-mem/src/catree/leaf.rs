//! Leaves: references to leaves, whose [blocks](super::block) have two sizes.
//!
//! A tree of at most [`SMALL`] keys is one small leaf: programs have many thousands of tables with
//! a few objects each. All other leaves are full-sized, so that a search compares a fixed number of
//! heads.
//!
//! # Invariant
//! - LEAF-1. A small leaf covers all keys, so it is the only leaf of its tree, directly below a
//!   base node.

use super::block::{Added, Block};
use super::fences::Fences;
use super::header::{Header, MOST_TOMBSTONES};
use super::item::Item;
use super::leaf_order::LeafOrder;
use super::link::{Node, NodeType, copy_for_any_release, leak};
use super::simd_search::Search;
use super::sizes::{LEAF, LEAF_LINES, SMALL};
use super::slot::Word;
use crate::prefetch::prefetch;
use crate::record::{Record, Release};
use crate::short_key::ShortKey;
use crate::slab::SlabBox;
use ats_sync::Guard;

/// A leaf that lives as long as `'n`: a node of level 0. One word: its size is on the cache line
/// that a search reads first.
pub(super) struct Leaf<'n, R: Release>(Node<'n, R>);

copy_for_any_release!(Leaf);

/// The block of a leaf, by its size.
pub(super) enum AsBlock<'n, R: Release> {
    Small(&'n Block<R, SMALL>),
    Full(&'n Block<R, LEAF>),
}

macro_rules! each {
    ($leaf:expr, $block:ident => $call:expr) => {
        match $leaf.as_block() {
            AsBlock::Full($block) => $call,
            AsBlock::Small($block) => $call,
        }
    };
}

impl<'n, R: Release> Leaf<'n, R> {
    /// Creates the block of an empty leaf, for a new tree.
    pub(super) fn empty() -> SlabBox<Block<R, SMALL>> {
        Block::build(0, &[], None)
    }

    /// Wraps a node of level 0.
    #[inline(always)]
    pub(super) fn of_node(node: Node<'n, R>) -> Self {
        debug_assert_eq!(node.header().level, 0);
        Leaf(node)
    }

    /// Returns the block.
    #[inline(always)]
    pub(super) fn as_block(self) -> AsBlock<'n, R> {
        let node = self.0.pointer();
        // SAFETY: the node lives as long as `'n` (CATREE-6), and its header implies its type
        // (`NodeType`).
        unsafe {
            if self.header().is_small() {
                AsBlock::Small(&*node.cast::<Block<R, SMALL>>())
            } else {
                AsBlock::Full(&*node.cast::<Block<R, LEAF>>())
            }
        }
    }

    /// Wraps a leaf that is not small.
    pub(super) fn of_full(block: &'n Block<R, LEAF>) -> Self {
        Leaf(Node::of(block))
    }

    /// Returns the block, if the leaf is not small.
    pub(super) fn full(self) -> Option<&'n Block<R, LEAF>> {
        match self.as_block() {
            AsBlock::Full(block) => Some(block),
            AsBlock::Small(_) => None,
        }
    }

    /// Builds a leaf of these ascending items, which are within the fences: see [`Block::build`].
    pub(super) fn build(
        fences: Fences<'_>,
        items: &[Item<'_, R>],
        like: Option<&[u8]>,
        guard: &'n Guard,
    ) -> Self {
        if fences.cover_all() && items.len() <= SMALL {
            of::<R, SMALL>(Block::build(fences.skip(), items, like), guard)
        } else {
            of::<R, LEAF>(Block::build(fences.skip(), items, like), guard)
        }
    }

    /// Returns the leaf as a node.
    #[inline(always)]
    pub(super) fn node(self) -> Node<'n, R> {
        self.0
    }

    #[inline(always)]
    pub(super) fn header(self) -> &'n Header {
        self.0.header()
    }

    /// Returns the bytes of memory of the leaf, without its records.
    pub(super) fn bytes(self) -> usize {
        match self.as_block() {
            AsBlock::Full(_) => Block::<R, LEAF>::bytes(),
            AsBlock::Small(_) => Block::<R, SMALL>::bytes(),
        }
    }

    #[inline(always)]
    pub(super) fn len(self) -> usize {
        each!(self, block => block.len())
    }

    /// Returns the slot of the lowest key, which may have no record.
    pub(super) fn lowest_slot(self) -> Option<usize> {
        each!(self, block => block.lowest_slot())
    }

    /// Returns the record in a slot below `len`, if there is one (it may be pending).
    #[inline(always)]
    pub(super) fn record<'g>(self, slot: usize, guard: &'g Guard) -> Option<&'g Record<R>>
    where
        'n: 'g,
    {
        each!(self, block => block.record(slot, guard))
    }

    /// Returns the record or removal in a slot below `len`, if there is one.
    pub(super) fn any_record<'g>(self, slot: usize, guard: &'g Guard) -> Option<&'g Record<R>>
    where
        'n: 'g,
    {
        each!(self, block => block.any_record(slot, guard))
    }

    /// Returns the slot of `key`, if the leaf has it.
    #[inline(always)]
    pub(super) fn find<C: Search>(self, key: &[u8]) -> Option<usize> {
        each!(self, block => block.find::<C>(key))
    }

    /// Returns the record of a key, if there is one (it may be pending).
    #[inline(always)]
    pub(super) fn record_of<'g, C: Search>(
        self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Option<&'g Record<R>>
    where
        'n: 'g,
    {
        each!(self, block => block.record(block.find::<C>(key)?, guard))
    }

    /// Returns the slots in the current order of their keys.
    #[inline]
    pub(super) fn in_order(self) -> LeafOrder {
        each!(self, block => block.in_order())
    }

    /// Returns the index in this order of `key`, or of the first key above it.
    pub(super) fn index_of(self, key: &[u8], order: &LeafOrder) -> Result<usize, usize> {
        each!(self, block => block.index_of(key, order))
    }

    /// Returns the index in this order before which all keys are below `key`.
    pub(super) fn lower_bound(self, key: &[u8], order: &LeafOrder) -> usize {
        self.index_of(key, order).unwrap_or_else(|index| index)
    }

    /// Prefetches all lines of a leaf that has a neighbour, and so is full-sized.
    pub(super) fn prefetch(self) {
        if let Some(block) = self.full() {
            prefetch::<LEAF_LINES, _>(block);
        }
    }

    /// Prefetches the record in a slot, if the slot exists.
    #[inline(always)]
    pub(super) fn prefetch_record(self, slot: usize) {
        each!(self, block => block.prefetch_record(slot));
    }

    /// Prefetches the record that `key` may have according to its head.
    #[inline(always)]
    pub(super) fn prefetch_record_of<C: Search>(self, key: &[u8]) {
        each!(self, block => block.prefetch_record_of::<C>(key));
    }

    /// Returns the word of a slot below `len`.
    #[inline(always)]
    pub(super) fn word(self, slot: usize) -> Word<R> {
        each!(self, block => block.word(slot))
    }

    /// Stores a word with a record in a slot. The caller holds the lock.
    #[inline]
    pub(super) fn put(self, slot: usize, word: Word<R>) {
        each!(self, block => block.put(slot, word));
    }

    /// Stores a tombstone in a slot, if the key allows it. The caller holds the lock.
    pub(super) fn put_tombstone(self, slot: usize, key: &[u8]) -> bool {
        each!(self, block => block.put_tombstone(slot, key))
    }

    /// Appends a record with a new key, if possible: see [`Block::add`]. The caller holds the lock.
    pub(super) fn add(self, record: &Record<R>) -> Option<Added> {
        each!(self, block => block.add(record))
    }

    /// Returns a copy with `record`, if there is room, and the slot of the record there: see
    /// [`Block::with_added`].
    pub(super) fn with_added(self, record: &Record<R>, guard: &'n Guard) -> Option<(Self, usize)> {
        each!(self, block => {
            let (copy, at) = block.with_added(record)?;
            Some((of(copy, guard), at))
        })
    }

    /// Returns a copy without a slot: see [`Block::without`].
    pub(super) fn without(self, slot: usize, guard: &'n Guard) -> Self {
        each!(self, block => of(block.without(slot), guard))
    }

    /// Returns the records, ascending, without tombstones, but with removals.
    pub(super) fn items(self) -> Vec<Item<'n, R>> {
        each!(self, block => block.items())
    }

    /// Returns the number of records, including pending ones. Exact for the holder of the lock.
    #[inline]
    pub(super) fn live(self) -> usize {
        each!(self, block => block.live())
    }

    /// Returns the key of a slot, if it can be read from the leaf alone: see [`Block::tell`].
    #[inline(always)]
    pub(super) fn tell(self, slot: usize, like: &[u8]) -> Option<ShortKey> {
        each!(self, block => block.tell(slot, like))
    }

    /// Returns `true` if a slot has a record or a removal.
    pub(super) fn has_any(self, slot: usize) -> bool {
        each!(self, block => block.has_any(slot))
    }

    /// Returns `true` if a slot has a record, which may be pending.
    pub(super) fn is_live(self, slot: usize) -> bool {
        each!(self, block => block.is_live(slot))
    }
}

/// Turns a new block into a leaf of the tree.
fn of<R: Release, const N: usize>(block: SlabBox<Block<R, N>>, guard: &Guard) -> Leaf<'_, R>
where
    Block<R, N>: NodeType<R>,
{
    Leaf(Node::of(leak(block, guard)))
}

const _: () = assert!(LEAF <= MOST_TOMBSTONES);
// The alignment wastes no space.
#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(
    size_of::<Block<crate::record::Plain, LEAF>>() == LEAF_LINES * 64
        && size_of::<Block<crate::record::Plain, SMALL>>() == 32 + SMALL * 16
);
