//! Concurrent maps of Rust types, in memory and on disk.
//!
//! | map | description |
//! |---|---|
//! | [`OrderedMap`] | in memory, in the order of its keys: ranges, ranks, a queue with priorities |
//! | [`HashMap`] | in memory, without order |
#![cfg_attr(
    feature = "disk",
    doc = "| [`DiskMap`] | on disk, in the order of its keys, with merges, batches, transactions \
           and snapshots; of the feature `disk` |"
)]
#![cfg_attr(
    not(feature = "disk"),
    doc = "| `DiskMap`, of the feature `disk` | on disk, in the order of its keys, with merges, \
           batches, transactions and snapshots |"
)]
//!
//! ```
//! use ats::OrderedMap;
//!
//! let prices: OrderedMap<String, u32> = OrderedMap::new(); // shared by reference, or in an `Arc`
//! prices.insert("pear", 40);
//! prices.insert("apple", 30);
//! assert_eq!(prices.get("pear"), Some(40));
//! assert_eq!(prices.range("b"..).next(), Some((String::from("pear"), 40)));
//! ```
//!
//! The module [`terms`] has tables of Erlang terms, with the functions of Erlang's `ets`.
//!
//! # Keys and values
//! A [`Key`] is encoded as bytes in the order of the keys; a lookup takes any value with the [same
//! bytes](AsKey). A [`Value`] is encoded as bytes, too. So a map has no node for each pair and no
//! comparisons that call back, and it returns copies.
//!
//! | feature | has |
//! |---|---|
//! | `derive` | `#[derive(Key)]` and `#[derive(Value)]` |
//! | `disk` | `DiskMap` |
//! | `serde` | `Serde<T>`, a value of any type that `serde` supports; maps are serialised as maps |
//! | `uuid`, `chrono` | values of the types `Uuid` and `DateTime<Utc>` |
//!
//! # Instead of `entry`
//! An entry would have to keep other threads out while the program holds it.
//! [`update`](HashMap::update), [`compute`](HashMap::compute), [`merge`](HashMap::merge) and
//! [`get_or_insert_with`](HashMap::get_or_insert_with) of each map are one step each, for the key
//! at the moment of the change, and [`transact`](HashMap::transact) for several keys. The page
//! `docs/use/rust.md` has them beside the chains of calls that they replace.
//!
//! ```
//! use ats::HashMap;
//!
//! let words: HashMap<String, u64> = HashMap::new();
//! words.merge("pear", 1, |old, more| old + more); // *entry(..).or_insert(0) += 1
//! words.update("pear", |old| old * 10); // entry(..).and_modify(..)
//! words.compute("pear", |old| Some(old.map_or(1, |old| old + 1))); // and .or_insert(1)
//! assert_eq!(words.get_or_insert_with("plum", || 5), 5); // entry(..).or_insert_with(..)
//! assert_eq!(words.get("pear"), Some(11));
//! ```
//!
//! # Caches
//! [`HashMap::builder`] and [`OrderedMap::builder`] build maps whose pairs expire, some time after
//! they were written or last used, and maps with a bound of their pairs or of their memory, which
//! evict by S3-FIFO. `get_or_insert_with` of every map in memory makes a missing value once,
//! however many threads ask for it.
//!
//! ```
//! use ats::{HashMap, Limited};
//! use std::time::Duration;
//!
//! let users: HashMap<u64, String, Limited> =
//!     HashMap::builder().ttl(Duration::from_secs(60)).max_len(10_000).build();
//! let load = |id: u64| format!("user {id}"); // takes long, one may think
//! assert_eq!(users.get_or_insert_with(7, || load(7)), "user 7");
//! assert_eq!(users.get(7).as_deref(), Some("user 7"));
//! ```
//!
//! A pair of such a map takes 8 bytes more, numbers of eight bytes 16; an entry of a deadline takes
//! the bytes of its key and 14 more, an entry of a bound 6 more. A read of a map with a bound
//! writes to the pair until it was read three times.
//!
//! # Consistency
//! - **One key.** All functions about one key are linearizable, and so are `compute`, `update`,
//!   `merge` and `get_or_insert_with`: their changes depend on the value at the moment of the
//!   change.
//! - **Several keys.** `insert_many` and `insert_many_new` are one step: a thread that reads one of
//!   the new values finds all others. So is `transact` of maps in memory, which also reads keys:
//!   all of its values are those of the moment of its changes.
//! - **Iterators** see each key as of a moment after the iterator was made and before the pair is
//!   returned. A key that is present throughout is returned exactly once, a key that is absent
//!   throughout is not returned. `retain` and `remove_range` go through a map in the same way, and
//!   change each key at its own moment. `clear` removes all keys at one moment.
//! - **Snapshots** show all keys as of one moment.
//! - **Numbers.** `len`, `count`, `rank` and `nth` are exact at a moment during the call.
//! - **Expiry.** A call that begins after the deadline of a pair does not see it. A pair whose
//!   deadline passes during a call may be gone for one part of the call and not for another: it may
//!   count in `len` beside a pair that was inserted later.
//! - **Bounds.** A pair may be evicted at any time, as if another thread removed it.
//!
//! # Transactions
//! [`HashMap::transact`] and [`OrderedMap::transact`] run a function that reads and changes several
//! keys of a [view](MapView) of the map, and make this one step. The values that it has read are
//! compared with those in the map at the end; if some differ, the function runs again.
//!
//! ```
//! use ats::{HashMap, TransactError};
//!
//! let accounts: HashMap<String, u64> = HashMap::from([("anna".into(), 50), ("ben".into(), 30)]);
//! let moved = accounts.transact(|view| {
//!     let euros = view.remove("ben").ok_or("ben has no account")?;
//!     view.update("anna", |anna| anna + euros).ok_or("anna has no account")?;
//!     Ok::<u64, &str>(euros)
//! });
//! assert_eq!(moved, Ok(30));
//! assert_eq!((accounts.get("anna"), accounts.get("ben")), (Some(80), None));
//!
//! // A transaction that only reads gives values of one moment.
//! let both = accounts.transact(|view| {
//!     let [anna, ben] = ["anna", "ben"].map(|name| view.get(name).ok_or(name));
//!     Ok::<u64, &str>(anna? + ben?)
//! });
//! assert_eq!(both, Err(TransactError::Abandoned("ben")));
//! ```
//!
//! # Blocking
//! Readers and iterators wait for no other thread. A writer waits for other writers of the same
//! part of the map, for microseconds, and for a batch that holds its key. No function returns a
//! guard or calls a function of the program under a lock, so no use of a map can deadlock: a
//! closure, and a loop over an iterator, may use the same map.
//!
//! `get_or_insert_with` and `try_get_or_insert_with` wait while another thread makes the value of
//! the same key. Calls that would wait for each other, or for themselves, panic.
//!
//! A map in memory never waits for a device, so asynchronous code can use it directly, except for
//! these two functions if the closure waits, and except for `transact`, which may sleep for some
//! milliseconds if many threads change the keys that it reads. All functions of a `DiskMap` may
//! wait for the disk.
//!
//! # Complexity
//! | function | `OrderedMap` | `HashMap` |
//! |---|---|---|
//! | `get`, `insert`, `remove`, `compute` and similar functions | O(log n) | O(1) |
//! | `first`, `last`, `pop_first`, `pop_last`; `pop` | O(log n) | O(1), amortised |
//! | `range`, `iter`: m pairs | O(log n + m) | O(m) |
//! | `insert_many` of m pairs | O(m log m + m log n) | O(m log m) |
//! | `transact` of m keys | O(m log m + m log n) | O(m log m) |
//! | `count`, `rank`, `nth` | O(log n), once the keys were counted; O(keys that are passed) beside batches | |
//! | `len`, `snapshot` | O(locks) | O(locks) |
//! | `clear` | O(1) | O(1) |
//! | removal of expired pairs, before `len`, `count`, `rank`, `nth` and `snapshot` | O(log n) for each that the background thread has not removed yet | |
//! | `count`, `rank`, `nth` of a snapshot | O(keys that are passed) | |
//!
//! A key in memory has less than 4 GiB, and a value less than 16 GiB; functions panic if they get a
//! larger one. On disk each has less than 2 GiB, and a larger one is an error. Copying the bytes of
//! keys and values takes additional time.
//!
//! # Memory
//! A removed pair is freed soon after the calls that may still read it; a large map is freed in the
//! [background] when it is dropped. [`collect`] frees at once all that no call reads. [`trim`]
//! gives free memory back to the system, which otherwise happens after two seconds.
//!
//! # Further reading
//! The folder `examples` of the crate has a cache, a queue with priorities, a time series, words
//! counted by merges, and accounts on disk.

pub mod background;
mod idle_joiner;
mod map;
pub mod terms;

#[cfg(feature = "disk")]
#[doc(inline)]
pub use ats_disk as disk;

#[cfg(feature = "derive")]
pub use ats_derive::{Key, Value};
#[doc(hidden)]
pub use ats_mem::ShortKey;
pub use ats_mem::slab::trim;
pub use ats_sync::collect;
#[cfg(feature = "serde")]
pub use map::Serde;
#[doc(hidden)]
pub use map::sum_of_lengths;
pub use map::{
    AsKey, AsValue, ByteBounds, HashIter, HashMap, HashSnapshot, Key, KeyBounds, KeyBytes,
    KeyPrefix, KeyReader, Limited, MapBuilder, MapKind, MapView, OrderedIter, OrderedMap,
    OrderedSnapshot, TransactError, Unlimited, Value, ValueBytes, take_part,
};
#[cfg(feature = "disk")]
pub use map::{DiskBatch, DiskIter, DiskMap, DiskSnapshot, DiskTransaction};
#[doc(inline)]
pub use terms::TimeLeft;

/// The Rust example of the project's front page, which must stay right.
#[doc = include_str!("../../../README.md")]
#[cfg(doctest)]
struct FrontPage;

/// The examples of the page for programs in Rust.
#[doc = include_str!("../../../docs/use/rust.md")]
#[cfg(doctest)]
struct RustPage;

/// The example of the page for programs that have another cache.
#[doc = include_str!("../../../docs/use/moving-from-caches.md")]
#[cfg(doctest)]
struct CachesPage;
