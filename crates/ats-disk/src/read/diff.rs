//! The difference of two snapshots.
//!
//! A version that both snapshots read says the same in both. So the records that may differ are
//! found by walking over parts that only one of them reads: memtables; of a memtable that both
//! read, the keys that were written between the two; files of runs; and, since a range is deleted
//! without a look at its keys, the records of the earlier snapshot in ranges that were deleted
//! later. Each of these keys is looked up in both.
//!
//! Versions hold disjoint intervals of sequence numbers (VERSION-1). A run that has nothing newer
//! than the earlier snapshot says the same as the memtables and runs of which it was made, so all
//! of these are passed. A compaction with newer writes may have removed keys together with their
//! deletes, and have left no file; these keys are in the later parts that only the earlier snapshot
//! reads.

use super::lending_scan::LendingScan;
use super::pinned::Pinned;
use super::snapshot::Snapshot;
use crate::cursor::{MergeCursor, Source};
use crate::error::Error;
use crate::ids::Seq;
use crate::key_bounds::{HalfOpen, KeyBounds};
use crate::memtable::MemtableCursor;
use crate::range_deletes::RangeSet;
use crate::run_file::{Run, RunFile};
use crate::state::{StoredRun, Version};
use ats_store::lifetime::NEVER_MS;
use ats_store::{Direction, KeyRange, MayBlock};
use std::iter::Peekable;
use std::sync::Arc;
use std::vec;

/// A record that two snapshots have differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference<'d> {
    /// The key.
    pub key: &'d [u8],
    /// The value in the first snapshot, if it has the key.
    pub first: Option<&'d [u8]>,
    /// The value in the second one, if it has the key.
    pub second: Option<&'d [u8]>,
}

/// A walk over the records that two snapshots of a store have differently, in ascending order of
/// the keys.
///
/// Its time is that of reading the writes between the two, and not the records that both have:
/// files that both read are passed. But a file that was made by a compaction of newer writes
/// between the two counts as written, with all of its keys, and so do those that it was made of.
/// The first walk looks at all keys of a memtable that both read; later ones that follow soon find
/// the keys that were written in a log. Nothing is kept but the present record, and the keys of
/// such a log.
/// [`first_deadline`](Diff::first_deadline) tells more about records that expire.
pub struct Diff {
    snapshots: [Snapshot; 2],
    cursor: MergeCursor,
    high: Option<Vec<u8>>,
    /// The records of the earlier snapshot that ranges may have deleted.
    deleted: DeletedKeys,
    /// The keys that were found in logs.
    recent: Peekable<vec::IntoIter<Vec<u8>>>,
    has_begun: bool,
    key: Vec<u8>,
    values: [Option<Vec<u8>>; 2],
    /// The index of the later snapshot, and the earliest deadline of its records that were looked
    /// at, or a time before that.
    later: usize,
    first_deadline: u64,
}

impl Snapshot {
    /// Returns `true` if the store has the records of this snapshot now. No record of it may expire
    /// before `first_deadline`; see [`Diff::first_deadline`]. O(1).
    #[must_use]
    pub fn is_current(&self, first_deadline: u64) -> bool {
        let pinned = self.pinned();
        let state = pinned.state();
        let has_no_write = pinned.read_point() == state.snapshots.visible();
        // Asked for after that, so that no deadline has passed before the number was read.
        let moment = state.moment();
        has_no_write && (moment == pinned.moment() || moment < first_deadline)
    }

    /// Returns the records that another snapshot of the same store has otherwise; `None` if it is
    /// one of another store. The earlier of the two need not be this one. See [`Diff`].
    ///
    /// # Errors
    /// [`Error::Expired`].
    pub fn diff(&self, other: &Snapshot, keys: impl KeyBounds) -> Result<Option<Diff>, Error> {
        self.diff_before(other, keys, 0)
    }

    /// Like [`diff`](Snapshot::diff). No record of the earlier of the two snapshots may expire
    /// before `first_deadline`, a [result](Diff::first_deadline) of earlier walks.
    ///
    /// # Errors
    /// [`Error::Expired`].
    pub fn diff_before(
        &self,
        other: &Snapshot,
        keys: impl KeyBounds,
        first_deadline: u64,
    ) -> Result<Option<Diff>, Error> {
        if Arc::ptr_eq(self.pinned().state(), other.pinned().state()) {
            let range = HalfOpen::new(&keys);
            Diff::new(self, other, range.as_range(), first_deadline).map(Some)
        } else {
            Ok(None)
        }
    }
}

impl Diff {
    fn new(
        first: &Snapshot,
        second: &Snapshot,
        key_range: KeyRange<'_>,
        first_deadline: u64,
    ) -> Result<Self, Error> {
        let moment = |snapshot: &Snapshot| {
            let pinned = snapshot.pinned();
            (pinned.read_point(), pinned.moment())
        };
        let later = usize::from(moment(first) <= moment(second));
        let (from, to) = if later == 0 {
            (second, first)
        } else {
            (first, second)
        };
        let [earlier_version, later_version] =
            [from, to].map(|snapshot| snapshot.pinned().version());
        let (earlier_version, later_version) = (earlier_version?, later_version?);
        let seqs = [from, to].map(|snapshot| snapshot.pinned().read_point());
        let Candidates {
            sources,
            mut deleted,
            recent,
        } = if seqs[0] == seqs[1] || key_range.is_empty() {
            Candidates::default()
        } else {
            candidates([&*earlier_version, &*later_version], seqs, key_range)?
        };
        let [begin, end] = [from, to].map(|snapshot| snapshot.pinned().moment());
        // Any record of the earlier one may have expired since.
        let has_expired = begin != end && end >= first_deadline;
        if has_expired {
            deleted.insert(key_range);
        }
        Ok(Diff {
            snapshots: [first.clone(), second.clone()],
            cursor: MergeCursor::new(sources),
            high: key_range.high.map(<[u8]>::to_vec),
            deleted: DeletedKeys::new(Arc::clone(from.pinned()), &deleted.clip(key_range)),
            recent: recent.into_iter().peekable(),
            has_begun: false,
            key: key_range.low.unwrap_or_default().to_vec(),
            values: [None, None],
            later,
            first_deadline: if has_expired {
                NEVER_MS
            } else {
                first_deadline
            },
        })
    }

    /// Returns the next difference. `None` at the end.
    ///
    /// # Errors
    /// The errors of [`Snapshot::get`]. After one the walk may be made anew.
    #[expect(
        clippy::should_implement_trait,
        reason = "what it lends lives until the next call"
    )]
    pub fn next(&mut self) -> Result<Option<Difference<'_>>, Error> {
        while self.step()? {
            if self.has_difference() {
                return Ok(Some(self.difference()));
            }
        }
        Ok(None)
    }

    /// Looks at the next key that may have a difference. Returns `false` at the end.
    ///
    /// # Errors
    /// The errors of [`next`](Diff::next).
    pub fn step(&mut self) -> Result<bool, Error> {
        let may_block = Some(MayBlock::here());
        if !self.has_begun {
            self.has_begun = true;
            let low = std::mem::take(&mut self.key);
            self.cursor.start(may_block, Direction::Up, Some(&low))?;
            self.deleted.step(may_block)?;
        }
        let high = self.high.as_deref();
        let written = self.cursor.key();
        let written = written.filter(|key| high.is_none_or(|high| *key < high));
        let recent = self.recent.peek().map(Vec::as_slice);
        let candidates = [written, self.deleted.key(), recent];
        let Some(key) = candidates.into_iter().flatten().min() else {
            return Ok(false);
        };
        let is_written = written == Some(key);
        self.key.clear();
        self.key.extend_from_slice(key);
        if is_written {
            self.cursor.step(may_block)?;
        }
        if self.deleted.key() == Some(&self.key[..]) {
            self.deleted.step(may_block)?;
        }
        while self.recent.next_if(|recent| *recent == self.key).is_some() {}
        for (index, (snapshot, value)) in self.snapshots.iter().zip(&mut self.values).enumerate() {
            *value = None;
            let deadline = snapshot.read_with_deadline(may_block, &self.key, &mut |bytes| {
                *value = Some(bytes.to_vec());
            })?;
            if index == self.later {
                self.first_deadline = self.first_deadline.min(deadline);
            }
        }
        Ok(true)
    }

    /// Returns a time in milliseconds since 1970 before which no record of the later snapshot
    /// expires, of those that were looked at and those that need not be; 0 if that is not known,
    /// and the greatest time if none expires. For all records it is the least of these times of
    /// walks over all keys.
    ///
    /// A walk over snapshots of which the later one does not reach this time of the earlier one
    /// looks at the writes between the two only. Otherwise it looks at all records.
    #[must_use]
    pub fn first_deadline(&self) -> u64 {
        self.first_deadline
    }

    /// Returns the key that was looked at last.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns `true` if the key that was looked at last has a difference.
    #[must_use]
    pub fn has_difference(&self) -> bool {
        self.values[0] != self.values[1]
    }

    /// Returns the key that was looked at last, with its values.
    #[must_use]
    pub fn difference(&self) -> Difference<'_> {
        Difference {
            key: &self.key,
            first: self.values[0].as_deref(),
            second: self.values[1].as_deref(),
        }
    }
}

/// The keys that may have a difference.
#[derive(Default)]
struct Candidates {
    /// Walks over some of them.
    sources: Vec<Source>,
    /// The ranges in which all keys of the earlier version may have one.
    deleted: RangeSet,
    /// Others, in ascending order.
    recent: Vec<Vec<u8>>,
}

/// Finds the keys of an earlier version and of a later one that may have a difference.
fn candidates(
    [earlier, later]: [&Version; 2],
    seqs: [Seq; 2],
    key_range: KeyRange<'_>,
) -> Result<Candidates, Error> {
    let [from, to] = seqs;
    let mut found = Candidates::default();
    let mut sources = Vec::new();
    let mut add = |cursor| {
        sources.push(Source {
            cursor,
            range_deletes: None,
        });
    };
    for memtable in later.memtables() {
        match memtable.recent_keys(seqs, key_range) {
            Some(mut keys) => found.recent.append(&mut keys),
            None => {
                let cursor = MemtableCursor::new(Arc::clone(memtable), to, true);
                add(Box::new(cursor.since(from).show_deleted().within(key_range)) as _);
            }
        }
        let ranges = memtable.range_deletes_between(from, to);
        ranges.iter().for_each(|range| found.deleted.insert(range));
    }
    found.recent.sort_unstable();
    // The last number of the intervals of runs that have nothing new. What the earlier version has
    // up to it is in these runs.
    let mut last_old = None;
    for run in &later.runs {
        if run.meta.last_seq <= from {
            last_old = last_old.max(Some(run.meta.last_seq));
        } else if let Some(own) = own_files(run, earlier)? {
            if let Some(ranges) = own.range_deletes() {
                ranges.iter().for_each(|range| found.deleted.insert(range));
            }
            add(Box::new(own.cursor(true, 0)));
        }
    }
    // A compaction of newer writes may have left no file, so these parts tell of themselves.
    let is_newer = |last_seq| last_old.is_none_or(|old| last_seq > old);
    let sealed = earlier.sealed.iter();
    let sealed = sealed.map(|sealed| (&sealed.memtable, sealed.last_seq));
    for (memtable, last_seq) in [(&earlier.active, from)].into_iter().chain(sealed) {
        let is_shared = || later.memtables().any(|other| Arc::ptr_eq(memtable, other));
        if is_newer(last_seq) && !is_shared() {
            let cursor = MemtableCursor::new(Arc::clone(memtable), from, true);
            add(Box::new(cursor.show_deleted().within(key_range)));
        }
    }
    for run in &earlier.runs {
        if is_newer(run.meta.last_seq)
            && let Some(own) = own_files(run, later)?
        {
            add(Box::new(own.cursor(true, 0)));
        }
    }
    found.sources = sources;
    Ok(found)
}

/// Returns the files of a run that a version does not read, as a run.
fn own_files(run: &StoredRun, other: &Version) -> Result<Option<Arc<Run>>, Error> {
    let mut own = run.run.files().to_vec();
    own.retain(|file| !has_file(other, file));
    if own.is_empty() {
        Ok(None)
    } else {
        Ok(Some(Arc::new(Run::new(own)?)))
    }
}

/// Returns `true` if a version reads a file.
fn has_file(version: &Version, file: &Arc<RunFile>) -> bool {
    let mut files = version.runs.iter().flat_map(|run| run.run.files());
    files.any(|other| other.meta().number == file.meta().number)
}

/// A walk over the records of a snapshot in some ranges.
struct DeletedKeys {
    pinned: Arc<Pinned>,
    /// The ranges that are still to be walked, the last first.
    ranges: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    scan: Option<LendingScan>,
    key: Option<Vec<u8>>,
}

impl DeletedKeys {
    fn new(pinned: Arc<Pinned>, ranges: &RangeSet) -> Self {
        let owned = |range: KeyRange<'_>| {
            let low = range.low.unwrap_or_default().to_vec();
            (low, range.high.map(<[u8]>::to_vec))
        };
        DeletedKeys {
            pinned,
            ranges: ranges.iter().rev().map(owned).collect(),
            scan: None,
            key: None,
        }
    }

    /// Returns the present key.
    fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    /// Goes to the next key.
    fn step(&mut self, may_block: Option<MayBlock>) -> Result<(), Error> {
        self.pinned.check()?;
        loop {
            if let Some(scan) = &mut self.scan
                && let Some((key, _)) = scan.advance(may_block)?
            {
                self.key = Some(key.to_vec());
                return Ok(());
            }
            self.scan = None;
            let Some((low, high)) = self.ranges.pop() else {
                self.key = None;
                return Ok(());
            };
            let range = KeyRange {
                low: Some(&low),
                high: high.as_deref(),
            };
            let pinned = Arc::clone(&self.pinned);
            self.scan = Some(LendingScan::new(pinned, range, Direction::Up)?);
        }
    }
}
