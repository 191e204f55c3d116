//! The finger of a base node, by which rows of ascending keys are inserted without a search.

use super::block::Block;
use super::sizes::LEAF;
use crate::record::Release;
use ats_sync::Guard;
use std::ptr::NonNull;

/// A pointer to the leaf at whose end a row of ascending keys continues, so that the next key needs
/// no search.
#[repr(C, align(64))]
pub(super) struct Finger<R: Release> {
    /// The leaf, which is not dead (CATREE-7).
    leaf: Option<NonNull<Block<R, LEAF>>>,
    /// Length of the leaf's upper fence in bytes, if it has one.
    fence_len: Option<u8>,
    fence: [u8; FENCE_MOST],
}

/// Length of an upper fence beyond which a leaf gets no finger.
const FENCE_MOST: usize = 46;

impl<R: Release> Finger<R> {
    pub(super) const NONE: Self = Finger {
        leaf: None,
        fence_len: None,
        fence: [0; FENCE_MOST],
    };

    /// Points the finger at a leaf, which is not dead, unless its upper fence is too long.
    pub(super) fn point(&mut self, leaf: &Block<R, LEAF>, high: Option<&[u8]>) {
        let Some(high) = high else {
            (self.leaf, self.fence_len) = (Some(leaf.into()), None);
            return;
        };
        if high.len() > FENCE_MOST {
            return self.lift();
        }
        self.fence[..high.len()].copy_from_slice(high);
        (self.leaf, self.fence_len) = (Some(leaf.into()), Some(high.len() as u8));
    }

    /// Lifts the finger off its leaf.
    pub(super) fn lift(&mut self) {
        self.leaf = None;
    }

    /// Follows the replacement of one leaf by another of the same range.
    pub(super) fn follow(&mut self, old: &Block<R, LEAF>, new: &Block<R, LEAF>) {
        if self.points_at(old) {
            self.leaf = Some(new.into());
        }
    }

    pub(super) fn points_at(&self, leaf: &Block<R, LEAF>) -> bool {
        self.leaf == Some(leaf.into())
    }

    /// Returns the leaf, if its range does not end before `key`.
    #[inline]
    pub(super) fn leaf_below<'g>(
        &self,
        key: &[u8],
        _guard: &'g Guard,
    ) -> Option<&'g Block<R, LEAF>> {
        let within = match self.fence_len {
            None => true,
            Some(len) => *key < self.fence[..len as usize],
        };
        // SAFETY: only the holder of the lock has the finger, so the leaf is not dead (CATREE-7),
        // and it lives as long as the guard (CATREE-6).
        self.leaf
            .filter(|_| within)
            .map(|leaf| unsafe { leaf.as_ref() })
    }
}
