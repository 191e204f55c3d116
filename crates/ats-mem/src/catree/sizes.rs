//! The sizes of leaves.

/// Most keys of a leaf. Small where interleavings are explored, so that few steps lead to changes of
/// structure.
pub(super) const LEAF: usize = if cfg!(any(loom, shuttle)) { 8 } else { 34 };
/// Most keys of a small leaf.
pub(super) const SMALL: usize = if cfg!(any(loom, shuttle)) { 2 } else { 10 };
/// Cache lines of a leaf that is not small: half of one before the heads, and then a head and a word for each key.
pub(super) const LEAF_LINES: usize = (32 + LEAF * 16) / 64;
