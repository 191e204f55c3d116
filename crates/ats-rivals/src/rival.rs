//! The stores for comparison, by their names.

use crate::{LockFreeTree, LockedHashMap, SkipList};
use ats_mem::{Records, Release};

/// One of the stores for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// A concurrent skip list.
    SkipList,
    /// The lock-free contention adapting tree.
    LockFreeTree,
    /// The hash map of the standard library behind a lock with reader groups, which has no order.
    HashMap,
}

impl Rival {
    /// All stores for comparison.
    pub const ALL: [Self; 3] = [Rival::SkipList, Rival::LockFreeTree, Rival::HashMap];

    /// Returns the name of the store.
    pub fn name(self) -> &'static str {
        match self {
            Rival::SkipList => "skip_list",
            Rival::LockFreeTree => "lock_free_tree",
            Rival::HashMap => "hash_map",
        }
    }

    /// Returns `true` if the store is ordered by key.
    pub fn is_ordered(self) -> bool {
        self != Rival::HashMap
    }

    /// Makes an empty store of this kind, and passes it to `user`.
    pub fn make<R: Release, U: StoreUser<R>>(self, user: U) -> U::Use {
        match self {
            Rival::SkipList => user.accept(SkipList::new()),
            Rival::LockFreeTree => user.accept(LockFreeTree::new()),
            Rival::HashMap => user.accept(LockedHashMap::new()),
        }
    }
}

/// A function of a new store, generic over the type of the store.
pub trait StoreUser<R: Release> {
    /// The result of the function.
    type Use;

    /// Takes the new store.
    fn accept<S: Records<R> + 'static>(self, store: S) -> Self::Use;
}
