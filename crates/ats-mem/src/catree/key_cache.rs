//! A thread's cache of recently found keys, so that keys it looks up repeatedly need no search.
//!
//! A thread that changes counters visits the same few keys all the time, and the search is most of
//! its work. Each thread remembers some hundred leaves and slots, indexed by the last bytes of the
//! key. An entry can be used as long as its [leaf](super::leaf_hint) is alive, since a key keeps
//! its slot there.
//!
//! Good for: few keys of large trees, while little is retired. Otherwise it costs a few nanoseconds
//! more than a search.

use super::leaf_hint::LeafHint;
use super::root::Root;
use crate::identity::Identity;
use crate::record::{Record, Release};
use crate::short_key::bits_at;
use ats_sync::Guard;
use ats_sync::model::CACHED_KEYS;
use ats_sync::shim::constants_of_threads;
use std::cell::Cell;

#[derive(Clone, Copy)]
struct CachedSlot {
    hint: LeafHint,
    slot: u8,
}

const NONE: CachedSlot = CachedSlot {
    hint: LeafHint::NONE,
    slot: 0,
};

type KeyCache = [Cell<CachedSlot>; CACHED_KEYS];

constants_of_threads! {
    static KEY_CACHE: KeyCache = [const { Cell::new(NONE) }; CACHED_KEYS];
}

/// Returns the index of a key in the cache.
#[inline(always)]
fn index_of(key: &[u8], identity: &Identity) -> usize {
    let tail = bits_at(key, key.len().saturating_sub(8));
    let product = (tail ^ identity.number()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The highest bits are used: the bits of short keys are high, and do not reach the lower ones.
    (product >> (u64::BITS - CACHED_KEYS.ilog2())) as usize
}

impl<R: Release> Root<R> {
    /// Implements [`get_again`](crate::Records::get_again).
    #[inline]
    pub(super) fn get_cached<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        let index = index_of(key, self.identity());
        let cached = KEY_CACHE.with(|cache| cache[index].get());
        if let Some(leaf) = cached.hint.recall::<R>(self.identity(), guard)
            && let Some(record) = leaf.record(usize::from(cached.slot), guard)
            && record.has_key(key)
        {
            return record.resolve(guard);
        }
        let (leaf, slot) = self.slot_of(key, guard)?;
        let cached = CachedSlot {
            hint: LeafHint::of(self.identity(), leaf, guard),
            slot: slot as u8,
        };
        KEY_CACHE.with(|cache| cache[index].set(cached));
        leaf.record(slot, guard)?.resolve(guard)
    }
}
