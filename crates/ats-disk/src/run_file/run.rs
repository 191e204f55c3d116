//! Runs: files whose keys ascend from one to the next, as one.

use super::cursor::FileCursor;
use super::index::Separators;
use super::reader::RunFile;
use crate::cursor::Cursor;
use crate::entry::Kind;
use crate::error::Error;
use crate::ids::FileNumber;
use crate::keys::compare;
use crate::median::{Median, middle};
use crate::range_deletes::RangeSet;
use ats_store::{Direction, MayBlock};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The outcome of an interval of sequence numbers: per key one entry (or several, if operands could
/// not be merged), and the ranges of which all that is older is deleted.
pub(crate) struct Run {
    /// Files without keys, which only have range deletes; then the others, ascending.
    files: Vec<Arc<RunFile>>,
    /// The number of files that have no keys.
    keyless: usize,
    /// Between the files that have keys.
    separators: Separators,
    /// The bounds of all keys.
    bounds: Option<[Arc<[u8]>; 2]>,
    /// The range deletes of all files, if there are any.
    range_deletes: Option<Arc<RangeSet>>,
}

impl Run {
    /// Makes the run of these files, one at least, in any order.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the keys of two files overlap.
    pub(crate) fn new(mut files: Vec<Arc<RunFile>>) -> Result<Self, Error> {
        // `None`, for those without keys, comes first.
        files.sort_by(|a, b| a.meta().first_key.cmp(&b.meta().first_key));
        let keyless = files.partition_point(|file| file.meta().bounds().is_none());
        let bounds: Vec<_> = files
            .iter()
            .filter_map(|file| file.meta().bounds())
            .collect();
        for (number, pair) in (keyless..).zip(bounds.windows(2)) {
            if pair[0].1 >= pair[1].0 {
                let numbers = [number, number + 1].map(|number| files[number].meta().number);
                return Err(overlap(numbers));
            }
        }
        let separators = Separators::from_bounds(bounds.iter().copied());
        let first = files
            .get(keyless)
            .and_then(|file| file.meta().first_key.clone());
        let last = files.last().and_then(|file| file.meta().last_key.clone());
        Ok(Run {
            keyless,
            separators,
            bounds: first.zip(last).map(|(first, last)| [first, last]),
            range_deletes: range_deletes(&files),
            files,
        })
    }

    /// Returns all files: first those without keys, then the others, ascending.
    pub(crate) fn files(&self) -> &[Arc<RunFile>] {
        &self.files
    }

    /// Returns the [bounds](super::bounds) of its keys, if there are any.
    pub(crate) fn bounds(&self) -> Option<(&[u8], &[u8])> {
        self.bounds
            .as_ref()
            .map(|[first, last]| (&**first, &**last))
    }

    /// Returns the ranges of keys that the run deletes from older runs, if there are any.
    pub(crate) fn range_deletes(&self) -> Option<&Arc<RangeSet>> {
        self.range_deletes.as_ref()
    }

    /// Returns `true` if a range delete of the run hides a key of older runs. O(log n), in memory.
    #[inline]
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        let deletes = self.range_deletes.as_ref();
        deletes.is_some_and(|deletes| deletes.covers(key))
    }

    /// Shows the entries of a key, from the newest to the oldest, until `visit` breaks. Range
    /// deletes are not considered. `hash` is the [`key_hash`](super::key_hash) of the key.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    #[inline]
    pub(crate) fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        hash: u64,
        visit: &mut dyn FnMut(Kind, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        match &self.bounds {
            Some([first, last]) if compare(first, key).is_le() && compare(key, last).is_le() => {
                self.files[self.find(key)].get(may_block, key, hash, visit)
            }
            _ => Ok(()),
        }
    }

    /// Returns the median of a range; `None` if it has few entries. Reads a part and a block at
    /// most.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    pub(crate) fn median(
        &self,
        may_block: Option<MayBlock>,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<Option<Median>, Error> {
        let Some([first, last]) = &self.bounds else {
            return Ok(None);
        };
        if high.is_some_and(|high| high <= &**first) || low > &**last {
            return Ok(None);
        }
        let within = self.separators.find_within(low, high);
        let files = &self.files[self.keyless + within.start..=self.keyless + within.end];
        match files {
            [file] => file.median(may_block, low, high),
            files => Ok(Some(Median {
                bound: self.separators.get(middle(&within)),
                entries: files.iter().map(|file| file.meta().entries).sum(),
            })),
        }
    }

    /// Returns the number of the file to which a key belongs.
    fn find(&self, key: &[u8]) -> usize {
        self.keyless + self.separators.rank(key)
    }

    /// Returns a cursor over all keys; see [`FileCursor::new`]. Of each file it reads nothing
    /// before it gets there.
    pub(crate) fn cursor(self: &Arc<Self>, use_cache: bool, read_ahead: usize) -> RunCursor {
        RunCursor {
            run: Arc::clone(self),
            use_cache,
            read_ahead,
            direction: Direction::Up,
            current: None,
        }
    }
}

fn overlap([a, b]: [FileNumber; 2]) -> Error {
    Error::corrupt(format_args!(
        "run files {a} and {b} have keys in common, and are of one run"
    ))
}

/// Returns the range deletes of all files, if there are any. A range that goes on in the next file
/// is one again.
fn range_deletes(files: &[Arc<RunFile>]) -> Option<Arc<RangeSet>> {
    let deletes = files.iter().map(|file| file.range_deletes());
    let mut deletes = deletes.filter(|deletes| !deletes.is_empty());
    let first = deletes.next()?;
    Some(match deletes.next() {
        // Nearly always, and then there is no copy of them.
        None => Arc::clone(first),
        Some(second) => {
            let all = [first, second].into_iter().chain(deletes);
            Arc::new(all.flat_map(|deletes| deletes.iter()).collect())
        }
    })
}

/// A cursor over the files of a run, one after the other.
pub(crate) struct RunCursor {
    run: Arc<Run>,
    use_cache: bool,
    read_ahead: usize,
    direction: Direction,
    /// The number of the file, and where it is there.
    current: Option<(usize, FileCursor)>,
}

impl RunCursor {
    /// Returns the cursor over the file with this number, which becomes the current one.
    fn enter(&mut self, number: usize) -> &mut FileCursor {
        let cursor = match self.current.take() {
            Some((current, cursor)) if current == number => cursor,
            _ => {
                let file = Arc::clone(&self.run.files[number]);
                FileCursor::new(file, self.use_cache, self.read_ahead)
            }
        };
        &mut self.current.insert((number, cursor)).1
    }

    /// Goes on to the first key of the next file that has one, if the current one has no more.
    fn settle(&mut self, may_block: Option<MayBlock>) -> Result<(), Error> {
        while let Some((number, cursor)) = &self.current
            && cursor.key().is_none()
        {
            let next = match self.direction {
                Direction::Up => Some(number + 1).filter(|next| *next < self.run.files.len()),
                Direction::Down => number
                    .checked_sub(1)
                    .filter(|next| *next >= self.run.keyless),
            };
            let Some(next) = next else {
                return Ok(());
            };
            let direction = self.direction;
            let sought = self.enter(next).seek(may_block, direction, None);
            self.end_after(sought)?;
        }
        Ok(())
    }

    /// After an error, it stands at the end.
    fn end_after(&mut self, done: Result<(), Error>) -> Result<(), Error> {
        done.inspect_err(|_| self.current = None)
    }
}

impl Cursor for RunCursor {
    fn seek(
        &mut self,
        may_block: Option<MayBlock>,
        direction: Direction,
        bound: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.direction = direction;
        if self.run.bounds.is_none() {
            return Ok(());
        }
        let number = match (bound, direction) {
            (Some(bound), _) => self.run.find(bound),
            (None, Direction::Up) => self.run.keyless,
            (None, Direction::Down) => self.run.files.len() - 1,
        };
        let sought = self.enter(number).seek(may_block, direction, bound);
        self.end_after(sought)?;
        self.settle(may_block)
    }

    #[inline]
    fn advance(&mut self, may_block: Option<MayBlock>) -> Result<(), Error> {
        let Some((_, cursor)) = &mut self.current else {
            return Ok(());
        };
        match cursor.advance(may_block) {
            Ok(()) if cursor.key().is_some() => Ok(()),
            Ok(()) => self.settle(may_block),
            Err(error) => self.end_after(Err(error)),
        }
    }

    #[inline]
    fn key(&self) -> Option<&[u8]> {
        self.current.as_ref().and_then(|(_, cursor)| cursor.key())
    }

    #[inline]
    fn entries(&self) -> usize {
        self.current
            .as_ref()
            .map_or(0, |(_, cursor)| cursor.entries())
    }

    #[inline]
    fn entry(&self, index: usize) -> (Kind, &[u8]) {
        match &self.current {
            Some((_, cursor)) => cursor.entry(index),
            None => (Kind::Delete, &[]),
        }
    }
}
