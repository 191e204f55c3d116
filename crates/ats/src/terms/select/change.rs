//! Deletion and replacement of the objects that a query finds.
//!
//! A query runs without locks, so the objects it finds are only candidates. The program runs a
//! second time for each candidate, under the lock of its key, or while only the key is held if that
//! may take long, and the object is changed there. A record never changes, except for its cells; so
//! if the same record is still present, the program need not run again.
//!
//! A query of one moment finds candidates as of the moment, and changes objects that have not been
//! written since; in a bag, objects of the key that also existed at the moment. It does not reach a
//! changed object again, so its own changes keep no old versions for it:
//! [`Provided::update_by`](ats_mem::Provided::update_by). A query without a moment changes each
//! object atomically, in its found or its current version.
//!
//! Candidates are collected in small batches, since a walk must not change the part of the table
//! that it visits.

use super::cursor::{At, Cursor, Progress};
use super::query::{Query, Step};
use super::read::{Runner, Selection, visit_objects, visit_positions};
use super::rerun::Rerun;
use super::walk::{Next, Slice, Spot, walk};
use crate::terms::bag::{self, Large, Rules, Selected};
use crate::terms::cells;
use crate::terms::error::Error;
use crate::terms::lock_budget::{SHORT_WORDS, is_long_to_compare};
use crate::terms::lookup_result::LookupResult;
use crate::terms::read_point::TableReadPoint;
use crate::terms::table::Table;
use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::{Rec, form};
use ats_match::{Environment, Outcome};
use ats_mem::Change;
use ats_store::Direction;
use ats_sync::Guard;
use ats_term::image::{Form, Host, Object};

/// Number of candidates that are collected before they are changed; fewer if they are large.
const BATCH: usize = 32;
/// Number of words of a large object that count as a further candidate.
const WORDS: usize = 256;
/// Largest program, in bytes, that runs under a lock that other keys share.
const LONG_PROGRAM: usize = 1 << 15;

/// The result of one slice of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Number of changed objects.
    pub objects: usize,
    /// The progress of the query. If it is not done and no object was changed, a change of several
    /// keys may hold a key: the caller should let other threads run.
    pub progress: Progress,
}

/// A key with objects that are to be changed.
struct Candidate<'g, H: Host> {
    record: &'g Rec<H>,
    /// The positions of these objects, if the key is a large bag.
    positions: Option<Vec<u64>>,
    /// The position from which the objects of the key were visited: [`Spot::from`].
    from: Option<u64>,
    step: usize,
    /// The number of the key in the slice: [`Slice::key`].
    number: u64,
    /// The number of further candidates that a large candidate counts as.
    weight: usize,
}

/// The change of candidates.
#[derive(Clone, Copy)]
enum Action {
    Delete,
    Replace,
}

/// A callback that gets each object after its deletion.
type Deleted<'a, H> = dyn FnMut(Object<'_, H>) + 'a;

impl<H: Host> Table<H> {
    /// Deletes objects for which the result of the query is `true`, for about a slice. Each object
    /// is deleted atomically. If the selection has a [read point](Selection::read_point), only
    /// objects of the moment that have not been written since are deleted.
    ///
    /// # Errors
    /// [`Error::Storage`] if the store of the table fails; [`Error::Ended`] if the moment has
    /// ended. Objects that were changed before stay changed. [`Error::TooLarge`] if an object would
    /// take more than the [limit](Slice::with_limit) of the slice; then nothing was changed.
    ///
    /// # Panics
    /// If the query was made for another kind of table.
    pub fn select_delete<E: Environment>(
        &self,
        selection: &mut Selection<'_, H, E>,
    ) -> Result<Changed, Error> {
        self.select_take(selection, &mut |_| {})
    }

    /// Deletes objects like [`select_delete`](Table::select_delete), and calls `taken` with each
    /// deleted object, as of its deletion. So of several threads that take an object exactly one
    /// gets it. The objects of a key come in the order of [`select`](Table::select). [`Slice::key`]
    /// tells them from those of the next key, and slices end as in [`select`](Table::select).
    ///
    /// # Errors
    /// The errors of [`select_delete`](Table::select_delete).
    ///
    /// # Panics
    /// If the query was made for another kind of table.
    pub fn select_take<E: Environment>(
        &self,
        selection: &mut Selection<'_, H, E>,
        taken: &mut dyn FnMut(Object<'_, H>),
    ) -> Result<Changed, Error> {
        self.change_slice(Action::Delete, selection, taken)
    }

    /// Replaces objects by the result of the query, if there is one, for about a slice. Each object
    /// is replaced atomically. With a moment, only the objects that
    /// [`select_delete`](Table::select_delete) would delete are replaced. A result that is not an
    /// object with the same key is ignored; [`ats_match`] describes how to exclude such results
    /// beforehand. A `bag` cannot be changed this way.
    ///
    /// # Errors
    /// [`Error::TableType`] if the table is a `bag`, and the errors of
    /// [`select_delete`](Table::select_delete).
    ///
    /// # Panics
    /// If the query was made for another kind of table.
    pub fn select_replace<E: Environment>(
        &self,
        selection: &mut Selection<'_, H, E>,
    ) -> Result<Changed, Error> {
        if self.table_type.is_distinct_bag() {
            return Err(Error::TableType);
        }
        self.change_slice(Action::Replace, selection, &mut |_| {})
    }

    fn change_slice<E: Environment>(
        &self,
        action: Action,
        selection: &mut Selection<'_, H, E>,
        deleted: &mut Deleted<'_, H>,
    ) -> Result<Changed, Error> {
        let (query, slice) = (selection.query, selection.slice);
        query.check_fits(self);
        let is_long = query.program().memory() > LONG_PROGRAM;
        let mut objects = 0;
        let mut candidates = Vec::new();
        if !selection.is_of(self.store(selection.guard)) {
            // The table was cleared, so it has no object of the moment any more.
            return Ok(Changed {
                objects,
                progress: Progress::Done,
            });
        }
        let is_within = |cursor: &Cursor| matches!(cursor.at, At::Within(..));
        let begun_within = is_within(selection.cursor);
        loop {
            let before = selection.cursor.clone();
            let gathered = self.gather(action, selection, &mut candidates);
            let check = || selection.read_point.map_or(Ok(()), TableReadPoint::check);
            let progress = match gathered.and_then(|progress| check().map(|()| progress)) {
                Ok(progress) => progress,
                // The caller gets the number of changed objects first. The next slice meets the
                // error again, before it changes an object.
                Err(_) if objects > 0 => {
                    *selection.cursor = before;
                    return Ok(Changed {
                        objects,
                        progress: Progress::More,
                    });
                }
                Err(error) => return Err(error),
            };
            let last = slice.key();
            for (at, candidate) in candidates.iter().enumerate() {
                slice.set_key(candidate.number);
                match self.change(action, candidate, is_long, selection, deleted) {
                    Ok(changed) => objects += changed,
                    // The caller gets the number of changed objects before the next slice fails.
                    Err(error) if error == Error::Busy || objects > 0 => {
                        *selection.cursor = back_to(query, &candidates, at, before);
                        return Ok(Changed {
                            objects,
                            progress: Progress::More,
                        });
                    }
                    Err(error) => return Err(error),
                }
                // Changing an object takes time, too.
                slice.weigh(candidate.weight * WORDS);
                slice.tick();
            }
            candidates.clear();
            slice.set_key(last);
            let is_behind = begun_within && !is_within(selection.cursor);
            if progress == Progress::Done || slice.is_over() || is_behind {
                return Ok(Changed { objects, progress });
            }
        }
    }

    /// Collects candidates.
    fn gather<'g, 'a: 'g, E: Environment>(
        &'g self,
        action: Action,
        selection: &mut Selection<'a, H, E>,
        candidates: &mut Vec<Candidate<'g, H>>,
    ) -> Result<Progress, Error> {
        let source = selection.source(self);
        let Selection {
            query,
            cursor,
            runner,
            environment,
            slice,
            guard,
            ..
        } = selection;
        let (slice, guard): (&Slice, &'g Guard) = (slice, guard);
        let Runner {
            machine, unpacked, ..
        } = &mut **runner;
        machine.limit(slice.most_steps());
        let mut gathered = 0;
        let progress = walk(source, query, cursor, slice, guard, |spot| {
            let (mut positions, mut found_any, mut weight) = (Vec::new(), false, 0);
            if spot.from.is_none() {
                slice.count_key();
            }
            let is_meant = |object: Object<'_, H>| {
                let words = object.len_words();
                slice.count_object(words);
                let outcome = machine.run(query.program(), object, *environment);
                let is_meant = outcome.is_some_and(|outcome| action.concerns(&outcome));
                is_meant.then_some(words / WORDS)
            };
            let next = if spot.found.is_large() {
                let found = (&mut positions, &mut weight);
                gather_positions(&spot, slice, unpacked, is_meant, found)
            } else {
                let mut is_meant = is_meant;
                visit_objects(&spot, slice, unpacked, |object| {
                    let meant = is_meant(object);
                    found_any |= meant.is_some();
                    weight += meant.unwrap_or(0);
                    false
                })
            };
            if found_any || !positions.is_empty() {
                gathered += positions.len().max(1) + weight;
                candidates.push(Candidate {
                    record: spot.found.record(),
                    positions: spot.found.is_large().then_some(positions),
                    from: spot.from,
                    step: spot.step,
                    number: slice.key(),
                    weight,
                });
            }
            match next {
                Next::Go if gathered >= BATCH => Next::Stop,
                next => next,
            }
        })?;
        if machine.gave_up() {
            return Err(Error::TooLarge);
        }
        // The second run of the program for a candidate has no limit, so that it ends with a
        // result.
        machine.limit(usize::MAX);
        match progress {
            // Values that are not merged yet cannot be changed; the caller merges them and tries
            // again.
            Progress::Pending => Err(Error::Storage(ats_store::Error::Pending)),
            progress => Ok(progress),
        }
    }

    /// Changes the objects of a candidate that still qualify. Returns their number.
    #[expect(
        clippy::too_many_lines,
        reason = "both kinds of tables share the state"
    )]
    fn change<E: Environment>(
        &self,
        action: Action,
        candidate: &Candidate<'_, H>,
        is_long_program: bool,
        selection: &mut Selection<'_, H, E>,
        deleted: &mut Deleted<'_, H>,
    ) -> Result<usize, Error> {
        let store = self.store(selection.guard);
        if !selection.is_of(store) {
            return Ok(0);
        }
        let Selection {
            query,
            cursor,
            runner,
            environment,
            guard,
            read_point,
            ..
        } = selection;
        let by = read_point.map(TableReadPoint::query);
        let Runner {
            machine,
            unpacked,
            image,
            packer,
            bag,
        } = &mut **runner;
        let mut rerun = Rerun {
            table: self,
            program: query.program(),
            environment: *environment,
            machine,
            image,
            packer,
            most: usize::MAX,
            is_too_large: false,
        };
        let key = candidate.record.key();
        let mut changed = 0;
        // The deleted objects are passed on after the lock of the key is released.
        let mut gone = None;
        if !self.table_type.is_bag() {
            store.update_short(key, by, guard, &mut |current, alone| {
                let Some(current) = current else {
                    return Some(Change::Keep);
                };
                if by.is_some() && !candidate.is_in(current) {
                    return Some(Change::Keep);
                }
                let is_known = matches!(action, Action::Delete) && candidate.is_still(current);
                let is_long = is_long_program || is_long_to_compare(current);
                if is_long && !is_known && !alone {
                    return None;
                }
                rerun.most = if alone { usize::MAX } else { SHORT_WORDS };
                rerun.is_too_large = false;
                let stopped = cells::stop(current);
                let change = match action {
                    Action::Delete if is_known => Change::Remove,
                    Action::Delete => rerun.delete(current, unpacked),
                    Action::Replace => rerun.replace(current, unpacked, &mut changed),
                };
                if rerun.is_too_large {
                    return None;
                }
                if !matches!(change, Change::Keep) {
                    changed = 1;
                    stopped.for_ever();
                }
                gone = matches!(change, Change::Remove).then_some(current);
                Some(change)
            })?;
            if let Some(gone) = gone {
                deleted(LookupResult::new(gone).first(unpacked));
            }
            return Ok(changed);
        }
        let positions = candidate.positions.as_deref();
        let (mut removed, mut is_ascending) = (Vec::new(), false);
        store.update_bag_by(key, by, guard, &mut |current| {
            let Some(current) = current else {
                return bag::keep();
            };
            let rules = self.bag_rules(store.is_read());
            let since;
            let mut among = positions;
            if by.is_some() && !candidate.is_in(current) {
                since = rules.positions_since(candidate.record, positions, current, bag);
                (among, is_ascending) = (Some(&since[..]), true);
            } else if !LookupResult::new(current).is_large() {
                (among, is_ascending) = (None, true);
            }
            match action {
                // SAFETY: this closure is the decision of `update_bag`, gets `current` from it, and
                // returns the result (LARGE-1).
                Action::Delete => unsafe {
                    gone = Some(current);
                    let mut is_unwanted = |object: Object<'_, H>| rerun.is_true(object);
                    let (is_unwanted, removed) = (&mut is_unwanted, &mut removed);
                    rules.delete_selected(key, current, among, is_unwanted, removed, bag)
                },
                // SAFETY: this closure is the decision of `update_bag`, gets `current` from it, and
                // returns the result (LARGE-1).
                Action::Replace => unsafe {
                    let selected = Selected {
                        among,
                        changed: &mut changed,
                    };
                    rules.replace_selected(key, current, selected, &mut rerun, bag)
                },
            }
        })?;
        if let Some(before) = gone {
            changed = removed.len();
            // The positions of a candidate are already in the order of the walk.
            let is_ascending = is_ascending || positions.is_none();
            if is_ascending && query.direction(cursor) == Direction::Down {
                removed.reverse();
            }
            Rules::visit_deleted(before, &removed, unpacked, deleted);
        }
        Ok(changed)
    }
}

impl Action {
    fn concerns<H: Host>(self, outcome: &Outcome<'_, H>) -> bool {
        match self {
            Action::Delete => outcome.is_true(),
            Action::Replace => true,
        }
    }
}

/// Collects candidates among the objects of a large bag. `is_meant` returns the number of further
/// candidates that an object counts as.
fn gather_positions<H: Host>(
    spot: &Spot<'_, H>,
    slice: &Slice,
    unpacked: &mut UnpackBuffer,
    mut is_meant: impl FnMut(Object<'_, H>) -> Option<usize>,
    (positions, weight): (&mut Vec<u64>, &mut usize),
) -> Next {
    visit_positions(spot, unpacked, |position, object| {
        if let Some(further) = is_meant(object) {
            positions.push(position);
            *weight += further;
        }
        slice.tick() || positions.len() + *weight >= BATCH
    })
}

/// Returns the cursor of a candidate before which all candidates were changed. `before` is the
/// cursor at which the search for candidates began.
fn back_to<H: Host>(
    query: &Query<H>,
    candidates: &[Candidate<'_, H>],
    at: usize,
    before: Cursor,
) -> Cursor {
    let Candidate {
        record,
        positions,
        from,
        step,
        ..
    } = &candidates[at];
    let cursor = Cursor {
        step: *step,
        ..before.clone()
    };
    if positions.is_some() {
        let from = from.unwrap_or_else(|| match query.direction(&cursor) {
            Direction::Up => 0,
            Direction::Down => Large::of(record).end(),
        });
        let at = At::Within(record.key().to_vec(), from);
        return Cursor { at, ..cursor };
    }
    let previous = at.checked_sub(1).map(|at| &candidates[at]);
    let at = match (query.step(&cursor), previous) {
        (Some(Step::Range { .. }), Some(previous)) if previous.step == *step => {
            At::Behind(previous.record.key().to_vec())
        }
        (Some(Step::Range { .. }), _) if before.step == *step => before.at,
        _ => At::Start,
    };
    Cursor { at, ..cursor }
}

impl<H: Host> Candidate<'_, H> {
    /// Returns `true` if the current record of the key is the found record.
    fn is_in(&self, current: &Rec<H>) -> bool {
        std::ptr::eq(current, self.record)
    }

    /// Returns `true` if the current object of the key is the found object.
    fn is_still(&self, current: &Rec<H>) -> bool {
        self.is_in(current) && !matches!(form(current), Form::WithCells(_))
    }
}
