//! Removing for good what was deleted while the table was fixed.

use super::directory::bucket_of;
use super::stripes::Locked;
use super::table::HashTable;
use super::write::retire;
use crate::record::{Release, Weight};
use ats_sync::Guard;

impl<R: Release> HashTable<R> {
    /// Removes for good up to `budget` of what was deleted while the table was fixed, unless it is
    /// fixed again. Returns `true` if nothing is left to do.
    pub(super) fn purge(&self, budget: usize, guard: &Guard) -> bool {
        // Keeps the stripes as they are, so that none is passed over.
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
            // A removal that queries look through goes when its version is cut.
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
