//! Types that all stores share, and [`Store`], the interface of stores that keep records as bytes.
//!
//! A *record* is a key and a value, both byte strings; keys are ordered bytewise. This crate knows
//! nothing of terms, nor of the layout of records in memory.
//!
//! | module | contents |
//! |---|---|
//! | [`range`](mod@range) | [`KeyRange`], [`Direction`], [`End`], [`successor`] |
//! | [`scan`] | [`WalkFrom`], [`SlotAnswer`], [`Skipped`] |
//! | [`change`] | [`Change`] of a key, [`BatchPlan`] of a batch |
//! | [`merge`] | [`MergeOperator`] |
//! | [`store`] | [`Store`], the abilities that some stores have besides, and [`StoreHandle`] |
//! | [`may_block`] | [`MayBlock`], the capability to block |
//! | [`bags`] | [`Bags`]: several values of one key |
//! | [`mod@lifetime`] | [`Lifetime`]: records that expire |
//! | [`error`] | [`Error`], [`SystemError`] |
//! | [`btree`] | [`BTreeStore`], the reference for other stores |
//!
//! The in-memory stores of `ats-mem` use these types, but do not implement [`Store`]. Their callers
//! read records in place for as long as a guard lives. A `Store` lends bytes only while a closure
//! runs.

pub mod bags;
pub mod btree;
pub mod change;
pub mod error;
pub mod lifetime;
pub mod may_block;
pub mod merge;
pub mod range;
pub mod scan;
pub mod store;

pub use bags::{AddRule, BagValues};
pub use btree::BTreeStore;
pub use change::{BatchPlan, Change};
pub use error::{Error, SystemError};
pub use lifetime::Lifetime;
pub use may_block::MayBlock;
pub use merge::{MergeOperator, Merged};
pub use range::{Direction, End, KeyRange, successor};
pub use scan::{Skipped, SlotAnswer, WalkFrom};
pub use store::{Bags, Expires, Merges, Store, StoreHandle};
