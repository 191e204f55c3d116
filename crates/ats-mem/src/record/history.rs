//! Histories: the records before a version by their times, so that an old query need not walk over
//! newer ones.
//!
//! ```text
//!   version ---> before ---> ... (less than PAGE versions) ... ---> version ---> before ---> ...
//!                                                                       |
//!                                                                       v
//!                                               history: page | page | ... | page (newest)
//!                                                        each of times and records
//! ```
//!
//! The writer that puts a version [`PAGE`] steps above the last one with a history appends a page
//! of the records between the two, and the new version leads to the same history. A page never
//! changes: pages are replaced as a whole. When no query reads most of the records any more, each
//! writer that appends a page compacts two others.
//!
//! The invariants (READ_POINTS-1 and so on) are those of [`read_points`](crate::read_points).

use ats_sync::Guard;
use ats_sync::shim::atomic::{AtomicPtr, Ordering};
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// Number of steps between two versions with a history, and maximum number of records of a page. It
/// is small in tests and models, so that they make pages. It is below the address of any
/// allocation, so that one word can hold a distance or a pointer.
pub(crate) const PAGE: usize = if cfg!(any(test, loom, shuttle)) {
    3
} else {
    64
};

/// The records of a key before a version with this history.
pub(crate) struct History<T> {
    pages: AtomicPtr<Pages<T>>,
}

/// The pages of a history at one time.
struct Pages<T> {
    /// Pages in ascending order. Their ranges are disjoint.
    list: Vec<Arc<Page<T>>>,
    /// Number of their records.
    records: usize,
    /// Index of the page to compact next.
    next: usize,
}

/// Records by the time from which on queries see them.
pub(crate) struct Page<T> {
    /// The range of read points that the page covers.
    read_points: Range<u64>,
    /// Times in ascending order, each with its record, or null if the key was absent.
    records: Vec<(u64, *mut T)>,
}

impl<T> Page<T> {
    /// Creates a page of records, given newest first, for read points below `until`.
    pub(crate) fn new(mut records: Vec<(u64, *mut T)>, until: u64) -> Self {
        records.reverse();
        let from = records.first().map_or(until, |(time, _)| *time);
        Page {
            read_points: from..until,
            records,
        }
    }

    /// Returns the record that queries at a read point see.
    fn find(&self, read_point: u64) -> *mut T {
        let newer = self
            .records
            .partition_point(|(time, _)| *time <= read_point);
        let found = newer
            .checked_sub(1)
            .filter(|_| read_point < self.read_points.end);
        found.map_or(ptr::null_mut(), |at| self.records[at].1)
    }

    /// Returns the records that some query may read.
    fn read_records<'a>(
        &'a self,
        is_read: &'a impl Fn(Range<u64>) -> bool,
    ) -> impl Iterator<Item = (u64, *mut T)> + 'a {
        let ends = self.records.iter().skip(1).map(|(time, _)| *time);
        let ends = ends.chain([self.read_points.end]);
        let records = self.records.iter().zip(ends);
        records.filter_map(move |(record, end)| is_read(record.0..end).then_some(*record))
    }
}

impl<T> Pages<T> {
    /// Compacts two adjacent pages: drops the records that no query reads, and merges the two if
    /// they fit one page.
    fn look_through(&mut self, is_read: &impl Fn(Range<u64>) -> bool) {
        let at = self.next % self.list.len();
        let end = self.list.len().min(at + 2);
        let pages: Vec<_> = self.list.drain(at..end).collect();
        let read = |page: &Page<T>| page.read_records(is_read).collect::<Vec<_>>();
        let mut left: Vec<Page<T>> = Vec::with_capacity(2);
        for page in &pages {
            let (read_points, mut records) = (page.read_points.clone(), read(page));
            match left.last_mut() {
                Some(last) if last.records.len() + records.len() <= PAGE => {
                    last.read_points.end = read_points.end;
                    last.records.append(&mut records);
                }
                _ => left.push(Page {
                    read_points,
                    records,
                }),
            }
        }
        left.retain(|page| !page.records.is_empty());
        self.records -= pages.iter().map(|page| page.records.len()).sum::<usize>();
        self.records += left.iter().map(|page| page.records.len()).sum::<usize>();
        // A page with room left is compacted again, with the page after it.
        self.next = at + left.len().saturating_sub(1);
        self.list.splice(at..at, left.into_iter().map(Arc::new));
    }
}

impl<T> History<T> {
    /// Creates a history of one page.
    pub(crate) fn new(page: Page<T>) -> Self {
        let pages = Pages {
            records: page.records.len(),
            list: vec![Arc::new(page)],
            next: 0,
        };
        History {
            pages: AtomicPtr::new(Box::into_raw(Box::new(pages))),
        }
    }

    fn pages<'g>(&'g self, _guard: &'g Guard) -> &'g Pages<T> {
        // SAFETY: pages are retired after their replacement, so those found under a guard live as
        // long as the guard (READ_POINTS-7).
        unsafe { &*self.pages.load(Ordering::Acquire) }
    }

    /// Returns the record that queries at a read point see, or null if the key was absent. O(log
    /// records).
    pub(crate) fn find(&self, read_point: u64, guard: &Guard) -> *mut T {
        let list = &self.pages(guard).list;
        let newer = list.partition_point(|page| page.read_points.start <= read_point);
        let page = newer.checked_sub(1).map(|at| &list[at]);
        page.map_or(ptr::null_mut(), |page| page.find(read_point))
    }

    /// Returns the number of records.
    pub(crate) fn records(&self, guard: &Guard) -> usize {
        self.pages(guard).records
    }

    /// Appends a page of newer records. Compacts other pages if `is_read` is given, which returns
    /// `true` if a query has a read point in a range.
    ///
    /// Only the thread that writes the key calls this (READ_POINTS-7).
    pub(crate) fn append(
        &self,
        page: Page<T>,
        is_read: Option<&impl Fn(Range<u64>) -> bool>,
        guard: &Guard,
    ) {
        let old = self.pages(guard);
        let mut new = Pages {
            list: Vec::with_capacity(old.list.len() + 1),
            records: old.records,
            next: old.next,
        };
        new.list.extend(old.list.iter().cloned());
        if let Some(is_read) = is_read.filter(|_| !new.list.is_empty()) {
            new.look_through(is_read);
        }
        let newest = new.list.last().map_or(0, |page| page.read_points.end);
        debug_assert!(newest <= page.read_points.start, "pages ascend");
        new.records += page.records.len();
        new.list.push(Arc::new(page));
        let new = Box::into_raw(Box::new(new));
        let bytes = size_of::<Pages<T>>() + size_of_val(&*old.list);
        let old = self.pages.swap(new, Ordering::AcqRel);
        unsafe fn free<T>(raw: *mut u8) {
            // SAFETY: `append` retires pages from a box, once, and their grace period is over.
            drop(unsafe { Box::from_raw(raw.cast::<Pages<T>>()) });
        }
        // SAFETY: other pages have replaced them, so no thread that pins from now on finds them.
        unsafe { guard.retire(old.cast(), bytes, free::<T>) };
    }
}

impl<T> Drop for History<T> {
    fn drop(&mut self) {
        // SAFETY: the last version that led to the history is being freed, so no thread reads it,
        // and its last pages were not retired.
        drop(unsafe { Box::from_raw(self.pages.load(Ordering::Acquire)) });
    }
}
