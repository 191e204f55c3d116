//! Walks over the records of a range.

use crate::core::Core;
use crate::entry::Kind;
use crate::error::Error;
use crate::fold::{Chain, is_absent};
use crate::merging::{MergingCursor, Source};
use crate::snapshot::Pinned;
use crate::state::State;
use ats_store::{Direction, KeyRange};
use std::sync::Arc;

/// A key and its value.
pub type Record<'a> = (&'a [u8], &'a [u8]);

/// A walk over the records of a range at one moment.
pub struct Scan {
    cursor: MergingCursor,
    direction: Direction,
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
    place: Place,
    chain: Chain,
    /// The value of the present key, if it had to be made.
    value: Vec<u8>,
    /// Dropped last: it tells the threads of the store when nothing is read any more.
    pinned: Arc<Pinned>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    /// On a key whose value the cursor has.
    OnEntry,
    /// On a key whose value was made.
    OnMade,
    End,
}

impl Scan {
    pub(crate) fn new(
        pinned: Arc<Pinned>,
        key_range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Self, Error> {
        let state = pinned.state()?;
        let cursor = MergingCursor::new(sources(&state, key_range, pinned.seq()));
        Ok(Scan {
            cursor,
            direction,
            low: key_range.low.map(<[u8]>::to_vec),
            high: key_range.high.map(<[u8]>::to_vec),
            place: match key_range.is_empty() {
                true => Place::End,
                false => Place::Before,
            },
            chain: Chain::new(),
            value: Vec::new(),
            pinned,
        })
    }

    /// The next record: its key and its value. `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corrupt`] if a file cannot be read, [`Error::Merge`] if the values of a key cannot be
    /// merged, [`Error::Expired`]. After an error of a merge the walk goes on behind that key; after others it is at
    /// its end.
    #[expect(
        clippy::should_implement_trait,
        reason = "what it lends lives until the next call"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        match self.step() {
            Ok(()) => {}
            Err(Error::Merge) => return Err(Error::Merge),
            Err(error) => {
                self.place = Place::End;
                return Err(error);
            }
        }
        let value = match self.place {
            Place::Before | Place::End => return Ok(None),
            Place::OnMade => &self.value[..],
            Place::OnEntry => self.cursor.only_entry().map_or(&[][..], |(_, value)| value),
        };
        Ok(self.cursor.key().map(|key| (key, value)))
    }

    /// Goes to the next key that has a value.
    fn step(&mut self) -> Result<(), Error> {
        self.pinned.check()?;
        loop {
            match self.place {
                Place::End => return Ok(()),
                Place::Before => {
                    let bound = match self.direction {
                        Direction::Up => &self.low,
                        Direction::Down => &self.high,
                    };
                    self.cursor.seek(self.direction, bound.as_deref())?;
                }
                Place::OnEntry | Place::OnMade => self.cursor.advance()?,
            }
            let Some(key) = self.cursor.key() else {
                self.place = Place::End;
                return Ok(());
            };
            let is_out = match self.direction {
                Direction::Up => self.high.as_deref().is_some_and(|high| key >= high),
                Direction::Down => self.low.as_deref().is_some_and(|low| key < low),
            };
            if is_out {
                self.place = Place::End;
                return Ok(());
            }
            let operator = self.pinned.core().options.operator.as_deref();
            if let Some((Kind::Put, value)) = self.cursor.only_entry() {
                self.place = Place::OnEntry;
                if is_absent(operator, key, value)? {
                    continue;
                }
                return Ok(());
            }
            self.place = Place::OnMade;
            self.cursor.gather(operator, &mut self.chain);
            self.pinned.core().stats.on_read(self.chain.len());
            if let Some(value) = self.chain.value(key, operator)? {
                self.value.clear();
                self.value.extend_from_slice(&value);
                return Ok(());
            }
        }
    }
}

/// What a walk over a state reads, from the newest to the oldest.
fn sources(state: &State, key_range: KeyRange<'_>, seq: u64) -> Vec<Source> {
    let memtables = state.memtables().map(|memtable| {
        let deletes = memtable.range_deletes(seq);
        Source {
            cursor: Box::new(memtable.cursor(seq, true)),
            range_deletes: (!deletes.is_empty()).then_some(deletes),
        }
    });
    let runs = state.runs.iter().filter_map(|run| {
        let range_deletes = run.run.range_deletes().cloned();
        let overlaps = run
            .run
            .bounds()
            .is_some_and(|(first, last)| overlaps(key_range, first, last));
        let is_read = overlaps || range_deletes.is_some();
        is_read.then(|| Source {
            cursor: Box::new(run.run.cursor(true, 0)),
            range_deletes,
        })
    });
    memtables.chain(runs).collect()
}

/// Whether a range has keys between these two.
fn overlaps(key_range: KeyRange<'_>, first: &[u8], last: &[u8]) -> bool {
    key_range.low.is_none_or(|low| low <= last) && key_range.high.is_none_or(|high| first < high)
}

impl Core {
    /// A walk over a range at this moment.
    pub(crate) fn scan(
        self: &Arc<Self>,
        key_range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Scan, Error> {
        let pinned = Arc::new(Pinned::new(Arc::clone(self)));
        if self.options.snapshot_age.is_some() {
            self.snapshots.add(&pinned);
        }
        Scan::new(pinned, key_range, direction)
    }
}
