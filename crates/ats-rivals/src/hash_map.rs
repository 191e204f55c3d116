//! The unordered store behind a single lock: the hash map of the standard library, behind a lock
//! with [groups of readers](crate::reader_groups).
//!
//! Good for: point reads by many threads, as long as writes are rare. Bad at: writes by several
//! threads; latency, since the map grows and shrinks as a whole; walks, as described below.
//!
//! Keys are hashed as in [`hash`](ats_mem::hash), so that a comparison does not measure the hash
//! function.
//!
//! # Walks
//! Walks go in the order of the hashes, and of the keys where hashes are equal. This order does not
//! depend on the other records. But the map does not store it:
//! - A step looks at all records, and collects the next ones. A scan collects a sixteenth of the
//!   records with each look. So [`next`](ats_mem::Provided::next) costs O(n), and a whole scan
//!   O(n log n).
//! - While the store is [fixed](ats_mem::Records::fix), it has an index of all keys in this order
//!   (`walk_index`), and `next` costs O(log n). Fixing the store costs O(n log n), and adding or
//!   removing a key O(log n) as long as the index exists. With half a million keys, removing one
//!   and putting it back took 0.25 us, and 0.8 us with the index; fixing the store took 0.3 s.
//!
//! A store that is not fixed spends no time on the order in reads and writes.
//!
//! [`update_end`](ats_mem::Records::update_end) skips the empty buckets of the map one by one.
//! Removing all records by and by costs more than the contract says: O(n / 16) for each, though
//! each step of it only looks at one byte.

use super::record_map::{Kept, RecordMap, Taking};
use super::store::LockedMap;
use super::walk_index::{Position, WalkIndex, slot_of, slot_start};
use ats_mem::hash::Seed;
use ats_mem::record::Release;
use ats_mem::{SlotAnswer, WalkFrom};
use ats_sync::Guard;
use ats_sync::model::LEAST_SCAN_PIECE as LEAST_PIECE;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher};

/// A hash map behind a lock with groups of readers.
pub type LockedHashMap<R> = LockedMap<R, Hashed<R>>;

/// The capacity below which the map never shrinks.
const LEAST_CAPACITY: usize = 28;
/// The map shrinks when its capacity exceeds its records by this factor.
const SPARSE: usize = 8;
/// Number of parts in which a scan collects the records. A part has at least [`LEAST_PIECE`].
const PARTS: usize = 16;

/// The unordered map of records.
pub struct Hashed<R: Release> {
    records: HashSet<Kept<R>, Seeded>,
    /// Number of calls of `fix` that no `unfix` has ended yet.
    fixed: usize,
    /// The index for walks: made when the map is fixed, and dropped by `tidy`.
    index: Option<WalkIndex>,
}

/// The factory of the map's hashers.
#[derive(Clone)]
struct Seeded(Seed);

/// A hasher of one key.
struct KeyHasher {
    seed: Seed,
    hash: u64,
}

impl BuildHasher for Seeded {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher {
            seed: self.0,
            hash: 0,
        }
    }
}

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.hash ^= self.seed.hash(bytes);
    }

    /// Ignores the length, which slices write before their bytes: the hash of the bytes depends on
    /// it already.
    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.hash
    }
}

impl<R: Release> Default for Hashed<R> {
    fn default() -> Self {
        let seeded = Seeded(Seed::random());
        Hashed {
            records: HashSet::with_capacity_and_hasher(LEAST_CAPACITY, seeded),
            fixed: 0,
            index: None,
        }
    }
}

impl<R: Release> Hashed<R> {
    fn hash(&self, key: &[u8]) -> u64 {
        self.records.hasher().0.hash(key)
    }

    /// Returns the number of slots: about the square root of the number of records, since without
    /// an index each slot costs a look at all of them.
    fn slots(&self) -> usize {
        match &self.index {
            Some(index) => index.slots(),
            None => self.records.len().isqrt() + 1,
        }
    }

    /// Returns the `most` first records behind a position, and all others with the hash of the last
    /// of them, in order. Also returns `true` if more follow.
    fn least(&self, from: Position<'_>, most: usize) -> (Vec<(u64, Kept<R>)>, bool) {
        let (mut least, mut limit, mut behind) = (Vec::new(), u64::MAX, 0);
        for kept in &self.records {
            let key = kept.get().key();
            let hash = self.hash(key);
            if !from.is_before(hash, key) {
                continue;
            }
            behind += 1;
            if hash <= limit {
                least.push((hash, kept.duplicate()));
            }
            // The buffer is truncated to half when it is full, so each record costs O(1),
            // amortised.
            if least.len() >= 2 * most + 16 {
                limit = truncate(&mut least, most);
            }
        }
        if least.len() > most {
            truncate(&mut least, most);
        }
        least.sort_unstable();
        let is_truncated = least.len() < behind;
        (least, is_truncated)
    }
}

/// Keeps the `most` records of the lowest hashes, and all others with the last of these hashes.
/// Returns this hash.
fn truncate<R: Release>(records: &mut Vec<(u64, Kept<R>)>, most: usize) -> u64 {
    let (_, (last, _), _) = records.select_nth_unstable_by_key(most - 1, |(hash, _)| *hash);
    let last = *last;
    records.retain(|(hash, _)| *hash <= last);
    last
}

impl<R: Release> RecordMap<R> for Hashed<R> {
    fn get(&self, key: &[u8]) -> Option<&Kept<R>> {
        self.records.get(key)
    }

    fn put(&mut self, record: Kept<R>) -> Option<Kept<R>> {
        let own = record.duplicate();
        let old = self.records.replace(record);
        // The index has each key that is in the map.
        if let (None, Some(index)) = (&old, &mut self.index) {
            let key = own.get().key();
            index.add(self.records.hasher().0.hash(key), key);
        }
        old
    }

    fn take(&mut self, key: &[u8], why: Taking) -> Option<Kept<R>> {
        let taken = self.records.take(key)?;
        if let Some(index) = &mut self.index {
            index.remove(self.records.hasher().0.hash(key), key, why);
        }
        let (len, capacity) = (self.records.len(), self.records.capacity());
        if capacity > 2 * LEAST_CAPACITY && len < capacity / SPARSE {
            self.records.shrink_to(LEAST_CAPACITY.max(2 * len));
        }
        Some(taken)
    }

    fn all(&self) -> impl Iterator<Item = &Kept<R>> {
        self.records.iter()
    }

    fn any(&self) -> Option<&Kept<R>> {
        let free = self.records.iter().find(|kept| !kept.get().is_held());
        free.or_else(|| self.records.iter().next())
    }

    fn piece(&self) -> usize {
        LEAST_PIECE.max(self.records.len() / PARTS)
    }

    fn gather(&self, from: WalkFrom<'_>, most: usize, found: &mut Vec<Kept<R>>) -> Option<u64> {
        let from = match from {
            WalkFrom::Start => Position::START,
            WalkFrom::Position(hash) => Position::At(hash),
            WalkFrom::Key(key) | WalkFrom::Known(key) | WalkFrom::Behind(key) => {
                Position::Behind(self.hash(key), key)
            }
        };
        if let Some(index) = &self.index {
            let (keys, next) = index.next_keys(from, most);
            found.extend(keys.filter_map(|key| self.get(key)).map(Kept::duplicate));
            return next;
        }
        let (least, is_truncated) = self.least(from, most);
        let last = least.last().map(|(hash, _)| *hash);
        found.extend(least.into_iter().map(|(_, kept)| kept));
        last.and_then(|last| last.checked_add(1))
            .filter(|_| is_truncated)
    }

    fn knows(&self, key: &[u8], guard: &Guard) -> bool {
        let is_there = self.get(key).is_some_and(|kept| {
            // SAFETY: the caller holds the lock, which it took after it had made the guard.
            unsafe { kept.get_under(guard) }.resolve(guard).is_some()
        });
        let index = self.index.as_ref().filter(|_| self.fixed > 0);
        is_there || index.is_some_and(|index| index.was_removed(self.hash(key), key))
    }

    /// Finds the records of a slot, which is an interval of hashes.
    fn slot(&self, index: usize, found: &mut Vec<Kept<R>>) -> SlotAnswer {
        let slots = self.slots();
        if index >= slots {
            return if index == slots {
                SlotAnswer::End
            } else {
                SlotAnswer::Beyond
            };
        }
        let mut from = WalkFrom::Position(slot_start(index, slots));
        loop {
            let rest = self.gather(from, self.piece(), found);
            let len = found.len();
            found.retain(|kept| slot_of(self.hash(kept.get().key()), slots) == index);
            match rest {
                Some(next) if found.len() == len && slot_of(next, slots) == index => {
                    from = WalkFrom::Position(next);
                }
                _ => return SlotAnswer::Here,
            }
        }
    }

    fn fix(&mut self) {
        self.fixed += 1;
        if self.index.is_none() {
            let mut index = WalkIndex::new(self.slots());
            for kept in &self.records {
                let key = kept.get().key();
                index.add(self.hash(key), key);
            }
            self.index = Some(index);
        }
    }

    fn unfix(&mut self) {
        self.fixed = self.fixed.saturating_sub(1);
    }

    fn tidy(&mut self) {
        if self.fixed == 0 {
            self.index = None;
        }
    }

    /// Returns the bytes of the table and of the index. The table has a byte and a word for each
    /// bucket, and a power of two of buckets, of which it fills at most seven of eight.
    fn bytes(&self) -> usize {
        let buckets = (self.records.capacity() * 8 / 7).next_power_of_two();
        let index = self.index.as_ref().map_or(0, WalkIndex::bytes);
        buckets * (size_of::<Kept<R>>() + 1) + index
    }
}
