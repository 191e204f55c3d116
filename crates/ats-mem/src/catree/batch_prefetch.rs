//! Batch prefetch: the nodes and records of several keys are fetched concurrently.
//!
//! Keys are looked up, or locked and changed, one after the other. On the path to its leaf one node
//! after the other misses the cache, and then the record. The paths of different keys are
//! independent, so here they are walked together: one level of the tree for all keys, then the next
//! one. The nodes that are visited later are then in the cache.
//!
//! Good for: distant keys in a large tree. It walks each path twice, so it is skipped when the
//! nodes are likely in the cache: in a small tree, and for adjacent keys.

use super::kind::Kind;
use super::link::Node;
use super::root::Root;
#[cfg(target_arch = "x86_64")]
use super::simd_search::{Avx2, has_avx2};
use super::simd_search::{Baseline, Search};
use crate::record::Release;
use ats_sync::Guard;
use ats_sync::model::LEAST_APPROACHED_LEVEL;

/// Number of paths walked together: about as many misses as a processor can have outstanding, with
/// nodes of some lines each.
const TOGETHER: usize = 8;

impl<R: Release> Root<R> {
    /// Implements [`prefetch_records`](crate::batch::Stepwise::prefetch_records).
    pub(super) fn prefetch_leaves(&self, keys: &[&[u8]], guard: &Guard) {
        for keys in keys.chunks(TOGETHER).filter(|keys| keys.len() > 1) {
            #[cfg(target_arch = "x86_64")]
            if has_avx2() {
                // SAFETY: the check above has found that the processor has these instructions.
                unsafe { self.prefetch_chunk_avx2(keys, guard) };
                continue;
            }
            self.prefetch_chunk::<Baseline>(keys, guard);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn prefetch_chunk_avx2(&self, keys: &[&[u8]], guard: &Guard) {
        self.prefetch_chunk::<Avx2>(keys, guard);
    }

    /// Prefetches the paths of up to [`TOGETHER`] keys.
    #[inline(always)]
    fn prefetch_chunk<C: Search>(&self, keys: &[&[u8]], guard: &Guard) {
        let mut nodes = [self.node(guard); TOGETHER];
        let nodes = &mut nodes[..keys.len()];
        // Route nodes need no prefetch: they stay in the cache.
        for (node, key) in nodes.iter_mut().zip(keys) {
            *node = self.base_for::<C>(key, guard).root();
        }
        let is_low = |node: &Node<'_, R>| node.header().level < LEAST_APPROACHED_LEVEL;
        if nodes.iter().all(is_low) {
            return;
        }
        // Base nodes differ in height, so some keys reach their leaf before others.
        let ascends = keys.is_sorted();
        while descend_one_level::<R, C>(nodes, keys, ascends) {}
        for (node, key) in nodes.iter().zip(keys) {
            if let Kind::Leaf(leaf) = node.kind() {
                leaf.prefetch_record_of::<C>(key);
            }
        }
    }
}

/// Descends from each inner node towards its key. Returns `true` if there was an inner node.
#[inline(always)]
fn descend_one_level<R: Release, C: Search>(
    nodes: &mut [Node<'_, R>],
    keys: &[&[u8]],
    ascends: bool,
) -> bool {
    if ascends
        && let (Some(first), Some(last)) = (nodes.first(), nodes.last())
        && first == last
        && let Kind::Inner(inner) = first.kind()
    {
        // Keys between two that lead to the same child lead there, too.
        let child_index = inner.child_for::<C>(keys[0]);
        if child_index == inner.child_for::<C>(keys[keys.len() - 1]) {
            nodes.fill(inner.descend(child_index));
            return true;
        }
    }
    let mut has_moved = false;
    for (node, key) in nodes.iter_mut().zip(keys) {
        if let Kind::Inner(inner) = node.kind() {
            *node = inner.descend(inner.child_for::<C>(key));
            has_moved = true;
        }
    }
    has_moved
}
