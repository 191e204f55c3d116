//! Locks of keys, for maps that have no locks of their own.

use ats_sync::lock::Held;
use ats_sync::model::{IS_EXPLORED, KEY_LOCKS};
use ats_sync::{CachePadded, Lock};
use std::hash::{BuildHasher, RandomState};

/// A fixed number of locks. The hash of a key selects its lock, so keys may share one.
pub(super) struct KeyLocks {
    locks: Box<[CachePadded<Lock>]>,
    hasher: Option<RandomState>,
}

impl KeyLocks {
    pub(super) fn new() -> Self {
        KeyLocks {
            locks: (0..KEY_LOCKS).map(|_| CachePadded(Lock::new())).collect(),
            hasher: (!IS_EXPLORED).then(RandomState::new),
        }
    }

    /// Takes the lock of a key. A thread must not hold another one of them.
    pub(super) fn lock(&self, key: &[u8]) -> Held<'_> {
        let hash = match &self.hasher {
            Some(hasher) => hasher.hash_one(key) as usize,
            None => key.iter().map(|byte| usize::from(*byte)).sum(),
        };
        self.locks[hash % KEY_LOCKS].lock_uncounted()
    }

    /// Returns the bytes of memory held besides `self`.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.locks)
    }
}
