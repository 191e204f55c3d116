//! The number of objects that a record of a tree counts as, and the upkeep of the [subtree
//! counts](super::subtree_counts) on the path of a changed record.

use super::base::Base;
use super::kind::Kind;
use super::leaf::Leaf;
use super::simd_search::Baseline;
use crate::record::{Old, Record, Release};
use ats_sync::Guard;

/// The rule by which records of a tree are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectsPerRecord {
    /// Each record is one object, so records need not be read.
    One,
    /// A record counts as the number of objects that [it states](Record::objects_in_slot).
    Stored,
}

impl ObjectsPerRecord {
    /// Returns the number of objects of a record in its slot.
    pub(super) fn of_record<R: Release>(self, record: &Record<R>) -> u64 {
        match self {
            ObjectsPerRecord::One => 1,
            ObjectsPerRecord::Stored => record.objects_in_slot(),
        }
    }

    /// Returns the number of objects of a record taken out of its slot.
    fn of_old<R: Release>(self, old: &Old<'_, R>) -> u64 {
        match self {
            ObjectsPerRecord::One => 1,
            ObjectsPerRecord::Stored => old.objects_in_slot(),
        }
    }

    /// Returns the number of objects of a live slot. The caller holds the lock.
    pub(super) fn of_slot<R: Release>(self, leaf: Leaf<'_, R>, slot: usize, guard: &Guard) -> u64 {
        match self {
            ObjectsPerRecord::Stored if leaf.word(slot).simple().is_none() => {
                let record = leaf.record(slot, guard);
                record.map_or(0, Record::objects_in_slot)
            }
            _ => 1,
        }
    }

    /// Counts a record that replaces another one, or is new. The caller holds the lock.
    #[inline]
    pub(super) fn count_put<R: Release>(
        self,
        base: &Base<R>,
        old: Option<&Old<'_, R>>,
        new: &Record<R>,
    ) {
        if (old.is_none() || self == ObjectsPerRecord::Stored) && base.counts_subtrees() {
            let before = old.map_or(0, |old| self.of_old(old));
            keep_subtree_counts(base, new.key(), self.of_record(new), before);
        }
    }

    /// Counts the removal of a key. The caller holds the lock.
    #[inline]
    pub(super) fn count_removed<R: Release>(self, base: &Base<R>, key: &[u8], old: &Old<'_, R>) {
        if base.counts_subtrees() {
            keep_subtree_counts(base, key, 0, self.of_old(old));
        }
    }
}

#[cold]
fn keep_subtree_counts<R: Release>(base: &Base<R>, key: &[u8], now: u64, before: u64) {
    let more = now.wrapping_sub(before).cast_signed();
    let mut node = base.root();
    while let Kind::Inner(inner) = node.kind() {
        let child_index = inner.child_for::<Baseline>(key);
        inner.subtree_counts.add(child_index, more);
        node = inner.child(child_index);
    }
}
