//! Stores for comparison: what a table can be if it does not adapt. Experimental, and nothing is paid for them where
//! they are not used.
//!
//! | store | what it is |
//! |---|---|
//! | [`SingleLock`] | a balanced tree behind one readers-writer lock: `ordered_set` of `ets` before Erlang/OTP 22 |
//! | [`LockedHashMap`] | the hash map of the standard library behind a [lock with reader groups](ats_sync::reader_groups) |
//! | [`LockFreeTree`] | a contention adapting tree of immutable parts, which updates exchange without locking them |
//!
//! Good for: measuring what adaptation and reading without locks give; checking other stores, since there is little
//! to go wrong here. Bad at: everything else under contention, since two threads never write at the same time.
//!
//! They keep the contract of [`Backend`](crate::Backend), except for what it says of costs and of waiting:
//! - **Readers take the lock** (those of `LockFreeTree` do not), so they write memory that others read, and wait for
//!   writers. What they have found they look at without the lock: it lives as long as their guard, as everywhere.
//! - A thread that must not wait for long for a lock waits for these as long as it takes.
//! - Walks read a piece under the lock, and visit it without.
//!
//! What else they do dearly is said by each.
//!
//! # Invariants
//! - V1. A record is in the map from the moment a writer puts it there until a writer takes it out, both with the lock
//!   held to write. So the holder of the lock, to read or to write, can look at the records of the map.
//! - V2. A record is retired only after it was taken out of the map, and by one thread: the writer that has
//!   taken it out, or the batch to which it belonged. So a thread that was pinned before it took the lock can look at
//!   what it has found there as long as its guard lives.
//! - V3. The tally is that of what readers see in the map, whenever the lock is free.

mod hash_map;
mod in_range;
mod key_locks;
mod lock_free;
mod record_map;
mod shared_map;
mod shared_store;
mod single_lock;
mod store;
mod walk_index;

pub use hash_map::LockedHashMap;
pub use lock_free::LockFreeTree;
pub use single_lock::SingleLock;
