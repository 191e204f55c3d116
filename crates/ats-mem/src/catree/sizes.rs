//! The sizes of leaves.

pub(super) use ats_sync::model::{LEAF_KEYS as LEAF, SMALL_LEAF_KEYS as SMALL};

/// Number of cache lines of a full-sized leaf: half of one before the heads, and then a head and a
/// word for each key.
pub(super) const LEAF_LINES: usize = (32 + LEAF * 16) / 64;
