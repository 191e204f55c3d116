//! Inner nodes and route nodes: ascending separators, and the children between them.
//!
//! ```text
//! header | heads[64]  separators ascending | children[64] | separators as bytes
//! ```
//!
//! The separators never change. The children change in place, one atomic word each.

use super::header::{FANOUT, Header};
use super::heads::{Heads, compare_behind_heads};
use super::link::{Link, Node};
use super::simd_search::{Baseline, Search};
use super::sizes::LEAF_LINES;
use super::subtree_counts::SubtreeCounts;
use crate::prefetch::prefetch;
use crate::record::{Plain, Release};
use crate::slab::{self, SlabBox};

#[repr(C, align(64))]
pub(super) struct Inner<R: Release> {
    keys: Heads<{ FANOUT + 1 }>,
    /// Links to the children: one more than there are separators. The other links are empty.
    children: [Link<R>; FANOUT + 1],
    /// End of each separator in `bytes`.
    ends: [u32; FANOUT],
    bytes: Box<[u8]>,
    /// The number of objects below each child, if it is known.
    pub subtree_counts: SubtreeCounts,
}

/// Number of cache lines of the heads and the children of an inner node.
const INNER_LINES: usize = std::mem::offset_of!(Inner<Plain>, ends) / 64;

impl<R: Release> Inner<R> {
    #[inline(always)]
    pub(super) fn header(&self) -> &Header {
        &self.keys.header
    }

    /// Builds an inner node or a route node; `separators[i]` is the smallest key that may be under
    /// `children[i + 1]`.
    pub(super) fn build(
        level: u8,
        skip: usize,
        separators: &[&[u8]],
        children: &[Node<'_, R>],
    ) -> SlabBox<Self> {
        assert_eq!(separators.len() + 1, children.len());
        let mut ends = [0; FANOUT];
        let mut end = 0;
        for (index, separator) in separators.iter().enumerate() {
            end += separator.len();
            ends[index] = u32::try_from(end).expect("separators of a node are below 4 GiB");
        }
        SlabBox::new(Inner {
            keys: Heads::new(
                Header::new(level),
                skip,
                separators.len(),
                |index| separators[index],
                None,
            ),
            children: std::array::from_fn(|index| Link::to(children.get(index).copied())),
            ends,
            bytes: separators.concat().into_boxed_slice(),
            subtree_counts: SubtreeCounts::unknown(),
        })
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline(always)]
    pub(super) fn separator(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[index] as usize]
    }

    pub(super) fn separators(&self) -> Vec<&[u8]> {
        // Room for one more, which most callers add.
        let mut separators = Vec::with_capacity(FANOUT + 1);
        separators.extend((0..self.len()).map(|index| self.separator(index)));
        separators
    }

    pub(super) fn children(&self) -> Vec<Node<'_, R>> {
        let mut children = Vec::with_capacity(FANOUT + 2);
        children.extend((0..=self.len()).map(|index| self.child(index)));
        children
    }

    /// Returns the child at an index, which is at most `len`.
    #[inline(always)]
    pub(super) fn child(&self, child_index: usize) -> Node<'_, R> {
        debug_assert!(child_index <= self.len());
        // SAFETY: a reference to an inner node exists only under a guard, or with exclusive access
        // (CATREE-6), and the node has this many children.
        unsafe { self.children[child_index].load() }
    }

    /// Returns the child at an index, which the caller visits next. If it is a leaf, all its lines
    /// are prefetched at once, because they are rarely in the cache.
    #[inline(always)]
    pub(super) fn descend(&self, child_index: usize) -> Node<'_, R> {
        let child = self.child(child_index);
        if self.header().level == 1 {
            prefetch::<LEAF_LINES, _>(child.pointer());
        } else {
            prefetch::<INNER_LINES, _>(child.pointer());
        }
        child
    }

    /// Prefetches the child at an index, if there is one.
    pub(super) fn prefetch_child(&self, child_index: usize) {
        if child_index <= self.len() {
            let _ = self.descend(child_index);
        }
    }

    /// Returns the link to a child, which is stored to only under the lock.
    pub(super) fn link(&self, child_index: usize) -> &Link<R> {
        &self.children[child_index]
    }

    /// Returns the index of the child that `key` leads to.
    #[inline(always)]
    pub(super) fn child_for<C: Search>(&self, key: &[u8]) -> usize {
        match self.search::<C>(key) {
            Ok(equal) => equal + 1,
            Err(index) => index,
        }
    }

    /// Returns the index of the child with the keys just below `key`.
    pub(super) fn child_below(&self, key: &[u8]) -> usize {
        self.search::<Baseline>(key).unwrap_or_else(|index| index)
    }

    #[inline(always)]
    fn search<C: Search>(&self, key: &[u8]) -> Result<usize, usize> {
        let compare =
            |index| compare_behind_heads(self.separator(index), key, self.keys.head_start());
        self.keys.search::<C>(key, || self.separator(0), compare)
    }

    /// Takes over the subtree counts of the children that this node shares with the old node
    /// `from`.
    pub(super) fn inherit_counts(&self, from: &Self) {
        if from.subtree_counts.are_unknown() {
            return;
        }
        let mut rest = 0..from.len() + 1;
        for child_index in 0..self.len() + 1 {
            let child = self.child(child_index);
            let Some(at) = rest.clone().find(|at| from.child(*at) == child) else {
                continue;
            };
            rest.start = at + 1;
            if let Some(count) = from.subtree_counts.get(at) {
                self.subtree_counts.set(child_index, count);
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        slab::block_size(size_of::<Self>()) + self.bytes.len() + self.subtree_counts.bytes()
    }
}
