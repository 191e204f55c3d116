//! The words that all stores of records by key bytes share, and the small interface of stores of
//! bytes.
//!
//! A *record* is a key and a value, both of them bytes; keys have the order of their bytes. This
//! crate knows neither terms nor where records lie.
//!
//! | module | words |
//! |---|---|
//! | [`range`](mod@range) | [`KeyRange`], [`Direction`], [`End`], [`successor`] |
//! | [`scan`] | [`WalkFrom`], [`SlotAnswer`], [`Skipped`] |
//! | [`change`] | [`Change`] of a key, [`BatchPlan`] of a batch |
//! | [`merge`] | [`MergeOperator`] |
//! | [`store`] | [`Store`], the abilities that some stores have besides, and [`StoreHandle`] |
//! | [`may_block`] | [`MayBlock`], the capability to block |
//! | [`bags`] | [`Bags`]: several values of one key |
//! | [`error`] | [`Error`], [`SystemError`] |
//! | [`btree`] | [`BTreeStore`], the store that others are compared with |
//!
//! The stores in memory of the crate `ats-mem` use these words, but not the trait [`Store`]: their
//! records are read in place, which bytes that a store lends for a moment cannot offer.

pub mod bags;
pub mod btree;
pub mod change;
pub mod error;
pub mod may_block;
pub mod merge;
pub mod range;
pub mod scan;
pub mod store;

pub use bags::{AddRule, BagValues};
pub use btree::BTreeStore;
pub use change::{BatchPlan, Change};
pub use error::{Error, SystemError};
pub use may_block::MayBlock;
pub use merge::{MergeOperator, Merged};
pub use range::{Direction, End, KeyRange, successor};
pub use scan::{Skipped, SlotAnswer, WalkFrom};
pub use store::{Bags, Merges, Store, StoreHandle};
