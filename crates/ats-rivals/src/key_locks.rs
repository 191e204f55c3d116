//! Locks of keys, for maps that have none of their own.

use ats_sync::lock::Held;
use ats_sync::{CachePadded, Lock};
use std::hash::{BuildHasher, RandomState};

/// The number of locks: so many that two threads rarely meet at one for different keys.
const LOCKS: usize = if cfg!(any(loom, shuttle)) { 4 } else { 256 };

/// A lock for each key, which it shares with the other keys of the same hash.
pub(super) struct KeyLocks {
    locks: Box<[CachePadded<Lock>]>,
    hasher: Option<RandomState>,
}

impl KeyLocks {
    pub(super) fn new() -> Self {
        KeyLocks {
            locks: (0..LOCKS).map(|_| CachePadded(Lock::new())).collect(),
            // What is explored must be repeatable.
            hasher: (!cfg!(any(loom, shuttle))).then(RandomState::new),
        }
    }

    /// Takes the lock of a key. A thread has one at a time.
    pub(super) fn lock(&self, key: &[u8]) -> Held<'_> {
        let hash = match &self.hasher {
            Some(hasher) => hasher.hash_one(key) as usize,
            None => key.iter().map(|byte| usize::from(*byte)).sum(),
        };
        self.locks[hash % LOCKS].lock_uncounted()
    }

    /// Bytes of memory besides those of itself.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.locks)
    }
}
