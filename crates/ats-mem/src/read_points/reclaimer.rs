//! Reclaim of versions: those taken out of the list of a store.
//!
//! The invariants (READ_POINTS-1 and so on) are those of [`read_points`](super).

use crate::record::version::Version;
use crate::record::{Record, Release};
use ats_sync::Guard;
use ats_sync::shim::atomic::{AtomicPtr, Ordering};
use std::collections::BTreeMap;
use std::iter;
use std::ops::Bound;
use std::ptr::{self, NonNull};

/// A stack of versions, linked from the last one to the first.
pub(super) type Stack<R> = AtomicPtr<Version<Record<R>>>;

/// State of the reclaim, used by one thread at a time.
pub(super) struct Reclaimer<R: Release> {
    /// The rest of the stacks that were taken.
    pub(super) rest: Vec<*mut Version<Record<R>>>,
    /// Versions last needed by queries that have ended.
    pub(super) doubtful: Vec<NonNull<Version<Record<R>>>>,
    /// Versions that queries need, by time.
    pub(super) kept: BTreeMap<u64, Kept<R>>,
    /// Bytes of all these versions except the rest, and of the records they hold.
    pub(super) held: usize,
}

/// Versions with the same time.
pub(super) struct Kept<R: Release> {
    pub(super) versions: Vec<NonNull<Version<Record<R>>>>,
    /// Approximate number of those that were passed over.
    passed_over: usize,
}

impl<R: Release> Default for Kept<R> {
    fn default() -> Self {
        let (versions, passed_over) = (Vec::new(), 0);
        Kept {
            versions,
            passed_over,
        }
    }
}

impl<R: Release> Reclaimer<R> {
    pub(super) fn keep(&mut self, time: u64, version: NonNull<Version<Record<R>>>) {
        self.kept.entry(time).or_default().versions.push(version);
    }

    /// Takes the versions that writers have pushed.
    pub(super) fn take_stacks<'a>(&mut self, stacks: impl Iterator<Item = &'a Stack<R>>) {
        for stack in stacks {
            if !stack.load(Ordering::Relaxed).is_null() {
                let top = stack.swap(ptr::null_mut(), Ordering::Acquire);
                self.rest.push(top);
            }
        }
    }

    /// Takes the next version out of the rest of the stacks.
    pub(super) fn next_of_rest(&mut self, guard: &Guard) -> Option<NonNull<Version<Record<R>>>> {
        loop {
            let Some(version) = NonNull::new(self.rest.pop()?) else {
                continue;
            };
            // SAFETY: the version is in the list, so only the thread that takes it out frees it.
            let found = unsafe { version.as_ref() };
            self.rest.push(found.next.load(Ordering::Relaxed));
            self.count(found, guard);
            return Some(version);
        }
    }

    /// Counts the bytes of a version that was taken out of the stacks, and of the record it holds.
    /// Replaces an earlier count.
    pub(super) fn count(&mut self, version: &Version<Record<R>>, guard: &Guard) {
        // SAFETY: a version in the list leads to a record that is not retired (READ_POINTS-2).
        let before = unsafe { version.owned_before().as_ref() };
        let held = before.map_or(0, |before| before.held_bytes(version.borne_by(guard)));
        self.uncount(version);
        let bytes = version.bytes().saturating_add(held).min(usize::MAX >> 1);
        version.set_counted(bytes);
        self.held = self.held.saturating_add(bytes);
    }

    /// Removes a version from the count.
    pub(super) fn uncount(&mut self, version: &Version<Record<R>>) {
        let counted = version.counted().unwrap_or(0);
        self.held = self.held.saturating_sub(counted);
    }

    /// Takes out a version that is not needed by queries from this read point on.
    pub(super) fn take_up_to(&mut self, oldest: u64) -> Option<NonNull<Version<Record<R>>>> {
        loop {
            let mut first = self.kept.first_entry()?;
            if *first.key() > oldest {
                return None;
            }
            match first.get_mut().versions.pop() {
                Some(version) => return Some(version),
                None => first.remove(),
            };
        }
    }

    /// Returns the versions of times above the first number, up to the second, and some others. The
    /// stacks are not among them unless they were [taken](Self::take_stacks).
    pub(super) fn listed(
        &self,
        (above, until): (u64, u64),
    ) -> impl Iterator<Item = &Version<Record<R>>> {
        let times = (Bound::Excluded(above), Bound::Included(until));
        let kept = self.kept.range(times).flat_map(|(_, kept)| &kept.versions);
        let stack = |top: &*mut Version<Record<R>>| {
            iter::successors(NonNull::new(*top), |version| {
                // SAFETY: the version is in the list, and only the thread that takes it out frees
                // it, which has `self` alone.
                let version = unsafe { version.as_ref() };
                NonNull::new(version.next.load(Ordering::Relaxed))
            })
        };
        let known = kept.chain(&self.doubtful).copied();
        let all = known.chain(self.rest.iter().flat_map(stack));
        // SAFETY: the version is in the list, and only the thread that takes it out frees it, which
        // has `self` alone.
        all.map(|version| unsafe { version.as_ref() })
    }

    /// Marks the versions of these times as doubtful.
    pub(super) fn doubt(&mut self, (above, until): (u64, u64)) {
        let times = (Bound::Excluded(above), Bound::Included(until));
        let times: Vec<u64> = self.kept.range(times).map(|(time, _)| *time).collect();
        for kept in times.iter().filter_map(|time| self.kept.remove(time)) {
            self.doubtful.extend(kept.versions);
        }
    }

    /// Records that a record of this time was passed over. When half of a time's records are, its
    /// versions are checked again, because such versions are useless.
    pub(super) fn note_passed_over(&mut self, time: u64) {
        let Some(kept) = self.kept.get_mut(&time) else {
            return;
        };
        kept.passed_over += 1;
        if 2 * kept.passed_over >= kept.versions.len() {
            self.doubtful.append(&mut kept.versions);
            self.kept.remove(&time);
        }
    }
}

// SAFETY: any thread may use and free versions and the records that they lead to, and a mutex
// guards the pointers to them.
unsafe impl<R: Release> Send for Reclaimer<R> {}

impl<R: Release> Default for Reclaimer<R> {
    fn default() -> Self {
        Reclaimer {
            rest: Vec::new(),
            doubtful: Vec::new(),
            kept: BTreeMap::new(),
            held: 0,
        }
    }
}
