//! The stores for comparison, by their names.

use crate::{LockFreeTree, LockedHashMap, SkipList};
use ats_mem::{MemoryStore, OrderedStore, Release};

/// A store for comparison.
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
    /// All that there are.
    pub const ALL: [Self; 3] = [
        Rival::SkipList,
        Rival::LockFreeTree,
        Rival::HashMap,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Rival::SkipList => "skip_list",
            Rival::LockFreeTree => "lock_free_tree",
            Rival::HashMap => "hash_map",
        }
    }

    /// Returns `true` if it has the order of its keys.
    pub fn is_ordered(self) -> bool {
        self != Rival::HashMap
    }

    /// A store of this kind, without records.
    pub fn store<R: Release>(self) -> RivalStore<R> {
        let records = match self {
            Rival::SkipList => Records::Ordered(Box::new(SkipList::new())),
            Rival::LockFreeTree => Records::Ordered(Box::new(LockFreeTree::new())),
            Rival::HashMap => Records::Unordered(Box::new(LockedHashMap::new())),
        };
        RivalStore {
            rival: self,
            records,
        }
    }
}

/// A store for comparison, whichever it is.
pub struct RivalStore<R: Release> {
    rival: Rival,
    records: Records<R>,
}

enum Records<R: Release> {
    Ordered(Box<dyn OrderedStore<R>>),
    Unordered(Box<dyn MemoryStore<R>>),
}

impl<R: Release> RivalStore<R> {
    /// Its kind.
    pub fn rival(&self) -> Rival {
        self.rival
    }

    /// The store.
    pub fn records(&self) -> &dyn MemoryStore<R> {
        match &self.records {
            Records::Ordered(records) => &**records,
            Records::Unordered(records) => &**records,
        }
    }

    /// The store, if it has an order.
    pub fn as_ordered(&self) -> Option<&dyn OrderedStore<R>> {
        match &self.records {
            Records::Ordered(records) => Some(&**records),
            Records::Unordered(_) => None,
        }
    }
}
