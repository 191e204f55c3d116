//! The walk over a memtable.
//!
//! The cursor copies some keys with their entries, and lends them until they are used up: the
//! thread is pinned for some microseconds at a time, however long the caller works on each key.

use super::versions::History;
use super::{Memtable, Reading};
use crate::cursor::Cursor;
use crate::entry::Kind;
use crate::error::Error;
use crate::ids::Seq;
use ats_mem::{Provided, Walk, WalkFrom, When};
use ats_store::{Direction, KeyRange, MayBlock};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// The number of keys that are copied first; each time after that, twice as many.
const FIRST_KEYS: usize = 8;
/// The most keys that are copied at a time.
const MOST_KEYS: usize = 256;
/// After so many bytes no more keys are copied.
const MOST_BYTES: usize = 64 << 10;
/// The most keys that are looked at before the thread is pinned anew.
const MOST_VISITED: usize = 1024;

/// A walk over the readable records of a memtable.
///
/// It fails with [`Error::Expired`] where a lookup is [too old](super::Lookup::TooOld), hence never
/// with a snapshot.
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    seq: Seq,
    /// Keys are left out of which the newest version is not above this.
    since: Seq,
    is_snapshot: bool,
    /// `true` if it stands on keys of which nothing remains but that a range was deleted.
    shows_deleted: bool,
    /// The bounds of the walk: it ends before the first on the way up, and below the second on the
    /// way down.
    bounds: [Option<Vec<u8>>; 2],
    direction: Direction,
    copied: Copied,
    /// The key on which it stands, of those that were copied. Their number at the end.
    at: usize,
    /// The number of keys that are copied next.
    keys: usize,
    /// The key that was looked at last.
    last: Vec<u8>,
    /// `true` if there are no keys behind the last.
    is_used_up: bool,
}

/// Keys and their entries.
#[derive(Default)]
struct Copied {
    keys: Vec<CopiedKey>,
    entries: Vec<(Kind, Range<usize>)>,
    bytes: Vec<u8>,
}

struct CopiedKey {
    key: Range<usize>,
    entries: Range<usize>,
}

/// The key at which copying begins.
enum Start<'k> {
    /// The bound that [`Cursor::seek`] was given.
    Bound(Option<&'k [u8]>),
    /// Behind the key that was looked at last.
    Last,
}

impl MemtableCursor {
    /// Makes a walk over the records that are readable at `seq`; as for [`get`](Memtable::get).
    /// Keys of which nothing remains but a deleted range are left out.
    ///
    /// With [`Seq::MAX`] it walks over everything; for memtables that are not written to any more.
    pub(crate) fn new(memtable: Arc<Memtable>, seq: Seq, is_snapshot: bool) -> Self {
        MemtableCursor {
            memtable,
            seq,
            since: Seq::ZERO,
            is_snapshot,
            shows_deleted: false,
            bounds: [None, None],
            direction: Direction::Up,
            copied: Copied::default(),
            at: 0,
            keys: FIRST_KEYS,
            last: Vec::new(),
            is_used_up: true,
        }
    }

    /// Lets it stand also on keys of which nothing remains but that a range was deleted, with a
    /// [`Kind::Delete`]: so that who walks knows how many there are.
    pub(crate) fn show_deleted(mut self) -> Self {
        self.shows_deleted = true;
        self
    }

    /// Leaves out keys that were not written after this sequence number, up to that of the walk.
    pub(crate) fn since(mut self, seq: Seq) -> Self {
        self.since = seq;
        self
    }

    /// Lets it end where a range does, so that nothing beyond is copied.
    pub(crate) fn within(mut self, key_range: KeyRange<'_>) -> Self {
        self.bounds = [key_range.high, key_range.low].map(|bound| bound.map(<[u8]>::to_vec));
        self
    }

    /// Copies the next keys, if there are any.
    fn fill(&mut self, start: Start<'_>) -> Result<(), Error> {
        self.copied.clear();
        self.at = 0;
        let mut is_full = self.copy(start)?;
        while is_full && self.copied.keys.is_empty() {
            is_full = self.copy(Start::Last)?;
        }
        self.is_used_up = !is_full;
        self.keys = (2 * self.keys).min(MOST_KEYS);
        Ok(())
    }

    /// Looks at some keys, and copies those of which there is something to read. Returns `true` if
    /// there may be more.
    fn copy(&mut self, start: Start<'_>) -> Result<bool, Error> {
        let MemtableCursor {
            memtable,
            copied,
            last,
            bounds: [high, low],
            ..
        } = self;
        let is_beyond = |key: &[u8]| match self.direction {
            Direction::Up => high.as_deref().is_some_and(|high| key >= high),
            Direction::Down => low.as_deref().is_some_and(|low| key < low),
        };
        let (seq, is_snapshot, most_keys) = (self.seq, self.is_snapshot, self.keys);
        let (since, shows_deleted) = (self.since, self.shows_deleted);
        let guard = ats_sync::pin();
        let mut visited = 0;
        let mut is_full = false;
        let mut is_too_old = false;
        let before = last.clone();
        let visit = &mut |record| {
            let history = History::of(record, &guard);
            if is_beyond(history.key()) {
                is_full = false;
                return ControlFlow::Break(());
            }
            if since == Seq::ZERO || Memtable::newest_seq(history, seq) > since {
                let reading = copied.take(memtable, history, seq, is_snapshot, shows_deleted);
                is_too_old = matches!(reading, Reading::TooOld);
            }
            visited += 1;
            is_full = copied.keys.len() >= most_keys
                || copied.bytes.len() >= MOST_BYTES
                || visited >= MOST_VISITED;
            if !is_full && !is_too_old {
                return ControlFlow::Continue(());
            }
            last.clear();
            last.extend_from_slice(history.key());
            ControlFlow::Break(())
        };
        let tree = &memtable.tree;
        let from = match (self.direction, start) {
            (_, Start::Bound(None)) => WalkFrom::Start,
            (Direction::Up, Start::Bound(Some(low))) => WalkFrom::Key(low),
            (Direction::Down, Start::Bound(Some(high))) => WalkFrom::Behind(high),
            (_, Start::Last) => WalkFrom::Behind(&before),
        };
        let walk = Walk {
            from,
            direction: self.direction,
            when: When::NOW,
        };
        // A tree walks from any key.
        let _ = tree.visit(walk, &guard, visit);
        if is_too_old {
            self.copied.clear();
            return Err(Error::Expired);
        }
        Ok(is_full)
    }
}

impl Copied {
    fn clear(&mut self) {
        self.keys.clear();
        self.entries.clear();
        self.bytes.clear();
    }

    fn add(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Copies a key and its entries, if it has any.
    fn take(
        &mut self,
        memtable: &Memtable,
        history: History<'_>,
        seq: Seq,
        is_snapshot: bool,
        shows_deleted: bool,
    ) -> Reading {
        let first = self.entries.len();
        let reading = memtable.read(history, seq, is_snapshot, &mut |kind, value| {
            let range = self.add(value);
            self.entries.push((kind, range));
        });
        if shows_deleted && matches!(reading, Reading::Covered) {
            self.entries.push((Kind::Delete, 0..0));
        }
        if self.entries.len() > first && !matches!(reading, Reading::TooOld) {
            let key = self.add(history.key());
            self.keys.push(CopiedKey {
                key,
                entries: first..self.entries.len(),
            });
        }
        reading
    }
}

impl Cursor for MemtableCursor {
    fn seek(
        &mut self,
        _: Option<MayBlock>,
        direction: Direction,
        bound: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.direction = direction;
        self.keys = FIRST_KEYS;
        self.is_used_up = true;
        self.fill(Start::Bound(bound))
    }

    fn advance(&mut self, _: Option<MayBlock>) -> Result<(), Error> {
        self.at += 1;
        if self.at < self.copied.keys.len() || self.is_used_up {
            return Ok(());
        }
        self.is_used_up = true;
        self.fill(Start::Last)
    }

    fn key(&self) -> Option<&[u8]> {
        let key = &self.copied.keys.get(self.at)?.key;
        Some(&self.copied.bytes[key.clone()])
    }

    fn entries(&self) -> usize {
        self.copied.keys[self.at].entries.len()
    }

    fn entry(&self, index: usize) -> (Kind, &[u8]) {
        let entries = &self.copied.entries[self.copied.keys[self.at].entries.clone()];
        let (kind, range) = &entries[index];
        (*kind, &self.copied.bytes[range.clone()])
    }
}
