//! Records keyed by bytes, in memory.
//!
//! A [`Record`] is a key and a value, immutable once published. A store of [`Records`] keeps them:
//! [`CaTree`] in the order of their keys, [`HashTable`] without order. Readers never lock, write
//! nothing shared and wait for no other thread; memory that they may still access is freed by
//! epochs ([`ats_sync`]). Several keys can be written atomically ([`batch`]), and a change that
//! takes long can hold one key ([`Provided::update_alone`]).

pub mod batch;
pub mod catree;
mod change;
#[cfg(all(test, loom))]
mod explore;
mod figures;
pub mod forcing;
pub mod hash;
mod identity;
mod lazy;
mod passing;
mod prefetch;
mod provided;
pub mod read_points;
pub mod record;
mod records;
pub mod sequence;
mod short_key;
pub mod slab;
mod walk;

pub use ats_store::{Direction, End, KeyRange, SlotAnswer, WalkFrom};
pub use batch::Transaction;
pub use catree::{CaTree, OnFirstSplit};
pub use change::{BatchPlan, Busy, Change, DecideMany};
pub use figures::{Adaptation, BaseState, Buckets, Memory, ShapeNode, Totals};
pub use hash::HashTable;
pub use passing::{Passing, go_on};
pub use provided::Provided;
pub use read_points::{ReadPoint, When};
pub use record::{Plain, Record, RecordBox, Release, Weight};
pub use records::{Beside, COUNTINGS, Neighbour, NoSuchKey, Records, Skipped, Upkeep};
pub use short_key::ShortKey;
pub use walk::Walk;
