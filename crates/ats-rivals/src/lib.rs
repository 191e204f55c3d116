//! Stores for comparison: alternatives to the stores of `ats-mem`. Only builds that measure or test
//! contain this crate.
//!
//! | store | structure | readers |
//! |---|---|---|
//! | [`LockedHashMap`] | the hash map of the standard library behind a [lock with reader groups](crate::reader_groups) | take the lock |
//! | [`LockFreeTree`] | the lock-free variant of the contention adapting tree: updates exchange base nodes with immutable treaps | take no lock |
//! | [`SkipList`] | a concurrent skip list | take no lock |
//!
//! Good for: measuring the gain of adaptation, of fat nodes and of reads without locks; checking
//! other stores. The module of each store says its own strengths and weaknesses.
//!
//! They keep the contract of [`Records`](ats_mem::Records), except for its costs and its rules
//! about waiting:
//! - **Readers may take locks.** Then they write memory that others read, and wait for writers.
//!   They read the records that they have found without a lock; these live as long as their guard,
//!   as everywhere.
//! - A thread that must not wait long for a lock waits for these as long as it takes.
//! - Walks collect a number of records first, and then visit them without locks.
//! - Changes at an end, and totals, keep all writers out for a moment.
//!
//! The hash map excludes all others during a write (`store`). The other stores are maps that
//! threads change at the same time (`shared_store`).
//!
//! # Invariants of the store behind a lock
//! - RIVALS-1. A record is in the map from the moment a writer puts it there until a writer takes
//!   it out, both with the lock held to write. So the holder of the lock, to read or to write, can
//!   access the records of the map.
//! - RIVALS-2. A record is retired only after it was taken out of the map, and by one thread: the
//!   writer that has taken it out, or the batch to which it belonged. So a thread that was pinned
//!   before it took the lock can access the records that it has found as long as its guard lives.
//! - RIVALS-3. The weight is the sum over the records in the map that readers see, whenever the
//!   lock is free.

mod hash_map;
mod key_locks;
mod lock_free;
pub mod reader_groups;
mod record_map;
mod rival;
mod shared_map;
mod shared_store;
mod skip_list;
mod store;
mod walk_index;

pub use hash_map::LockedHashMap;
pub use lock_free::LockFreeTree;
pub use reader_groups::ReaderGroupLock;
pub use rival::{Rival, StoreUser};
pub use skip_list::SkipList;
