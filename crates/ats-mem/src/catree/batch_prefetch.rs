//! Going ahead of a batch: the nodes and records of its keys are fetched side by side.
//!
//! Each key of a batch is locked, looked at and changed on its own. On the way to its leaf a node
//! is missed in the cache after the other, and then the record. The ways of different keys do not
//! depend on each other, so here they are gone together: one level of the tree for all keys, then
//! the next one. The nodes that the batch comes to later are in the cache.
//!
//! Good for: keys that lie apart in a large tree. It costs the way once more, so it is not done
//! where all is likely in the cache: in a small tree, and for keys that are side by side.

use super::kind::Kind;
use super::link::Node;
use super::root::Root;
#[cfg(target_arch = "x86_64")]
use super::simd_search::{Avx2, has_avx2};
use super::simd_search::{Baseline, Search};
use crate::record::Release;
use ats_sync::Guard;
use ats_sync::model::LEAST_APPROACHED_LEVEL;

/// The number of ways that are gone together: about as many misses as a processor has under way, of
/// nodes of some lines each.
const TOGETHER: usize = 8;

impl<R: Release> Root<R> {
    /// [`prefetch_batch`](crate::batch::Stepwise::prefetch_batch).
    pub(super) fn prefetch_leaves(&self, keys: &[&[u8]], guard: &Guard) {
        for keys in keys.chunks(TOGETHER).filter(|keys| keys.len() > 1) {
            #[cfg(target_arch = "x86_64")]
            if has_avx2() {
                // SAFETY: the processor has just said that it has these instructions.
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

    /// For up to [`TOGETHER`] ascending keys.
    #[inline(always)]
    fn prefetch_chunk<C: Search>(&self, keys: &[&[u8]], guard: &Guard) {
        let mut nodes = [self.node(guard); TOGETHER];
        let nodes = &mut nodes[..keys.len()];
        // Through route nodes, which stay in the cache.
        for (node, key) in nodes.iter_mut().zip(keys) {
            *node = self.base_for::<C>(key, guard).root();
        }
        let is_low = |node: &Node<'_, R>| node.header().level < LEAST_APPROACHED_LEVEL;
        if nodes.iter().all(is_low) {
            return;
        }
        // Base nodes differ in height, so some keys arrive before others.
        while descend_one_level::<R, C>(nodes, keys) {}
        for (node, key) in nodes.iter().zip(keys) {
            if let Kind::Leaf(leaf) = node.kind() {
                leaf.prefetch_record_of::<C>(key);
            }
        }
    }
}

/// Goes from each inner node towards its key. Returns `true` if there was one.
#[inline(always)]
fn descend_one_level<R: Release, C: Search>(nodes: &mut [Node<'_, R>], keys: &[&[u8]]) -> bool {
    if let (Some(first), Some(last)) = (nodes.first(), nodes.last())
        && first == last
        && let Kind::Inner(inner) = first.kind()
    {
        // Keys between two keys that are led to the same child are led there, too.
        let place = inner.child_for::<C>(keys[0]);
        if place == inner.child_for::<C>(keys[keys.len() - 1]) {
            nodes.fill(inner.descend(place));
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
