//! Stores for comparison: structures that a table in memory could have instead. Only builds that
//! measure or test have this crate.
//!
//! | store | what it is | readers |
//! |---|---|---|
//! | [`LockedHashMap`] | the hash map of the standard library behind a [lock with reader groups](crate::reader_groups) | take the lock |
//! | [`LockFreeTree`] | the lock-free variant of the contention adapting tree: updates exchange base nodes with immutable treaps | take no lock |
//! | [`SkipList`] | a concurrent skip list | take no lock |
//!
//! Good for: measuring what adaptation, fat nodes and reading without locks give; checking other
//! stores. Each says itself what it is good for and bad at.
//!
//! They keep the contract of [`Records`](ats_mem::Records), except for what it says of costs and of
//! waiting:
//! - **Readers may take locks**, so they write memory that others read, and wait for writers. They
//!   look without a lock at the records that they have found, which live as long as their guard, as
//!   everywhere.
//! - A thread that must not wait for long for a lock waits for these as long as it takes.
//! - Walks find a piece at a time, and visit it without locks.
//! - Ends and sizes keep all writers out for a moment.
//!
//! The hash map is one of a single writer (`store`), the others are maps that threads share
//! (`shared_store`).
//!
//! # Invariants of the one behind a lock
//! - RIVALS-1. A record is in the map from the moment a writer puts it there until a writer takes
//!   it out, both with the lock held to write. So the holder of the lock, to read or to write, can
//!   look at the records of the map.
//! - RIVALS-2. A record is retired only after it was taken out of the map, and by one thread: the
//!   writer that has taken it out, or the batch to which it belonged. So a thread that was pinned
//!   before it took the lock can look at what it has found there as long as its guard lives.
//! - RIVALS-3. The weight is that of what readers see in the map, whenever the lock is free.

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
