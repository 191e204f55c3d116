//! Where a thread has found keys lately, so that a key that it asks for again and again is found without a search.
//!
//! A thread that changes counters comes to the same few keys all the time, and the way through the nodes is most of what it
//! does. Each thread remembers some hundred leaves and places, by the last bytes of the key. What it remembers holds for
//! the same reason as a [cursor](super::cursor) does: nothing that could be reached has been freed since
//! ([`Guard::is_still`], E5 of the epochs); a leaf that is not dead is the current one; and a key keeps its place in a leaf.
//!
//! Good for: few keys, of large trees, while little is retired. Else it costs a few nanoseconds more than a search.

use super::cursor::Identity;
use super::header::NodePtr;
use super::kind::Kind;
use super::leaf::Leaf;
use super::link::Node;
use super::tree::CaTree;
use crate::record::{Record, Release};
use crate::short_key::bits_at;
use ats_sync::Guard;
use std::cell::Cell;
use std::ptr;

/// How many keys a thread remembers: a dozen kilobytes.
const MEMOS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 512 };

#[derive(Clone, Copy)]
struct Memo {
    /// Of the tree; 0 is none.
    identity: u64,
    epoch: u64,
    leaf: NodePtr,
    at: u8,
}

const NONE: Memo = Memo {
    identity: 0,
    epoch: 0,
    leaf: ptr::null_mut(),
    at: 0,
};

#[cfg(not(any(loom, shuttle)))]
std::thread_local! {
    static MEMO: [Cell<Memo>; MEMOS] = const { [const { Cell::new(NONE) }; MEMOS] };
}
#[cfg(any(loom, shuttle))]
ats_sync::shim::thread_local! {
    static MEMO: [Cell<Memo>; MEMOS] = [const { Cell::new(NONE) }; MEMOS];
}

/// Where the memo of a key is.
#[inline(always)]
fn index_of(key: &[u8], identity: &Identity) -> usize {
    let tail = bits_at(key, key.len().saturating_sub(8));
    let product = (tail ^ identity.number()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The highest bits: those of short keys are high, and do not reach the others.
    (product >> (u64::BITS - MEMOS.ilog2())) as usize
}

impl<R: Release> CaTree<R> {
    /// [`get_again`](crate::Backend::get_again).
    #[inline]
    pub(super) fn get_remembered<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        let index = index_of(key, &self.identity);
        let memo = MEMO.with(|memos| memos[index].get());
        if memo.identity == self.identity.number() && guard.is_still(memo.epoch) {
            // SAFETY: the leaf was reachable under a guard of the epoch of the memo, which is still the present one, so it
            // lives as long as this guard (E5, C6). It belongs to this tree, hence has this type; a tree that frees its
            // nodes otherwise changes its identity.
            let leaf = unsafe { Node::<R>::at(memo.leaf) };
            if let Kind::Leaf(leaf) = leaf.kind()
                && !leaf.header().is_dead()
                && let Some(record) = leaf.record(usize::from(memo.at), guard)
                && record.has_key(key)
            {
                return record.settled(guard);
            }
        }
        let (leaf, at) = self.place_of(key, guard)?;
        self.remember(index, leaf, at, guard);
        leaf.record(at, guard)?.settled(guard)
    }

    fn remember(&self, index: usize, leaf: Leaf<'_, R>, at: usize, guard: &Guard) {
        let memo = Memo {
            identity: self.identity.number(),
            epoch: guard.epoch(),
            leaf: leaf.node().pointer(),
            at: at as u8,
        };
        MEMO.with(|memos| memos[index].set(memo));
    }
}
