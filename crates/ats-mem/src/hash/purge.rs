//! Purge of records deleted while the table was fixed.

use super::directory::bucket_of;
use super::stripes::Locked;
use super::table::HashTable;
use super::write::retire;
use crate::record::{Release, Weight};
use ats_sync::Guard;

impl<R: Release> HashTable<R> {
    /// Purges up to `budget` records that were deleted while the table was fixed, unless it is
    /// fixed again. Returns `true` if none is left.
    pub(super) fn purge(&self, budget: usize, guard: &Guard) -> bool {
        // Keeps the set of stripes unchanged, so that none is missed.
        let _resizing = self.rare().resizing.lock();
        let mut left = budget;
        for stripe in 0..self.stripes.count(guard) {
            let locked = self.stripes.lock(stripe as u64, guard);
            if self.is_fixed() {
                return true;
            }
            let deleted = locked.take_deleted(left);
            left -= deleted.len();
            for hash in deleted {
                self.purge_bucket(hash, &locked, guard);
            }
            if left == 0 {
                return false;
            }
        }
        true
    }

    fn purge_bucket(&self, hash: u64, locked: &Locked<'_>, guard: &Guard) {
        let bucket = self.active_bucket(bucket_of(hash, self.directory.active()), guard);
        bucket.for_each(|slot, word| {
            // A removal that queries look through is removed when its version is reclaimed.
            let record = word.record();
            let is_read = record.is_removal() && record.version(guard).is_some();
            if word.is_deleted() && !is_read {
                bucket.clear(slot);
                locked.add(-i64::from(word.is_counted()), Weight::NONE - word.weight());
                retire(Some(word.record()), guard);
            }
        });
        self.add_lines(-(bucket.unlink_empty(guard) as i64));
    }
}
