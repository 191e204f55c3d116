//! Walks through the parts of a table that a plan names.

use super::cursor::{At, Cursor, Progress};
use super::query::{Query, Step};
use crate::terms::error::Error;
use crate::terms::lookup_result::LookupResult;
use crate::terms::store::Store;
use crate::terms::value::Rec;
use ats_mem::{Walk, When};
use ats_store::{Direction, WalkFrom};
use ats_sync::Guard;
use ats_term::image::Host;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The time limit of a piece of work, and counters of the work done.
#[derive(Debug)]
pub struct Slice {
    /// Work until the next check of the clock.
    left: Cell<u32>,
    /// The time of the first check.
    begun: Cell<Option<Instant>>,
    over: Cell<bool>,
    objects: Cell<u64>,
    keys: Cell<u64>,
    most_steps: usize,
    /// `true` if the slice is over at its first check, without a clock.
    #[cfg(feature = "forcing")]
    by_work: bool,
}

/// The approximate time of a slice.
const TIME: Duration = Duration::from_micros(400);
/// Number of keys, objects or empty buckets between two checks of the clock.
const LOOK: u32 = 16;
/// Number of words of an object that cause about as much work as another object.
const WORDS: usize = 64;

impl Slice {
    /// Returns a slice that begins now.
    #[must_use]
    pub const fn new() -> Self {
        Slice {
            left: Cell::new(LOOK),
            begun: Cell::new(None),
            over: Cell::new(false),
            objects: Cell::new(0),
            keys: Cell::new(0),
            most_steps: usize::MAX,
            #[cfg(feature = "forcing")]
            by_work: false,
        }
    }

    /// Returns a slice that is over after `ticks` units of work, independent of the time: a key, an
    /// object or an empty bucket is one unit. Tests use it to check that results do not depend on
    /// the ends of slices.
    #[cfg(feature = "forcing")]
    #[must_use]
    pub const fn of_work(ticks: u32) -> Self {
        Slice {
            left: Cell::new(ticks),
            by_work: true,
            ..Self::new()
        }
    }

    /// Limits the steps for one object, in the units of
    /// [`Machine::limit`](ats_match::Machine::limit). If an object would take more, the slice ends
    /// with [`Error::TooLarge`], and a caller with more time must repeat it.
    #[must_use]
    pub const fn with_limit(self, most_steps: usize) -> Self {
        Slice { most_steps, ..self }
    }

    /// Returns the maximum number of steps for one object.
    pub(super) fn most_steps(&self) -> usize {
        self.most_steps
    }

    /// Counts a unit of work. Returns `true` if the time is over.
    #[inline]
    pub(super) fn tick(&self) -> bool {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => self.look(),
        }
        self.over.get()
    }

    /// Returns `true` if the time is over.
    pub(super) fn is_over(&self) -> bool {
        self.over.get()
    }

    #[cold]
    fn look(&self) {
        self.left.set(LOOK);
        match self.begun.get() {
            #[cfg(feature = "forcing")]
            _ if self.by_work => self.over.set(true),
            // The clock starts at the first check, which comes after some work, so that short work
            // never reads it.
            None => self.begun.set(Some(Instant::now())),
            Some(begun) => self.over.set(begun.elapsed() > TIME),
        }
    }

    /// Counts an object of this many words that is going to be read.
    #[inline]
    pub(super) fn count_object(&self, words: usize) {
        self.objects.set(self.objects.get() + 1);
        if words > WORDS {
            self.weigh(words);
        }
    }

    /// Counts the work that this many words cause, before it is done.
    #[cold]
    pub(super) fn weigh(&self, words: usize) {
        let ticks = u32::try_from(words / WORDS).unwrap_or(u32::MAX);
        self.left.set(self.left.get().saturating_sub(ticks));
        if self.left.get() == 0 && self.begun.get().is_none() {
            // A single large object can take all of the time, so the clock must start before it.
            self.begun.set(Some(Instant::now()));
        }
    }

    /// Counts a key that is visited from its first object on.
    #[inline]
    pub(super) fn count_key(&self) {
        self.keys.set(self.keys.get() + 1);
    }

    /// Sets the number of the current key to that of a key that was counted before.
    pub(super) fn set_key(&self, number: u64) {
        self.keys.set(number);
    }

    /// Returns a number that grows with each key. It is 0 for objects of a key among whose objects
    /// the slice began.
    #[must_use]
    pub fn key(&self) -> u64 {
        self.keys.get()
    }

    /// Returns the number of objects that were read.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.objects.get()
    }

    /// Returns the approximate share of the slice's time that was used, in percent. It is more than
    /// 100 if the slice took too long, which a single object can cause.
    #[must_use]
    pub fn percent(&self) -> u32 {
        let Some(begun) = self.begun.get() else {
            return 0;
        };
        let share = begun.elapsed().as_micros() * 100 / TIME.as_micros();
        u32::try_from(share).unwrap_or(u32::MAX)
    }
}

impl Default for Slice {
    fn default() -> Self {
        Self::new()
    }
}

/// A key that a walk has reached.
pub(super) struct Spot<'g, H: Host> {
    pub(super) found: LookupResult<'g, H>,
    /// The position from which the objects of a large bag are to be visited, if some were visited
    /// before; in the direction down, the position before which they are to be visited.
    pub(super) from: Option<u64>,
    /// The direction in which the objects of the key are to be visited.
    pub(super) direction: Direction,
    /// The step of the plan.
    pub(super) step: usize,
}

/// The decision after a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Go on.
    Go,
    /// Stop behind this key.
    Stop,
    /// Stop at the object of this key with this position, or the next one; in the direction down,
    /// at the object before this position.
    StopAt(u64),
}

/// The result of a walk over a range.
enum Walked {
    /// The walk has reached the end of the range.
    Through,
    /// The slice was over, or a visit stopped the walk.
    Stopped,
    /// The values of the next key must be merged first.
    Pending,
}

fn is_pending(error: Error) -> bool {
    error == Error::Storage(ats_store::Error::Pending)
}

/// Visits the keys of a plan from the cursor on, until the slice is over, a visit stops the walk,
/// or the values of the next key are not merged yet. If the cursor is among the objects of a key,
/// visits only the rest of this key, so that a caller can join its results with the earlier results
/// for the key.
pub(super) fn walk<'g, H: Host>(
    (store, when): (&'g Store<H>, When),
    query: &Query<H>,
    cursor: &mut Cursor,
    slice: &Slice,
    guard: &'g Guard,
    mut visit: impl FnMut(Spot<'g, H>) -> Next,
) -> Result<Progress, Error> {
    if let At::Within(key, from) = &mut cursor.at {
        let (key, from) = (std::mem::take(key), *from);
        go_on_within((store, when), query, cursor, key, from, guard, &mut visit)?;
        return Ok(progress(query, cursor));
    }
    while let Some(step) = query.step(cursor) {
        let stops = match step {
            Step::Point(key) => {
                let next = match visit_point((store, when), query, cursor, key, guard, &mut visit) {
                    Err(error) if is_pending(error) => return Ok(Progress::Pending),
                    next => next?,
                };
                match next {
                    Next::StopAt(position) => cursor.at = At::Within(key.clone(), position),
                    _ => cursor.advance(),
                }
                next != Next::Go || slice.tick()
            }
            Step::Range { from, to } => {
                let range = (&from[..], to.as_deref());
                match walk_range(
                    (store, when),
                    query,
                    cursor,
                    range,
                    slice,
                    guard,
                    &mut visit,
                )? {
                    Walked::Through => false,
                    Walked::Stopped => true,
                    Walked::Pending => return Ok(Progress::Pending),
                }
            }
        };
        if stops {
            return Ok(progress(query, cursor));
        }
    }
    Ok(Progress::Done)
}

fn progress<H: Host>(query: &Query<H>, cursor: &Cursor) -> Progress {
    match query.step(cursor) {
        Some(_) => Progress::More,
        None => Progress::Done,
    }
}

/// Visits the remaining objects of a key.
fn go_on_within<'g, H: Host>(
    (store, when): (&'g Store<H>, When),
    query: &Query<H>,
    cursor: &mut Cursor,
    key: Vec<u8>,
    from: u64,
    guard: &'g Guard,
    visit: &mut impl FnMut(Spot<'g, H>) -> Next,
) -> Result<(), Error> {
    // The key was removed meanwhile if its objects have no positions now. Then all objects that
    // were not visited are gone, and the walk may skip the present objects, which are newer.
    let found = store.get_at(&key, when, guard)?.map(LookupResult::new);
    let next = match found.filter(LookupResult::is_large) {
        Some(found) => visit(Spot {
            found,
            from: Some(from),
            step: cursor.step,
            direction: query.direction(cursor),
        }),
        None => Next::Go,
    };
    match (next, query.step(cursor)) {
        (Next::StopAt(position), _) => cursor.at = At::Within(key, position),
        (_, Some(Step::Range { .. })) => cursor.at = At::Behind(key),
        _ => cursor.advance(),
    }
    Ok(())
}

fn visit_point<'g, H: Host>(
    (store, when): (&'g Store<H>, When),
    query: &Query<H>,
    cursor: &Cursor,
    key: &[u8],
    guard: &'g Guard,
    visit: &mut impl FnMut(Spot<'g, H>) -> Next,
) -> Result<Next, Error> {
    Ok(
        match store.get_at(key, when, guard)?.map(LookupResult::new) {
            Some(found) => visit(Spot {
                found,
                from: None,
                step: cursor.step,
                direction: query.direction(cursor),
            }),
            None => Next::Go,
        },
    )
}

/// Visits keys of a range from the cursor on.
fn walk_range<'g, H: Host>(
    (store, when): (&'g Store<H>, When),
    query: &Query<H>,
    cursor: &mut Cursor,
    (from, to): (&[u8], Option<&[u8]>),
    slice: &Slice,
    guard: &'g Guard,
    visit: &mut impl FnMut(Spot<'g, H>) -> Next,
) -> Result<Walked, Error> {
    let direction = query.direction(cursor);
    let Cursor { step, at, .. } = cursor;
    let mut stopped: Option<(&'g Rec<H>, Next)> = None;
    let mut last: Option<&'g Rec<H>> = None;
    let mut visit_record = |record: &'g Rec<H>| {
        let is_inside = match direction {
            Direction::Up => to.is_none_or(|to| record.key() < to),
            Direction::Down => from.is_empty() || record.key() >= from,
        };
        if !is_inside {
            return ControlFlow::Break(());
        }
        last = Some(record);
        let next = visit(Spot {
            found: LookupResult::new(record),
            from: None,
            step: *step,
            direction,
        });
        if next != Next::Go || slice.tick() {
            stopped = Some((record, next));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let begin = match (&*at, direction) {
        (At::Behind(key), _) => WalkFrom::Behind(key),
        (At::Between(position), _) => WalkFrom::Position(*position),
        (_, Direction::Up) if query.is_ordered() => WalkFrom::Key(from),
        (_, Direction::Down) if query.is_ordered() => to.map_or(WalkFrom::Start, WalkFrom::Behind),
        _ => WalkFrom::Start,
    };
    let walk = Walk {
        from: begin,
        direction,
        when,
    };
    let mut pause = || {
        if slice.tick() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let paused = match store.walk(walk, guard, &mut visit_record, &mut pause) {
        Err(error) if is_pending(error) => {
            if let Some(last) = last {
                *at = At::Behind(last.key().to_vec());
            }
            return Ok(Walked::Pending);
        }
        walked => walked?,
    };
    match (stopped, paused.ok().flatten()) {
        (Some((record, Next::StopAt(position))), _) => {
            *at = At::Within(record.key().to_vec(), position);
        }
        (Some((record, _)), _) => *at = At::Behind(record.key().to_vec()),
        (None, Some(position)) => *at = At::Between(position),
        (None, None) => {
            cursor.advance();
            return Ok(Walked::Through);
        }
    }
    Ok(Walked::Stopped)
}
