//! The difference of two snapshots.
//!
//! A version that both snapshots read says the same in both. So the records that may differ are
//! found by walking over parts that only one of them reads: memtables; of a memtable that both
//! read, the keys that were written between the two; files of runs; and, since a range is deleted
//! without a look at its keys, the records of the earlier snapshot in ranges that were deleted
//! later. Each of these keys is looked up in both.

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
use crate::state::Version;
use ats_store::{Direction, KeyRange, MayBlock};
use std::cmp::Ordering;
use std::sync::Arc;

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
/// files that both read are passed. But a file that was made by a compaction between the two counts
/// as written, with all of its keys, and so do those that it was made of. Nothing is kept but the
/// present record.
pub struct Diff {
    snapshots: [Snapshot; 2],
    cursor: MergeCursor,
    high: Option<Vec<u8>>,
    /// The records of the earlier snapshot that ranges may have deleted.
    deleted: DeletedKeys,
    has_begun: bool,
    key: Vec<u8>,
    values: [Option<Vec<u8>>; 2],
}

impl Snapshot {
    /// Returns the records that another snapshot of the same store has otherwise; `None` if it is
    /// one of another store. The earlier of the two need not be this one. See [`Diff`].
    ///
    /// # Errors
    /// [`Error::Expired`].
    pub fn diff(&self, other: &Snapshot, keys: impl KeyBounds) -> Result<Option<Diff>, Error> {
        if Arc::ptr_eq(self.pinned().state(), other.pinned().state()) {
            Diff::new(self, other, HalfOpen::new(&keys).as_range()).map(Some)
        } else {
            Ok(None)
        }
    }
}

impl Diff {
    fn new(first: &Snapshot, second: &Snapshot, key_range: KeyRange<'_>) -> Result<Self, Error> {
        let moment = |snapshot: &Snapshot| {
            let pinned = snapshot.pinned();
            (pinned.read_point(), pinned.moment())
        };
        let (from, to) = match moment(first).cmp(&moment(second)) {
            Ordering::Greater => (second, first),
            _ => (first, second),
        };
        let [earlier, later] = [from, to].map(|snapshot| snapshot.pinned().version());
        let (earlier, later) = (earlier?, later?);
        let seqs = [from, to].map(|snapshot| snapshot.pinned().read_point());
        let (sources, mut deleted) = if seqs[0] == seqs[1] || key_range.is_empty() {
            (Vec::new(), RangeSet::new())
        } else {
            candidates([&*earlier, &*later], seqs, key_range)?
        };
        // Any record of the earlier one may have expired since.
        if from.pinned().moment() != to.pinned().moment() {
            deleted.insert(key_range);
        }
        Ok(Diff {
            snapshots: [first.clone(), second.clone()],
            cursor: MergeCursor::new(sources),
            high: key_range.high.map(<[u8]>::to_vec),
            deleted: DeletedKeys::new(Arc::clone(from.pinned()), &deleted.clip(key_range)),
            has_begun: false,
            key: key_range.low.unwrap_or_default().to_vec(),
            values: [None, None],
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
        let (is_written, is_deleted) = match (written, self.deleted.key()) {
            (None, None) => return Ok(false),
            (Some(_), None) => (true, false),
            (None, Some(_)) => (false, true),
            (Some(written), Some(deleted)) => match written.cmp(deleted) {
                Ordering::Less => (true, false),
                Ordering::Equal => (true, true),
                Ordering::Greater => (false, true),
            },
        };
        let key = if is_written {
            written
        } else {
            self.deleted.key()
        };
        self.key.clear();
        self.key.extend_from_slice(key.unwrap_or_default());
        if is_written {
            self.cursor.step(may_block)?;
        }
        if is_deleted {
            self.deleted.step(may_block)?;
        }
        for (snapshot, value) in self.snapshots.iter().zip(&mut self.values) {
            *value = None;
            snapshot.read(may_block, &self.key, &mut |bytes| {
                *value = Some(bytes.to_vec());
            })?;
        }
        Ok(true)
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

/// Walks over the keys of an earlier version and of a later one that may have a difference, and the
/// ranges in which all keys of the earlier one may have one.
fn candidates(
    [earlier, later]: [&Version; 2],
    [from, to]: [Seq; 2],
    key_range: KeyRange<'_>,
) -> Result<(Vec<Source>, RangeSet), Error> {
    let mut sources = Vec::new();
    let mut deleted = RangeSet::new();
    let mut add = |cursor| {
        sources.push(Source {
            cursor,
            range_deletes: None,
        });
    };
    for memtable in later.memtables() {
        let cursor = MemtableCursor::new(Arc::clone(memtable), to, true);
        add(Box::new(cursor.since(from).show_deleted().within(key_range)) as _);
        let ranges = memtable.range_deletes_between(from, to);
        ranges.iter().for_each(|range| deleted.insert(range));
    }
    for memtable in earlier.memtables() {
        if !later.memtables().any(|other| Arc::ptr_eq(memtable, other)) {
            let cursor = MemtableCursor::new(Arc::clone(memtable), from, true);
            add(Box::new(cursor.show_deleted().within(key_range)));
        }
    }
    for (version, other) in [(later, earlier), (earlier, later)] {
        for run in &version.runs {
            let mut own = run.run.files().to_vec();
            own.retain(|file| !has_file(other, file));
            if own.is_empty() {
                continue;
            }
            let own = Arc::new(Run::new(own)?);
            if std::ptr::eq(version, later)
                && let Some(ranges) = own.range_deletes()
            {
                ranges.iter().for_each(|range| deleted.insert(range));
            }
            add(Box::new(own.cursor(true, 0)));
        }
    }
    Ok((sources, deleted))
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
