//! The index of a fixed [`LockedHashMap`](super::LockedHashMap), for walks: keys in the order of
//! their hashes.
//!
//! The index has each key that is in the map, and each that was removed since the map was fixed. So
//! a walk can go on from a key that was removed. A key that only an undone batch has put leaves no
//! trace.

use super::record_map::Taking;
use std::collections::BTreeMap;
use std::ops::Bound;

/// A position in the order of hashes, and of keys where hashes are equal.
#[derive(Clone, Copy, Debug)]
pub(super) enum Position<'k> {
    /// The position before all keys of this hash.
    At(u64),
    /// The position behind this key, whose hash is given.
    Behind(u64, &'k [u8]),
}

impl Position<'_> {
    pub(super) const START: Self = Position::At(0);

    /// Returns `true` if the position is before this key.
    pub(super) fn is_before(self, hash: u64, key: &[u8]) -> bool {
        match self {
            Position::At(here) => here <= hash,
            Position::Behind(here, behind) => (here, behind) < (hash, key),
        }
    }
}

/// Keys in the order of their hashes.
#[derive(Debug)]
pub(super) struct WalkIndex {
    /// The keys, each with `true` if it was removed since the index was made. Such a key may have
    /// been put again.
    keys: BTreeMap<(u64, Box<[u8]>), bool>,
    /// The number of slots of the map, constant while the index exists.
    slots: usize,
    /// Total length of all keys in bytes.
    bytes: usize,
}

impl WalkIndex {
    pub(super) fn new(slots: usize) -> Self {
        WalkIndex {
            keys: BTreeMap::new(),
            slots,
            bytes: 0,
        }
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Adds a key that is put into the map.
    pub(super) fn add(&mut self, hash: u64, key: &[u8]) {
        self.keys.entry((hash, key.into())).or_insert_with(|| {
            self.bytes += key.len();
            false
        });
    }

    /// Marks a key that was taken out of the map as removed, or deletes it if its batch was undone.
    pub(super) fn remove(&mut self, hash: u64, key: &[u8], why: Taking) {
        let entry = (hash, key.into());
        match (self.keys.get_mut(&entry), why) {
            (Some(was_removed), Taking::Removal) => *was_removed = true,
            // A key that was removed before stays in the index: a walk may have stopped at it.
            (None | Some(true), Taking::Undoing) | (None, Taking::Removal) => {}
            (Some(false), Taking::Undoing) => {
                self.keys.remove(&entry);
                self.bytes -= key.len();
            }
        }
    }

    /// Returns `true` if a key was removed since the index was made.
    pub(super) fn was_removed(&self, hash: u64, key: &[u8]) -> bool {
        self.keys.get(&(hash, key.into())).copied().unwrap_or(false)
    }

    /// Returns the `most` next keys behind a position, and all others with the hash of the
    /// last of them. Also returns the next hash in the index, if there is one.
    pub(super) fn next_keys(
        &self,
        from: Position<'_>,
        most: usize,
    ) -> (impl Iterator<Item = &[u8]>, Option<u64>) {
        let from = match from {
            Position::At(hash) => Bound::Included((hash, Box::default())),
            Position::Behind(hash, key) => Bound::Excluded((hash, key.into())),
        };
        let behind = || self.keys.range((from.clone(), Bound::Unbounded));
        let last = behind().take(most).last().map(|((hash, _), _)| *hash);
        let following = |last: &u64| {
            let rest = Bound::Excluded((*last, Box::default()));
            let mut rest = self.keys.range((rest, Bound::Unbounded));
            rest.find(|((hash, _), _)| hash > last)
                .map(|((hash, _), _)| *hash)
        };
        let next = last.as_ref().and_then(following);
        let keys = behind().map(|((hash, key), _)| (*hash, &**key));
        let piece = keys.take_while(move |(hash, _)| Some(*hash) <= last);
        (piece.map(|(_, key)| key), next)
    }

    /// Returns the approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.keys.len() * 2 * size_of::<(u64, Box<[u8]>)>() + self.bytes
    }
}

/// Returns the slot of a hash, out of `slots` slots.
pub(super) fn slot_of(hash: u64, slots: usize) -> usize {
    ((u128::from(hash) * slots as u128) >> u64::BITS) as usize
}

/// Returns the lowest hash of a slot.
pub(super) fn slot_start(slot: usize, slots: usize) -> u64 {
    ((slot as u128) << u64::BITS).div_ceil(slots as u128) as u64
}
