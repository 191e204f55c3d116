//! Walks over the records of a range.
//!
//! A walk passes keys without a value: those that were deleted, alone or with a range, and those
//! whose value counts as missing. Where it passes many of them, it asks for a
//! [gap](crate::state::tombstone_gaps) that other walks have found, and tells of the one that it
//! has found itself.

use super::pinned::Pinned;
use crate::cursor::{MergeCursor, Source};
use crate::entry::Kind;
use crate::entry::collapse::{Chain, is_absent};
use crate::error::Error;
use crate::ids::Seq;
use crate::memtable::MemtableCursor;
use crate::range_deletes::Deleted;
use crate::state::tombstone_gaps::{Behind, LEAST_PASSED};
use crate::state::{State, Version};
use ats_store::{Direction, KeyRange, MayBlock, successor};
use std::sync::Arc;

/// A key and its value.
pub type Record<'a> = (&'a [u8], &'a [u8]);

/// A walk over the records of a range at one moment.
///
/// A record that it lends lives until the next call, so it is no [`Iterator`], unlike a
/// [`Scan`](crate::Scan). It keeps the memtables and the files that it reads, as a
/// [`Snapshot`](crate::Snapshot) does.
///
/// ```
/// # use ats_disk::{DiskStore, Options};
/// # use ats_store::Direction;
/// # let directory = std::env::temp_dir().join(format!("ats-disk-lending-{}", std::process::id()));
/// # let store = DiskStore::open(&directory, Options::new())?;
/// for key in [b"a", b"b", b"c"] {
///     store.put(key, b"value")?;
/// }
/// let mut scan = store.scan_lending(b"b".., Direction::Down)?;
/// store.put(b"d", b"too late")?;
/// let mut keys = Vec::new();
/// while let Some((key, _value)) = scan.next()? {
///     keys.push(key.to_vec());
/// }
/// assert_eq!(keys, [b"c", b"b"]);
/// # drop((scan, store));
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), ats_disk::Error>(())
/// ```
pub struct LendingScan {
    cursor: MergeCursor,
    direction: Direction,
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
    phase: Phase,
    chain: Chain,
    /// The value of the present key, if it had to be made.
    value: Vec<u8>,
    passed: Passed,
    /// The walk ends when it has passed more keys than this without a record.
    most_passed: u32,
    /// The gaps that the walk finds, while it may add some.
    finding: Option<FindsGaps>,
    /// Dropped last: it tells the background when nothing is read any more.
    pinned: Arc<Pinned>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    /// A key whose value the cursor has.
    OnEntry,
    /// A key whose value was made.
    OnMade,
    End,
}

/// The keys without a value that were passed since the last record.
#[derive(Default)]
struct Passed {
    /// `true` if there are any, or the walk begins.
    is_begun: bool,
    keys: u32,
    /// Number of gaps that were passed.
    gaps: u32,
    from: Beginning,
}

/// Beginning of the gap in which the walk is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Beginning {
    /// The gap begins with one of the first keys that were passed.
    #[default]
    Unknown,
    /// The gap begins at the bound where the walk began.
    Bound,
    /// The gap begins at this key, on the way up; below this bound, on the way down.
    Key(Vec<u8>),
}

/// After so many passed keys it is asked for a gap; and again each time after [`LEAST_PASSED`]
/// more.
const FIRST_PASSED: u32 = 4;
/// Most keys that are passed for each delete, to find gaps for later walks.
const PASSED_PER_DELETE: u32 = 4;
/// After so many passed keys a caller that may not block leaves the walk to one that may.
const MOST_AT_ONCE: u32 = 4096;

/// A walk that may add gaps.
struct FindsGaps {
    state: Arc<State>,
}

impl FindsGaps {
    fn begin(state: &Arc<State>, seq: Seq) -> Option<Self> {
        state.gaps.begin_walk(seq).then(|| FindsGaps {
            state: Arc::clone(state),
        })
    }
}

impl Drop for FindsGaps {
    fn drop(&mut self) {
        self.state.gaps.end_walk();
    }
}

impl LendingScan {
    /// Makes a walk over a range at this moment.
    pub(crate) fn of(
        state: &Arc<State>,
        key_range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Self, Error> {
        LendingScan::new(Pinned::for_scan(state), key_range, direction)
    }

    /// Like [`of`](LendingScan::of), for a walk that ends soon: it is not counted, and does not
    /// expire.
    pub(crate) fn of_short_walk(
        state: &Arc<State>,
        key_range: KeyRange<'_>,
    ) -> Result<Self, Error> {
        let pinned = Arc::new(Pinned::new(Arc::clone(state)));
        LendingScan::new(pinned, key_range, Direction::Up)
    }

    pub(crate) fn new(
        pinned: Arc<Pinned>,
        key_range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Self, Error> {
        let version = pinned.version()?;
        let state = pinned.state();
        let finding = if state.gaps.is_active() {
            FindsGaps::begin(state, pinned.read_point())
        } else {
            None
        };
        let cursor = MergeCursor::new(sources(&version, key_range, pinned.read_point()));
        Ok(LendingScan {
            cursor,
            direction,
            low: key_range.low.map(<[u8]>::to_vec),
            high: key_range.high.map(<[u8]>::to_vec),
            phase: if key_range.is_empty() {
                Phase::End
            } else {
                Phase::Before
            },
            chain: Chain::new(),
            value: Vec::new(),
            passed: Passed::default(),
            most_passed: u32::MAX,
            finding,
            pinned,
        })
    }

    /// Returns the next record: its key and its value. `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corrupt`] if a file cannot be read, [`Error::Merge`] if the
    /// values of a key cannot be merged, [`Error::Expired`]. After an error of a merge the walk
    /// goes on behind that key; after others it is at its end.
    #[expect(
        clippy::should_implement_trait,
        reason = "what it lends lives until the next call"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.advance(Some(MayBlock::here()))
    }

    /// Like [`next`](LendingScan::next), but does not block.
    ///
    /// # Errors
    /// The errors of [`next`](LendingScan::next), and [`Error::WouldBlock`], after which the walk
    /// is at its end.
    pub fn try_next(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.advance(None)
    }

    /// Goes to the next record, and blocks only if it may.
    pub(crate) fn advance(
        &mut self,
        may_block: Option<MayBlock>,
    ) -> Result<Option<Record<'_>>, Error> {
        match self.step(may_block) {
            Ok(()) => {}
            Err(Error::Merge) => return Err(Error::Merge),
            Err(error) => {
                self.phase = Phase::End;
                return Err(error);
            }
        }
        let value = match self.phase {
            Phase::Before | Phase::End => return Ok(None),
            Phase::OnMade => &self.value[..],
            Phase::OnEntry => self.cursor.only_entry().map_or(&[][..], |(_, value)| value),
        };
        // The step has checked that it is alive.
        let content = self.pinned.state().content(value, 0)?.unwrap_or_default();
        Ok(self.cursor.key().map(|key| (key, content)))
    }

    /// Goes to the next key that has a value.
    fn step(&mut self, may_block: Option<MayBlock>) -> Result<(), Error> {
        self.pinned.check()?;
        match self.phase {
            Phase::End => return Ok(()),
            Phase::Before => self.start(may_block)?,
            Phase::OnEntry | Phase::OnMade => {
                if self.passed.is_begun {
                    self.passed = Passed::default();
                }
                self.cursor.step(may_block)?;
            }
        }
        while self.phase != Phase::End {
            let Some(key) = self.cursor.key() else {
                self.end();
                return Ok(());
            };
            let is_out = match self.direction {
                Direction::Up => self.high.as_deref().is_some_and(|high| key >= high),
                Direction::Down => self.low.as_deref().is_some_and(|low| key < low),
            };
            if is_out {
                self.end();
                return Ok(());
            }
            if let Some(source) = self.cursor.deleting_source() {
                if !self.pass(may_block)? {
                    self.cursor.pass(may_block, source)?;
                }
                continue;
            }
            let (state, moment) = (self.pinned.state(), self.pinned.moment());
            let operator = state.options.operator.as_deref();
            let is_record = match self.cursor.only_entry() {
                Some((Kind::Put, value)) => {
                    self.phase = Phase::OnEntry;
                    !is_absent(operator, key, value)? && state.content(value, moment)?.is_some()
                }
                _ => {
                    self.phase = Phase::OnMade;
                    self.cursor.gather(operator, &mut self.chain);
                    state.stats.on_read(self.chain.len());
                    match self.chain.value(key, operator)? {
                        Some(value) if state.content(&value, moment)?.is_some() => {
                            self.value.clear();
                            self.value.extend_from_slice(&value);
                            true
                        }
                        _ => false,
                    }
                }
            };
            if is_record {
                if self.passed.is_begun {
                    self.on_passed(false);
                }
                return Ok(());
            }
            if !self.pass(may_block)? {
                self.cursor.step(may_block)?;
            }
        }
        Ok(())
    }

    /// Goes to the first key, or behind the gap in which it would be.
    fn start(&mut self, may_block: Option<MayBlock>) -> Result<(), Error> {
        // The walk goes on from the cursor from now on.
        self.phase = Phase::OnMade;
        self.passed = Passed {
            is_begun: true,
            from: Beginning::Bound,
            ..Passed::default()
        };
        let bound = match self.direction {
            Direction::Up => &self.low,
            Direction::Down => &self.high,
        };
        let gaps = &self.pinned.state().gaps;
        if gaps.is_active()
            && let Some(behind) =
                gaps.find_behind(self.direction, bound.as_deref(), self.pinned.read_point())
        {
            return self.go_behind(may_block, &behind);
        }
        self.cursor
            .start(may_block, self.direction, bound.as_deref())
    }

    /// Counts the present key, which has no value. Returns `true` if the walk has gone on behind a
    /// gap in which it is.
    #[inline]
    fn pass(&mut self, may_block: Option<MayBlock>) -> Result<bool, Error> {
        self.passed.is_begun = true;
        self.passed.keys = self.passed.keys.wrapping_add(1);
        match self.passed.keys % LEAST_PASSED {
            FIRST_PASSED => self.look_for_gap(may_block),
            _ => Ok(false),
        }
    }

    #[cold]
    fn look_for_gap(&mut self, may_block: Option<MayBlock>) -> Result<bool, Error> {
        let Some(key) = self.cursor.key() else {
            return Ok(false);
        };
        if self.passed.keys == FIRST_PASSED && self.passed.from == Beginning::Unknown {
            self.passed.from = Beginning::Key(bound_at(key, self.direction));
        }
        if self.passed.keys > MOST_AT_ONCE && may_block.is_none() {
            // The next walk begins behind the keys that this one has passed.
            self.add_gap(false);
            return Err(Error::WouldBlock);
        }
        if self.passed.keys > self.most_passed {
            self.on_passed(false);
            self.phase = Phase::End;
            return Ok(true);
        }
        let gaps = &self.pinned.state().gaps;
        if !gaps.is_active() {
            return Ok(false);
        }
        let Some(behind) = gaps.find_behind(self.direction, Some(key), self.pinned.read_point())
        else {
            return Ok(false);
        };
        self.go_behind(may_block, &behind)?;
        Ok(true)
    }

    fn go_behind(&mut self, may_block: Option<MayBlock>, behind: &Behind) -> Result<(), Error> {
        self.passed.gaps += 1;
        let bound = match behind {
            Behind::Bound(bound) => &**bound,
            Behind::End => {
                self.end();
                return Ok(());
            }
        };
        let is_out = match self.direction {
            Direction::Up => self.high.as_deref().is_some_and(|high| bound >= high),
            Direction::Down => self.low.as_deref().is_some_and(|low| bound <= low),
        };
        if is_out {
            self.end();
            return Ok(());
        }
        self.cursor.start(may_block, self.direction, Some(bound))
    }

    /// Ends the walk: there is no record any more in the range.
    fn end(&mut self) {
        self.on_passed(true);
        self.phase = Phase::End;
    }

    /// Is told that a record was found, or that there are no more.
    fn on_passed(&mut self, is_end: bool) {
        let Passed { keys, gaps, .. } = self.passed;
        if keys > 0 {
            self.pinned.state().stats.passed.add(i64::from(keys));
        }
        // Two gaps that touch become one.
        if keys >= LEAST_PASSED || gaps > 1 {
            self.add_gap(is_end);
        }
    }

    /// Tells of the gap that was found up to the present key, or up to the end of the walk.
    #[cold]
    fn add_gap(&mut self, is_end: bool) {
        let state = self.pinned.state();
        // Records that have expired for this walk may be there for one of an earlier moment.
        if state.lifetimes.is_some() {
            return;
        }
        if self.finding.is_none() {
            activate_gaps(state);
            self.finding = FindsGaps::begin(state, self.pinned.read_point());
        }
        if self.finding.is_none() {
            return;
        }
        let (low, high) = (self.low.as_deref(), self.high.as_deref());
        let from = match (&self.passed.from, self.direction) {
            (Beginning::Unknown, _) => return,
            (Beginning::Bound, Direction::Up) => low,
            (Beginning::Bound, Direction::Down) => high,
            (Beginning::Key(key), _) => Some(&key[..]),
        };
        let to = self.cursor.key().filter(|_| !is_end);
        let to = to.map(|key| bound_at(key, self.direction));
        let range = match self.direction {
            Direction::Up => KeyRange {
                low: from,
                high: to.as_deref().or(high),
            },
            Direction::Down => KeyRange {
                low: to.as_deref().or(low),
                high: from,
            },
        };
        state
            .gaps
            .add(range, self.pinned.read_point(), self.passed.keys);
    }
}

/// Returns the bound of a range that begins with this key, or ends before it, for a walk in this
/// direction.
fn bound_at(key: &[u8], direction: Direction) -> Vec<u8> {
    match direction {
        Direction::Up => key.to_vec(),
        Direction::Down => successor(key),
    }
}

/// Returns the sources of a walk over a version, from the newest to the oldest.
fn sources(version: &Version, key_range: KeyRange<'_>, seq: Seq) -> Vec<Source> {
    let memtables = version.memtables().map(|memtable| Source {
        cursor: Box::new(
            MemtableCursor::new(Arc::clone(memtable), seq, true)
                .show_deleted()
                .within(key_range),
        ),
        range_deletes: memtable.deletes_in_older(seq),
    });
    let runs = version.runs.iter().filter_map(|run| {
        let range_deletes = run.run.range_deletes().cloned();
        let overlaps = run
            .run
            .bounds()
            .is_some_and(|(first, last)| overlaps(key_range, first, last));
        let is_read = overlaps || range_deletes.is_some();
        is_read.then(|| Source {
            cursor: Box::new(run.run.cursor(true, 0)),
            range_deletes: range_deletes.map(Deleted::Set),
        })
    });
    memtables.chain(runs).collect()
}

/// Returns `true` if a range has keys between these two.
fn overlaps(key_range: KeyRange<'_>, first: &[u8], last: &[u8]) -> bool {
    key_range.low.is_none_or(|low| low <= last) && key_range.high.is_none_or(|high| first < high)
}

/// Lets walks find gaps, if they do not yet.
fn activate_gaps(state: &State) {
    let write_state = state.write_state.try_lock();
    let published = write_state.as_ref().map(|state| state.last_seq);
    state.gaps.activate(published);
}

/// Is told that so many keys were deleted, of which this is the last. Looks for a gap around it
/// now and then. It is only about the speed of later walks, so nothing is read from disk for
/// it, and no error is one of the delete.
#[inline]
pub(crate) fn look_for_gap(state: &Arc<State>, deletes: u32, last: &[u8]) {
    if let Some(deletes) = state.gaps.count_deletes(deletes) {
        find_gap(state, last, deletes.saturating_mul(PASSED_PER_DELETE));
    }
}

#[cold]
fn find_gap(state: &Arc<State>, key: &[u8], most_passed: u32) {
    let above = successor(key);
    let from = KeyRange {
        low: Some(key),
        high: None,
    };
    let up_to = KeyRange {
        low: None,
        high: Some(&above),
    };
    let passed = [(from, Direction::Up), (up_to, Direction::Down)].map(|(range, direction)| {
        let mut scan = LendingScan::of(state, range, direction).ok()?;
        scan.most_passed = most_passed;
        let _ended = scan.try_next();
        Some(scan.passed.keys)
    });
    state.gaps.note_search(passed.into_iter().flatten().sum());
}
