//! Records keyed by bytes, in memory.
//!
//! A [`Record`] is a key and a value, immutable once published. A [`Backend`] keeps records:
//! [`CaTree`] in the order of their keys, [`HashTable`] without order. Readers never lock, write
//! nothing shared and wait for no other thread; what they may still be looking at is freed by
//! epochs ([`ats_sync`]). Several keys can be written as one ([`batch`]), and one key can be held
//! by a change that takes long ([`Backend::update_alone`]).

pub mod backend;
pub mod batch;
pub mod catree;
mod change;
#[cfg(all(test, loom))]
mod explore;
pub mod forcing;
pub mod hash;
mod lazy;
pub mod moments;
mod prefetch;
pub mod record;
pub mod sequence;
mod short_key;
pub mod slab;

pub use backend::{
    Adaptation, Adaptive, Backend, BaseState, Buckets, COUNTINGS, Direction, End, Fixable,
    KeyRange, Memory, MemoryStore, Neighbour, NoSuchKey, Ordered, OrderedStore, ScanPosition,
    ShapeNode, Skipped, SlotAnswer, Slots, Totals,
};
pub use catree::{CaTree, OnFirstSplit};
pub use change::{BatchPlan, Busy, Change, DecideMany};
pub use hash::HashTable;
pub use moments::{Moment, When};
pub use record::{Plain, Record, RecordBox, Release, Weight};
pub use short_key::ShortKey;
