//! The places at which a thread has found keys lately, so that a key that it asks for again and
//! again is found without a search.
//!
//! A thread that changes counters comes to the same few keys all the time, and the way through the nodes is most of what it
//! does. Each thread remembers some hundred leaves and places, by the last bytes of the key: [leaves](super::known_leaf) that
//! are still there, in which a key keeps its place.
//!
//! Good for: few keys, of large trees, while little is retired. Else it costs a few nanoseconds more than a search.

use super::known_leaf::{Identity, KnownLeaf};
use super::tree::CaTree;
use crate::record::{Record, Release};
use crate::short_key::bits_at;
use ats_sync::Guard;
use ats_sync::model::MEMOS;
use ats_sync::shim::constants_of_threads;
use std::cell::Cell;

#[derive(Clone, Copy)]
struct Memo {
    known: KnownLeaf,
    at: u8,
}

const NONE: Memo = Memo {
    known: KnownLeaf::NONE,
    at: 0,
};

constants_of_threads! {
    static MEMO: [Cell<Memo>; MEMOS] = [const { Cell::new(NONE) }; MEMOS];
}

/// The place of the memo of a key.
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
        if let Some(leaf) = memo.known.recall::<R>(&self.identity, guard)
            && let Some(record) = leaf.record(usize::from(memo.at), guard)
            && record.has_key(key)
        {
            return record.settled(guard);
        }
        let (leaf, at) = self.place_of(key, guard)?;
        let memo = Memo {
            known: KnownLeaf::of(&self.identity, leaf, guard),
            at: at as u8,
        };
        MEMO.with(|memos| memos[index].set(memo));
        leaf.record(at, guard)?.settled(guard)
    }
}
