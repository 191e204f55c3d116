//! The writers' part of [histories](crate::record): the choice of versions with a history, and its
//! pages.
//!
//! The invariants (READ_POINTS-1 and so on) are those of [`read_points`](super).

use super::{ReadPoints, lock};
use crate::record::history::{History, PAGE, Page};
use crate::record::version::{Distance, Version};
use crate::record::{Record, Release};
use ats_sync::Guard;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

impl<R: Release> ReadPoints<R> {
    /// Returns the history for a version of this time that is put above the last one of its key, or
    /// the distance to the next history.
    pub(super) fn history_above(
        &self,
        last: &Version<Record<R>>,
        before: *mut Record<R>,
        time: u64,
        guard: &Guard,
    ) -> Result<Arc<History<Record<R>>>, Distance> {
        let distance = match last.history(guard) {
            Ok(_) => 1,
            Err(Distance(distance)) => distance + 1,
        };
        if distance < PAGE {
            Err(Distance(distance))
        } else {
            self.append_page(before, time, guard)
        }
    }

    /// Appends a page to the history of a key, for a record that is about to be put with this time:
    /// the records from `before` down to the next version with a history. If these are few, because
    /// others were passed over, no page is made yet.
    #[cold]
    fn append_page(
        &self,
        before: *mut Record<R>,
        time: u64,
        guard: &Guard,
    ) -> Result<Arc<History<Record<R>>>, Distance> {
        let mut records = Vec::with_capacity(PAGE);
        // SAFETY: the record is in its slot, or this thread has taken it out.
        let mut next = unsafe { before.as_ref() };
        let history = loop {
            let pointer = next.map_or(ptr::null_mut(), |record| ptr::from_ref(record).cast_mut());
            let Some(version) = next.and_then(|record| record.version(guard)) else {
                records.push((0, pointer));
                break None;
            };
            records.push((version.time, pointer));
            if let Ok(history) = version.share_history(guard) {
                break Some(history);
            }
            next = version.before(guard);
        };
        if records.len() < PAGE.div_ceil(2) {
            return Err(Distance(records.len()));
        }
        let page = Page::new(records, time);
        let Some(history) = history else {
            return Ok(Arc::new(History::new(page)));
        };
        let active = &self.shared.get_or_make().active;
        let read_points = lock(active).read_points.len();
        // Records without a query are searched for only if there are many.
        if history.records(guard) > 2 * (read_points + PAGE) {
            let active = lock(active);
            history.append(
                page,
                Some(&|read_points| active.may_read(read_points)),
                guard,
            );
        } else {
            history.append(page, None::<&fn(Range<u64>) -> bool>, guard);
        }
        Ok(history)
    }
}
