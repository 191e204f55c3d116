//! Tables of Erlang terms, with the functions of Erlang's `ets`.
//!
//! A [`Table`] holds *objects*, tuples that have their key at a fixed position. The
//! [types](TableType) differ in the equality of keys and in the number of objects that a key can
//! have. Terms come from and go to a *host* ([`ats_term::image::Host`]): the Erlang VM, or
//! [`Term`]s of a Rust program.
//!
//! ```
//! use ats::terms::{Table, TableType, Term, TermHost, Workspace};
//!
//! let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
//! let mut work = Workspace::new();
//! for (number, name) in [(1, "one"), (2, "two")] {
//!     table.insert(&Term::from((number, name)), &mut work)?;
//! }
//! let guard = ats::terms::pin();
//! let key = Term::try_from(1.0)?; // 1 == 1.0 in an ordered table
//! let found = table.lookup(&key, &mut work, &guard)?;
//! assert_eq!(found.map(|found| found.count()), Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Overview
//! A program shares a [`Table`] by reference or in an [`Arc`](std::sync::Arc); all functions take
//! `&self`. Each thread has a [`Workspace`], the buffers of its calls. The result of a read lives
//! as long as the [`Guard`] that [`pin`] gives.
//!
//! | to | use |
//! |---|---|
//! | write an object | [`insert`](Table::insert), [`insert_new`](Table::insert_new) |
//! | write several as one | [`insert_many`](Table::insert_many), [`insert_many_new`](Table::insert_many_new) |
//! | read a key | [`lookup`](Table::lookup), then [`LookupResult`] |
//! | change an object | [`update_element`](Table::update_element), [`update_one_counter`](Table::update_one_counter), [`update_counter`](Table::update_counter), [`merge`](Table::merge) |
//! | remove | [`delete`](Table::delete), [`delete_object`](Table::delete_object), [`clear`](Table::clear) |
//! | remove and get | [`take`](Table::take), [`take_end`](Table::take_end), [`take_all`](Table::take_all) |
//! | walk | [`first`](Table::first), [`next`](Table::next), [`scan`](Table::scan); [`fix`](Table::fix) |
//! | find by rank, count a range | [`nth`](Table::nth), [`count`](Table::count), [`skip`](Table::skip) |
//! | run a match specification | [`select`](Table::select) and the module [`select`](mod@select) |
//!
//! The examples `cache`, `queue` and `ranges` of the crate are a cache that threads share, a queue
//! with priorities, and ranges and ranks.
//!
//! # Types of tables
//! | [type](TableType) | the same key | objects of a key | order |
//! |---|---|---|---|
//! | `Set` | `=:=` | one | none |
//! | `OrderedSet` | `==` | one | Erlang's standard order |
//! | `Bag` | `=:=` | several, all different | none |
//! | `DuplicateBag` | `=:=` | several | none |
//! | `OrderedBag` | `==` | several, all different | Erlang's standard order |
//! | `OrderedDuplicateBag` | `==` | several | Erlang's standard order |
//!
//! The objects of a key of a bag are in the order in which they were inserted. [`Zeros`] says if
//! `0.0` and `-0.0` are the same under `=:=`.
//!
//! # Consistency
//! - **One key.** An operation on one key is linearizable. A reader sees all objects of the key
//!   before the operation or all after it. An object with an element that changes in place is
//!   read as of the moment at which the [`LookupResult`] is read.
//! - **A list.** [`insert_many`](Table::insert_many) is one step: every reader sees all of its
//!   objects or none. A thread that has seen one of them finds all others.
//! - **A transaction.** [`transact`](Table::transact) tests several keys and changes several keys
//!   as one step: every reader sees all of its changes or none, and its conditions hold at that
//!   moment. [`transact_all`](Table::transact_all) does so over several tables: a thread that has
//!   seen a change in one table finds all others in all tables.
//! - **A failure.** An operation that returns an [`Error`] has changed nothing. A failed change by
//!   a query keeps the changes that it has made before.
//! - **A walk.** [`scan`](Table::scan), steps with [`next`](Table::next), and a
//!   [`select`](Table::select) without a moment see each key as of the moment at which they come to
//!   it. An object that is present throughout is visited exactly once, an object that is
//!   absent throughout is not visited. In tables without order this needs [`fix`](Table::fix) if
//!   the walk consists of several calls, unless it is a [`select`](Table::select). A walk that runs
//!   concurrently with a writer of a list may visit some new and some old objects of the list.
//! - **A query.** A [`select`](Table::select) that [`begin`](Table::begin) has given a moment, and
//!   all reads of a snapshot, show the table as it was at that moment, however long they take.
//! - **Taking.** Of several threads that take the same object exactly one gets it.
//! - **All objects.** [`clear`](Table::clear) and [`take_all`](Table::take_all) happen at one
//!   moment for every reader and writer.
//! - **Sizes.** [`len`](Table::len), ranks and counts of ranges are exact at some moment during the
//!   call. A table in a [store of bytes](#bytes) is counted slice by slice.
//!
//! # Complexity
//! *n* is the number of keys, *k* the number of objects of the key, *m* the number of objects of a
//! call. Copying objects and encoding keys takes additional time in proportion to their size.
//!
//! | operation | without order | with order |
//! |---|---|---|
//! | `lookup` | O(1) | O(log n) |
//! | `insert`, `insert_new` | O(1) | O(log n) |
//! | the same in a bag, besides | O(log k) | O(log k) |
//! | `insert_many` | O(m log m) | O(m log m + m log n) |
//! | `transact`, `transact_all` of m steps, besides the steps | O(m log m) | O(m log m + m log n) |
//! | `delete`, `take` | O(1) | O(log n) |
//! | `delete_object`, for each that goes | O(1 + log k) | O(log n + log k) |
//! | `update_element`, `update_counter`, `merge` | O(1) and a new object | O(log n) and a new object |
//! | `update_one_counter`, `merge` of small numbers | O(1), mostly in place | O(log n), mostly in place |
//! | `first`, `last`, `take_end` | O(1), amortised | O(log n) |
//! | `next`, `prev` | O(1) | O(log n) |
//! | `scan` of m keys | O(m) | O(log n + m) |
//! | `nth`, `skip`, `count` | refused | O(log n) for each part with a lock, once they were counted |
//! | `select` | the keys that it names, or all | the ranges of keys that it allows |
//! | `len` | O(locks) | O(locks) |
//! | `clear`, `take_all`, `delete_all` | O(1) | O(1) |
//!
//! A table has few locks unless many threads write to it at once. In a [store of bytes](#bytes)
//! some of these cost more; [`on_store`](Table::on_store) says which.
//!
//! # Memory
//! Readers take no lock. So a replaced or removed object is freed only when all [`Guard`]s are
//! dropped that existed at that moment.
//!
//! - [`pin`] takes a few nanoseconds, and nests. While a guard lives, no object that any thread
//!   removes from any table is freed. A guard is for one lookup or for a short walk, not for the
//!   life of a thread. [`LookupResult::keep`] keeps the objects of a large key without a guard.
//! - Writers free removed objects a few at a time, and a background thread frees the rest, mostly
//!   within 100 ms after the last guard is dropped.
//! - [`collect`](crate::collect) frees at once all objects that no guard protects.
//!   [`trim`](crate::trim) gives free memory back to the system, which otherwise happens after two
//!   seconds.
//! - [`compressed`](Table::compressed) trades time for memory. [`bytes`](Table::bytes) returns the
//!   memory of a table.
//!
//! # Blocking
//! Readers wait for no other thread. A writer waits for other writers of the same part of the
//! table, which hold its lock for microseconds; a longer change holds only its key. A writer that
//! finds its key held by a list waits a moment and then returns [`Error::Busy`]: nothing has
//! changed, and the caller can try again, best after [`yield_now`](std::thread::yield_now).
//!
//! A thread that serves others, as a scheduler of the Erlang VM does, must not work for long
//! either. [`Workspace::limit`] bounds the size of objects, [`select`](Table::select) and
//! [`skip`](Table::skip) work in slices, [`Locking`] selects when a key is locked, and
//! [`ats_sync::lock::set_may_wait`] bounds the wait for locks.
//!
//! Tables in memory never wait for a device. Tables on a store of bytes may: they ask a function of
//! the program if the thread may block, and if not they return [`Error::Storage`] with
//! [`WouldBlock`](ats_store::Error::WouldBlock) instead.
//!
//! # Bytes
//! [`Table::on_store`] makes a table whose objects are bytes in any store that implements
//! [`Store`]: [`BTreeStore`] in memory, or `AtomicStore` and `BagStore` of the crate `ats-disk` on
//! disk. A [`Codec`] encodes objects as bytes; [`TermCodec`] uses Erlang's external term format.
//! Then operations can fail with [`Error::Storage`].
//!
//! # Further reading
//! - [`ats_term`]: terms, their order, and keys as bytes. [`ats_match`]: match specifications.
//!   [`ats_merge`]: merges. [`ats_store`]: the interface of stores.
//! - `docs/use/tables-in-memory.md`: the same tables for Erlang programs.
//! - `docs/inside/design.md`: the paths of a lookup, an insert and a select, and the reasons for
//!   the design.

mod bag;
mod cell_words;
mod cells;
mod description;
mod drained;
mod error;
mod held_read_point;
mod integer;
mod likelihood;
mod lock_budget;
mod lookup_result;
mod merge_text;
pub(crate) mod note;
mod operations;
mod read_point;
pub mod salvage;
pub mod select;
mod snapshot;
mod snapshot_list;
mod sorted_batch;
pub(crate) mod store;
mod table;
mod unpack;
pub(crate) mod value;
mod workspace;

pub use ats_mem::{Adaptation, BaseState, Buckets, ShapeNode};
pub use ats_merge::Merge;
#[cfg(feature = "rivals")]
pub use ats_rivals::Rival;
pub use ats_store::{
    BTreeStore, BagValues, Bags, Direction, End, KeyRange, Skipped, SlotAnswer, Store, StoreHandle,
};
pub use ats_sync::{Guard, pin};
pub use ats_term::image::TermHost;
pub use ats_term::{Integer, Term, Zeros};
pub use description::{Description, NoDescription};
pub use drained::DrainedTable;
pub use error::Error;
pub use held_read_point::{Ending, HeldReadPoint, Reader};
pub use lookup_result::{KeptObjects, LookupResult};
pub use operations::counter::CounterOp;
pub use operations::delete::Taken;
pub use operations::insert::ExistingKey;
pub use operations::lifetime::Lifetime;
pub use operations::merge::{Locking, MergedValue, Merging};
pub use operations::order_statistics::Passage;
pub use operations::transact::{
    Accepts, Condition, MOST_TABLES, NotDone, Place, Step, StepResult, TablePart,
};
pub use operations::walk::NextKey;
pub use read_point::TableReadPoint;
pub use snapshot::Snapshot;
pub use snapshot_list::KeptSnapshots;
pub use store::bag_values::ObjectIdentity;
pub use store::codec::{Codec, TermCodec};
#[cfg(feature = "forcing")]
pub use store::limited::advance_clock;
pub use store::limited::{Gone, Limits, OnGone, TimeLeft, Ttl};
pub use store::object_merge::ObjectMerge;
pub use store::operator::PortableMerge;
pub use store::program_merge;
pub use table::{Table, TableType};
pub use unpack::UnpackBuffer;
pub use workspace::Workspace;
