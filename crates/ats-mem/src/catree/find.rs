//! Lookups: from the root to the leaf of a key, and to its record.

use super::base::Base;
use super::fences::Fences;
use super::inner::Inner;
use super::kind::Kind;
use super::leaf::Leaf;
use super::path::PathNode;
use super::root::Root;
#[cfg(target_arch = "x86_64")]
use super::simd_search::{Avx2, has_avx2};
use super::simd_search::{Baseline, Search};
use crate::record::{Record, Release};
use ats_sync::Guard;

/// A leaf with its fences, the range of keys that lead to it.
pub(super) struct FencedLeaf<'g, R: Release> {
    pub leaf: Leaf<'g, R>,
    pub fences: Fences<'g>,
    /// The parent, unless that is a base node.
    pub parent: Option<PathNode<'g, R>>,
}

impl<R: Release> Root<R> {
    /// Returns the base node that `key` leads to.
    #[inline(always)]
    pub(super) fn base_for<'g, C: Search>(&'g self, key: &[u8], guard: &'g Guard) -> &'g Base<R> {
        let mut node = self.node(guard);
        loop {
            match node.kind() {
                Kind::Inner(inner) => node = inner.child(inner.child_for::<C>(key)),
                Kind::Base(base) => return base,
                Kind::Leaf(_) => unreachable!("a base node is above each leaf"),
            }
        }
    }

    /// Returns the leaf that `key` leads to.
    #[inline(always)]
    fn leaf_for<'g, C: Search>(&'g self, key: &[u8], guard: &'g Guard) -> Leaf<'g, R> {
        let mut node = self.node(guard);
        loop {
            node = match node.kind() {
                Kind::Leaf(leaf) => return leaf,
                Kind::Inner(inner) => inner.descend(inner.child_for::<C>(key)),
                Kind::Base(base) => base.root(),
            }
        }
    }

    #[inline(always)]
    pub(super) fn find<'g, C: Search>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        let leaf = self.leaf_for::<C>(key, guard);
        leaf.record_of::<C>(key, guard)?.resolve(guard)
    }

    /// Does the work of `find`, compiled for processors with vectors of 256 bits.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    pub(super) fn find_avx2<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        self.find::<Avx2>(key, guard)
    }

    /// Returns the leaf and the slot of `key`, if the tree has it.
    pub(super) fn slot_of<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Option<(Leaf<'g, R>, usize)> {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the check above has found that the processor has these instructions.
            return unsafe { self.slot_of_avx2(key, guard) };
        }
        self.slot_of_by::<Baseline>(key, guard)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn slot_of_avx2<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<(Leaf<'g, R>, usize)> {
        self.slot_of_by::<Avx2>(key, guard)
    }

    #[inline(always)]
    fn slot_of_by<'g, C: Search>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Option<(Leaf<'g, R>, usize)> {
        let leaf = self.leaf_for::<C>(key, guard);
        Some((leaf, leaf.find::<C>(key)?))
    }

    /// Returns the leaf that `key` leads to, with its fences.
    pub(super) fn fenced_leaf_for<'g>(&'g self, key: &[u8], guard: &'g Guard) -> FencedLeaf<'g, R> {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the check above has found that the processor has these instructions.
            return unsafe { self.fenced_leaf_avx2(key, guard) };
        }
        self.fenced_leaf_by(guard, |inner| inner.child_for::<Baseline>(key))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn fenced_leaf_avx2<'g>(&'g self, key: &[u8], guard: &'g Guard) -> FencedLeaf<'g, R> {
        self.fenced_leaf_by(guard, |inner| inner.child_for::<Avx2>(key))
    }

    /// Descends along the children that `choose` selects, and tracks the fences.
    #[inline(always)]
    pub(super) fn fenced_leaf_by<'g>(
        &'g self,
        guard: &'g Guard,
        choose: impl Fn(&Inner<R>) -> usize,
    ) -> FencedLeaf<'g, R> {
        let mut fences = Fences::NONE;
        let mut parent = None;
        let mut node = self.node(guard);
        loop {
            node = match node.kind() {
                Kind::Leaf(leaf) => {
                    return FencedLeaf {
                        leaf,
                        fences,
                        parent,
                    };
                }
                Kind::Base(base) => {
                    parent = None;
                    base.root()
                }
                Kind::Inner(inner) => {
                    let child_index = choose(inner);
                    parent = Some(PathNode {
                        inner,
                        child_index,
                        fences,
                    });
                    fences = fences.of_child(inner, child_index);
                    inner.descend(child_index)
                }
            }
        }
    }
}
