//! Queries in slices.
//!
//! A call does one slice of the work and returns its results and the arguments of the next call:
//! the table's identifier, a reference to the compiled specification, and a position. These are
//! plain terms, so a process that stops calling for any reason leaves nothing behind. A
//! continuation is such a position, too.

use super::access::{find_readable, find_writable};
use super::arguments::{direction, direction_word};
use super::reading::SliceSource;
use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::handle::Shared;
use crate::process;
use crate::query::{Caller, Prepared};
use crate::scratch::{self, Results, SelectBuffers};
use crate::vm_host::VmHost;
use crate::vm_sink::{VmSink, make_object};
use crate::vm_term::VmTerm;
use ats::terms::select::{At, Cursor, Progress, Selection, Slice};
use ats::terms::{Direction, Table, TableReadPoint};
use ats_match::Outcome;
use ats_sync::Guard;
use std::ops::ControlFlow;

/// Number of steps that a query may take for one object on a normal scheduler: about half a
/// millisecond. Longer work moves to a dirty scheduler.
const OBJECT_STEPS: usize = 1 << 16;

/// Largest result in words that a normal scheduler builds.
const RESULT_WORDS: usize = 1 << 16;

/// Use of the matching objects.
#[derive(Clone, Copy)]
pub(super) enum Operation {
    /// List all results, in this direction if the table has order.
    List(Direction),
    /// List like `List`, and read the whole table even if `full_scan` refuses that.
    Objects,
    /// List about this many results.
    Chunk { most: usize, direction: Direction },
    /// List all results if one slice finds them and there are at most this many. So no snapshot is
    /// kept.
    Few { most: usize, of_all: bool },
    /// Count objects whose result is `true`.
    Count,
    /// Delete objects whose result is `true`.
    Delete,
    /// Delete objects whose result is `true`, and list them.
    Take,
    /// Replace objects by their results.
    Replace,
    /// Count the objects that are read, and the results.
    Rows,
}

impl Operation {
    /// Parses `up`, `down`, `objects`, `{up, N}`, `{down, N}`, `{objects, N}`, `{query, N}`,
    /// `count`, `delete`, `take`, `replace` or `rows`.
    pub(super) fn of(env: Env<'_>, term: VmTerm<'_>) -> Result<Self, KnownAtom> {
        if let Some([word, most]) = term.tuple_words() {
            let most = VmTerm::of(env, *most).as_small();
            let most = most.filter(|most| *most > 0).ok_or(KnownAtom::None)? as usize;
            let of_all = KnownAtom::Objects.is(*word);
            if of_all || KnownAtom::Query.is(*word) {
                return Ok(Operation::Few { most, of_all });
            }
            let direction = direction(*word).ok_or(KnownAtom::None)?;
            return Ok(Operation::Chunk { most, direction });
        }
        Ok(match term.word() {
            word if KnownAtom::Count.is(word) => Operation::Count,
            word if KnownAtom::Objects.is(word) => Operation::Objects,
            word if KnownAtom::Delete.is(word) => Operation::Delete,
            word if KnownAtom::Take.is(word) => Operation::Take,
            word if KnownAtom::Replace.is(word) => Operation::Replace,
            word if KnownAtom::Rows.is(word) => Operation::Rows,
            word => Operation::List(direction(word).ok_or(KnownAtom::None)?),
        })
    }

    /// Returns `true` if the operation reads one chunk, and the caller decides about the next.
    pub(super) fn is_chunk(self) -> bool {
        matches!(self, Operation::Chunk { .. })
    }

    /// Returns `true` if the operation reads all of its range in one query, and changes nothing.
    fn reads_all(self) -> bool {
        matches!(
            self,
            Operation::List(_)
                | Operation::Objects
                | Operation::Few { .. }
                | Operation::Count
                | Operation::Rows
        )
    }

    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            Operation::Delete | Operation::Take | Operation::Replace
        )
    }

    /// Returns `true` if the operation gives one result, or chunks of it, or changes the objects it
    /// finds.
    pub(super) fn has_read_point(self) -> bool {
        self.is_chunk() || self.reads_all() || self.writes()
    }

    /// Returns `true` if the result is one list.
    fn lists(self) -> bool {
        matches!(
            self,
            Operation::List(_) | Operation::Objects | Operation::Take
        )
    }

    /// Returns `true` if the operation always reads the whole table. The option `full_scan` does
    /// not apply to it.
    pub(super) fn is_meant_to_be_full(self) -> bool {
        matches!(
            self,
            Operation::Objects | Operation::Few { of_all: true, .. } | Operation::Rows
        )
    }

    /// Returns the start position. A list is built from its end, so its first result is read last.
    pub(super) fn start(self) -> Cursor {
        Cursor::new(match self {
            Operation::List(Direction::Up) | Operation::Objects | Operation::Take => {
                Direction::Down
            }
            Operation::Chunk { direction, .. } => direction,
            _ => Direction::Up,
        })
    }
}

/// Returns `true` if a query must read a snapshot: it reads several keys of a table in memory, and
/// [has a read point](Operation::has_read_point). A single key of a bag may have so many objects
/// that they are not changed in one step.
pub(super) fn is_of_one_moment(shared: &Shared, prepared: &Prepared, operation: Operation) -> bool {
    let is_one_step = prepared.query.reads_one_key()
        && !(operation.writes() && shared.table.table_type().is_bag());
    operation.has_read_point() && !shared.table.has_byte_store() && !is_one_step
}

/// Resolves a table on which the caller may run this operation.
pub(super) fn find_for<'g>(
    env: Env<'_>,
    table: VmTerm<'g>,
    operation: Operation,
    guard: &'g Guard,
) -> Result<&'g Shared, KnownAtom> {
    if operation.writes() {
        find_writable(env, table, guard)
    } else {
        find_readable(env, table, guard)
    }
}

/// Runs the first slice.
pub(super) fn start<'e>(
    env: Env<'e>,
    operation: Operation,
    shared: &Shared,
    prepared: &Prepared,
    source: SliceSource<'_>,
    guard: &Guard,
) -> NifResult<'e> {
    let work = Work::new(env, operation, VmWord::NIL);
    work.go_on(shared, prepared, operation.start(), source, guard)
}

/// A query that is being run.
pub(super) struct Work<'e> {
    env: Env<'e>,
    operation: Operation,
    /// Results that are already a list.
    list: VmWord<'e>,
    /// Results in the order in which they were found: of a chunk all, of an unordered bag's list
    /// those of one key.
    found: Vec<VmWord<'e>>,
    /// The [`Slice::key`] of these results.
    key: u64,
    count: u64,
    /// Number of objects read.
    read: u64,
    /// The terms of the source and of the specification, if the caller has them.
    again: Option<[VmWord<'e>; 2]>,
}

impl<'e> Work<'e> {
    pub(super) fn new(env: Env<'e>, operation: Operation, so_far: VmWord<'e>) -> Self {
        let number = |word| VmTerm::of(env, word).as_unsigned().unwrap_or(0);
        let (read, count) = match VmTerm::of(env, so_far).tuple_words() {
            Some(&[read, count]) => (number(read), number(count)),
            _ => (0, number(so_far)),
        };
        Work {
            env,
            operation,
            list: so_far,
            found: Vec::new(),
            key: 0,
            count,
            read,
            again: None,
        }
    }

    /// Sets the terms of the source and of the specification for the next call. A new reference in
    /// each slice would be a binary to the garbage collector, which runs when there are many.
    pub(super) fn with_call_terms(self, again: [VmWord<'e>; 2]) -> Self {
        Work {
            again: Some(again),
            ..self
        }
    }

    pub(super) fn go_on(
        self,
        shared: &Shared,
        prepared: &Prepared,
        cursor: Cursor,
        source: SliceSource<'_>,
        guard: &Guard,
    ) -> NifResult<'e> {
        let (env, is_chunk) = (self.env, self.operation.is_chunk());
        let terms = |source: SliceSource<'_>| {
            let what = source.keep(env, shared, is_chunk);
            let what = what.unwrap_or_else(|| shared.id.term(env));
            [what, prepared.term(env)]
        };
        self.go_on_with(&shared.table, &terms, prepared, cursor, source, guard)
    }

    /// Continues like [`go_on`](Work::go_on), for objects reached through another term: makes that
    /// term and that of the specification.
    pub(super) fn go_on_with(
        mut self,
        table: &Table<VmHost>,
        terms: &dyn Fn(SliceSource<'_>) -> [VmWord<'e>; 2],
        prepared: &Prepared,
        mut cursor: Cursor,
        source: SliceSource<'_>,
        guard: &Guard,
    ) -> NifResult<'e> {
        let (env, slice) = (self.env, Slice::new());
        #[cfg(feature = "forcing")]
        let slice = super::forcing::forced_slice().unwrap_or(slice);
        let slice = if process::on_dirty_scheduler() {
            slice
        } else {
            slice.with_limit(OBJECT_STEPS)
        };
        let progress = scratch::with_select_buffers(|selecting| {
            let reading = (prepared, source.get(guard)?, guard);
            self.run(table, reading, &mut cursor, &slice, selecting)
        })?;
        // The caller's time slice is about two slices of ours.
        process::consume(env, u128::from(slice.percent() / 2));
        self.read += slice.objects();
        let is_part = self.operation.lists()
            && !table.table_type().is_ordered()
            && matches!(cursor.at, At::Within(..));
        let is_too_much =
            matches!(self.operation, Operation::Chunk { most, .. } if self.found.len() > most);
        if let Operation::Few { most, .. } = self.operation
            && (self.found.len() > most || !matches!(progress, Progress::Done))
        {
            return Ok(KnownAtom::More.word());
        }
        let tag = match progress {
            Progress::Done if is_too_much => KnownAtom::Done,
            Progress::Done => {
                source.end();
                return Ok(self.result());
            }
            Progress::More if is_part => KnownAtom::Part,
            Progress::More => KnownAtom::More,
            Progress::Pending => KnownAtom::Pending,
        };
        // The last result may belong to the key before the one in which the slice ended.
        let mut of_key = Vec::new();
        if is_part && self.key == slice.key() {
            of_key = std::mem::take(&mut self.found);
        }
        let mut result = self.result();
        if is_part {
            result = env.tuple(&[env.list(&of_key), result]);
        }
        let [what, compiled] = self.again.unwrap_or_else(|| terms(source));
        let position = position(env, &cursor);
        Ok(env.tuple(&[tag.word(), what, compiled, position, result]))
    }

    /// Adds a result of an unordered bag. The objects of a key come oldest first, so they are not
    /// prepended to each other.
    #[inline]
    fn add_to_key(&mut self, key: u64, result: VmWord<'e>) {
        if key != self.key {
            self.key = key;
            self.list = self.env.list_before(&self.found, self.list);
            self.found.clear();
        }
        self.found.push(result);
    }

    /// Returns the result so far.
    pub(super) fn result(&self) -> VmWord<'e> {
        match self.operation {
            Operation::Chunk { .. } | Operation::Few { .. } => self.env.list(&self.found),
            operation if operation.lists() => self.env.list_before(&self.found, self.list),
            Operation::Rows => {
                (self.env).tuple(&[self.env.uint(self.read), self.env.uint(self.count)])
            }
            _ => self.env.uint(self.count),
        }
    }

    /// Runs a slice of the query, and adds its results to those of earlier slices.
    fn run(
        &mut self,
        table: &Table<VmHost>,
        (prepared, read_point, guard): (&Prepared, Option<&TableReadPoint<VmHost>>, &Guard),
        cursor: &mut Cursor,
        slice: &Slice,
        selecting: &mut SelectBuffers<VmWord<'e>>,
    ) -> Result<Progress, NoReply> {
        let SelectBuffers { runner, results } = selecting;
        let selection = &mut Selection {
            query: &*prepared.query,
            cursor,
            runner,
            environment: &Caller(self.env),
            slice,
            guard,
            read_point,
        };
        let table_type = table.table_type();
        let (env, by_key) = (self.env, table_type.is_bag() && !table_type.is_ordered());
        let changed = match self.operation {
            Operation::List(_) | Operation::Objects if !by_key => {
                return results.build_each(table, selection, &mut |result| {
                    self.list = env.cons(result, self.list);
                    ControlFlow::Continue(())
                });
            }
            Operation::List(_) | Operation::Objects => {
                return results.build_each(table, selection, &mut |result| {
                    self.add_to_key(slice.key(), result);
                    ControlFlow::Continue(())
                });
            }
            Operation::Chunk { most, .. } => {
                return results.build_each(table, selection, &mut |result| {
                    self.found.push(result);
                    if self.found.len() >= most {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                });
            }
            Operation::Few { most, .. } => {
                return results.build_each(table, selection, &mut |result| {
                    self.found.push(result);
                    if self.found.len() > most {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                });
            }
            Operation::Count => {
                return Ok(table.select(selection, &mut |outcome| {
                    self.count += u64::from(outcome.is_true());
                    ControlFlow::Continue(())
                })?);
            }
            Operation::Rows => {
                return Ok(table.select(selection, &mut |_| {
                    self.count += 1;
                    ControlFlow::Continue(())
                })?);
            }
            Operation::Delete => table.select_delete(selection)?,
            Operation::Take => table.select_take(selection, &mut |object| {
                let object = make_object(env, object, &mut results.scratch);
                if by_key {
                    self.add_to_key(slice.key(), object);
                } else {
                    self.list = env.cons(object, self.list);
                }
            })?,
            Operation::Replace => table.select_replace(selection)?,
        };
        self.count += changed.objects as u64;
        Ok(changed.progress)
    }
}

impl<'e> Results<VmWord<'e>> {
    /// Builds the result for each object that matches. A normal scheduler builds no large one.
    #[inline]
    fn build_each(
        &mut self,
        table: &Table<VmHost>,
        selection: &mut Selection<'_, VmHost, Caller<'e>>,
        each: &mut impl FnMut(VmWord<'e>) -> ControlFlow<()>,
    ) -> Result<Progress, NoReply> {
        let env = selection.environment.0;
        let most = if process::on_dirty_scheduler() {
            usize::MAX
        } else {
            RESULT_WORDS
        };
        let mut is_too_large = false;
        let progress = table.select(selection, &mut |outcome| {
            if outcome.is_larger(most) {
                is_too_large = true;
                return ControlFlow::Break(());
            }
            each(self.build(env, outcome))
        })?;
        if is_too_large {
            Err(NoReply::DirtyCpu)
        } else {
            Ok(progress)
        }
    }

    #[inline]
    fn build(&mut self, env: Env<'e>, outcome: &Outcome<'_, VmHost>) -> VmWord<'e> {
        match outcome.as_object() {
            Some(object) => make_object(env, object, &mut self.scratch),
            None => outcome.write(&mut VmSink::new(env), &mut self.writer),
        }
    }
}

/// Builds the term of a cursor: `{up | down, Step, start | Key | {Key, N} | N}`.
fn position<'e>(env: Env<'e>, cursor: &Cursor) -> VmWord<'e> {
    let at = match &cursor.at {
        At::Start => KnownAtom::Start.word(),
        At::Behind(key) => env.binary(key),
        At::Within(key, position) => env.tuple(&[env.binary(key), env.uint(*position)]),
        At::Between(position) => env.uint(*position),
    };
    env.tuple(&[
        direction_word(cursor.direction),
        env.uint(cursor.step as u64),
        at,
    ])
}

/// Reads a cursor from a term.
pub(super) fn cursor_of<'e>(env: Env<'e>, term: VmTerm<'e>) -> Option<Cursor> {
    let &[word, step, at] = term.tuple_words()? else {
        return None;
    };
    let at = VmTerm::of(env, at);
    let at = match at.tuple_words() {
        Some(&[key, position]) => At::Within(
            VmTerm::of(env, key).as_bytes()?.to_vec(),
            VmTerm::of(env, position).as_unsigned()?,
        ),
        Some(_) => return None,
        None if KnownAtom::Start.is(at.word()) => At::Start,
        None => match at.as_bytes() {
            Some(key) => At::Behind(key.to_vec()),
            None => At::Between(at.as_unsigned()?),
        },
    };
    Some(Cursor {
        direction: direction(word)?,
        step: usize::try_from(VmTerm::of(env, step).as_unsigned()?).ok()?,
        at,
    })
}
