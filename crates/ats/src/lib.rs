//! Tables of Erlang terms: types, keys, fixation, counters.
//!
//! A [`Table`] holds *objects*, tuples that have their key at a fixed position. What it does with
//! them is what Erlang's `ets` does: the four [types](TableType) differ in what counts as the same
//! key and in how many objects a key can have. Terms come from and go to a *host*
//! ([`ats_term::image::Host`]): the Erlang VM, or [`Term`](ats_term::Term)s of a Rust program.
//!
//! ```
//! use ats::{Table, TableType, TermHost, Workspace};
//! use ats_term::Term;
//!
//! let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
//! let mut work = Workspace::new();
//! for (number, name) in [(1, "one"), (2, "two")] {
//!     table.insert(&Term::from((number, name)), &mut work)?;
//! }
//! let guard = ats::pin();
//! let key = Term::try_from(1.0)?; // 1 == 1.0 in an ordered table
//! let found = table.lookup(&key, &mut work, &guard)?;
//! assert_eq!(found.map(|found| found.count()), Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod background;
mod bag;
mod counter_cell;
mod counter_word;
mod description;
mod drained;
mod error;
mod integer;
mod lock_budget;
mod lookup_result;
mod merge_text;
mod operations;
pub mod salvage;
pub mod select;
mod sorted_batch;
mod store;
mod table;
mod unpack;
mod value;
mod workspace;

pub use ats_mem::slab::trim;
pub use ats_mem::{Adaptation, Buckets};
pub use ats_merge::Merge;
#[cfg(feature = "rivals")]
pub use ats_rivals::Rival;
pub use ats_store::{
    BTreeStore, BagValues, Bags, Direction, End, KeyRange, MayBlock, Skipped, SlotAnswer, Store,
    StoreHandle,
};
pub use ats_sync::{Guard, collect, pin};
pub use ats_term::Integer;
pub use ats_term::Zeros;
pub use ats_term::image::TermHost;
pub use description::{Description, NoDescription};
pub use drained::DrainedTable;
pub use error::Error;
pub use lookup_result::{KeptObjects, LookupResult};
pub use operations::counter::CounterOp;
pub use operations::delete::Taken;
pub use operations::insert::ExistingKey;
pub use operations::merge::{Locking, Merging, Value};
pub use operations::walk::NextKey;
pub use store::bag_values::ObjectIdentity;
pub use store::codec::{Codec, TermCodec};
pub use store::object_merge::ObjectMerge;
pub use store::operator::PortableMerge;
pub use store::program_merge;
pub use table::{Table, TableType};
pub use unpack::UnpackBuffer;
pub use workspace::Workspace;

/// The Rust example of the project's front page, which must stay right.
#[doc = include_str!("../../../README.md")]
#[cfg(doctest)]
struct FrontPage;
