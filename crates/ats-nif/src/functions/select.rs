//! Match specifications.
//!
//! A call does one slice of the work and returns what there is, together with all that the next call needs to
//! go on: the table's identifier, a reference to the compiled specification, and a position. These are
//! plain terms, so a process that stops calling, for whatever reason, leaves nothing behind; and a
//! position is all there is to a continuation, too.

use super::{readable, writable};
use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::foreign::Vm;
use crate::full_scan::Verdict;
use crate::handle::Shared;
use crate::query::{self, Caller, Compiled, Prepared};
use crate::resource::{self, ResourceRef};
use crate::scratch::{self, Results, Selecting};
use crate::vm_sink::{VmSink, make_object};
use crate::vm_term::VmTerm;
use crate::{nif, sys};
use ats::select::{At, Cursor, Progress, Selection, Slice};
use ats::{Table, TableType};
use ats_match::Outcome;
use ats_match::plan::Access;
use ats_sync::Guard;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("select_start", select_start, 3),
        nif!("select_more", select_more, 5),
        nif!("force_slices", force_slices, 1),
        nif!("explain", explain, 2),
        nif!("clear", clear, 1),
        nif!("match_spec_compile", match_spec_compile, 2),
        nif!("match_spec_by_vm", match_spec_by_vm, 1),
        nif!("is_compiled_ms", is_compiled_ms, 1),
    ]
}

/// What to do with the objects that match.
#[derive(Clone, Copy)]
pub(super) enum How {
    /// List all results; of a table with order in the order of its keys or the other way round.
    List { reverse: bool },
    /// List as above, and do so if queries must not read everything: this is how everything is read.
    Objects,
    /// List about so many.
    Chunk { most: usize, down: bool },
    /// Count those whose result is `true`.
    Count,
    /// Delete those whose result is `true`.
    Delete,
    /// Delete those whose result is `true`, and list them.
    Take,
    /// Replace them by the result.
    Replace,
    /// Count the objects that are read, and the results.
    Rows,
}

impl How {
    /// `all`, `reverse`, `objects`, `{up, N}`, `{down, N}`, `count`, `delete`, `take`, `replace` or `rows`.
    pub(super) fn of(env: Env<'_>, term: VmTerm<'_>) -> Result<Self, KnownAtom> {
        if let Some([way, most]) = term.tuple_words() {
            // SAFETY: a part of a term of this call.
            let most = unsafe { VmTerm::new(env, most.raw()) }.as_small();
            let most = most.filter(|most| *most > 0).ok_or(KnownAtom::None)?;
            return Ok(How::Chunk {
                most: most as usize,
                down: KnownAtom::Down.is(*way),
            });
        }
        Ok(match term.word() {
            word if KnownAtom::All.is(word) => How::List { reverse: false },
            word if KnownAtom::Count.is(word) => How::Count,
            word if KnownAtom::Reverse.is(word) => How::List { reverse: true },
            word if KnownAtom::Objects.is(word) => How::Objects,
            word if KnownAtom::Delete.is(word) => How::Delete,
            word if KnownAtom::Take.is(word) => How::Take,
            word if KnownAtom::Replace.is(word) => How::Replace,
            word if KnownAtom::Rows.is(word) => How::Rows,
            _ => return Err(KnownAtom::None),
        })
    }

    fn writes(self) -> bool {
        matches!(self, How::Delete | How::Take | How::Replace)
    }

    /// Whether the result is one list.
    fn lists(self) -> bool {
        matches!(self, How::List { .. } | How::Objects | How::Take)
    }

    /// Whether the operation always reads the whole table. The option `full_scan` does not apply to it.
    fn is_meant_to_be_full(self) -> bool {
        matches!(self, How::Objects | How::Rows)
    }

    /// Where to begin. A list is made from its end, so what shall come first is read last.
    pub(super) fn start(self) -> Cursor {
        match self {
            How::List { reverse: false }
            | How::Objects
            | How::Take
            | How::Chunk { down: true, .. } => Cursor::down(),
            _ => Cursor::up(),
        }
    }
}

/// A table that the caller may do this with.
pub(super) fn allowed<'g>(
    env: Env<'_>,
    table: VmTerm<'g>,
    how: How,
    guard: &'g Guard,
) -> Result<&'g Shared, KnownAtom> {
    match how.writes() {
        true => writable(env, table, guard),
        false => readable(env, table, guard),
    }
}

/// `select_start(Table, MatchSpec, How) -> Result | {Tag, Table, Compiled, Position, Result}`, where the tag is
/// `more` if there is more to do; and `done` if a chunk has too much in it, but nothing is left to do. It is `part` if
/// the slice ended among the objects of a key, which come oldest first. Then the result is `{Part, Result}`, with what
/// this slice found of this key, and the list of what was found of others. The part comes in front of what is still
/// to be found of the key, and that in front of the list. The slice that finds the last of it ends there.
///
/// So the list does not depend on where slices end: keys are in the reverse of the order in which they are read, and
/// the objects of a key in their own order.
///
/// If the result is `warn`, nothing has been done: the query reads the whole table, and the option
/// `full_scan` of the table asks for a warning. The caller logs the warning and calls again; then the query
/// is run.
fn select_start<'e>(env: Env<'e>, [table, spec, how]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let how = match How::of(env, how) {
        Ok(how) => how,
        // Whatever is wrong with the table counts more.
        Err(cause) => {
            readable(env, table, &guard)?;
            return Err(cause.into());
        }
    };
    let shared = allowed(env, table, how, &guard)?;
    let is_bag = shared.table.table_type() == TableType::Bag;
    if matches!(how, How::Replace) && is_bag {
        return Err(KnownAtom::TableType.into());
    }
    if spec.is_nil() {
        return Ok(Work::new(env, how, VmWord::NIL).result());
    }
    query::with_prepared(&shared.table, spec, |prepared, _known| {
        let is_full = prepared.query.access() == Access::Everything;
        if is_full && !how.is_meant_to_be_full() && shared.full_scan.judge()? == Verdict::WarnFirst
        {
            return Ok(KnownAtom::Warn.word());
        }
        if matches!(how, How::Replace) && !keeps_key(shared, prepared) {
            return Err(KnownAtom::None.into());
        }
        Work::new(env, how, VmWord::NIL).go_on(shared, prepared, how.start(), &guard)
    })
}

fn keeps_key(shared: &Shared, prepared: &Prepared) -> bool {
    let spec = prepared.query.program().spec();
    spec.keeps_key(shared.table.key_position())
}

/// `select_more(Table, Compiled, Position, How, Result)`, of which the last is what there is so far: goes on.
fn select_more<'e>(
    env: Env<'e>,
    [table, compiled, position, how, so_far]: [VmTerm<'e>; 5],
) -> NifResult<'e> {
    let how = How::of(env, how)?;
    let guard = ats_sync::pin();
    let shared = allowed(env, table, how, &guard)?;
    if resource::get::<Compiled>(compiled).is_none() {
        return Err(KnownAtom::None.into());
    }
    let cursor = cursor_of(env, position).ok_or(KnownAtom::None)?;
    query::with_prepared(&shared.table, compiled, |prepared, _known| {
        if matches!(how, How::Replace) && !keeps_key(shared, prepared) {
            return Err(KnownAtom::None.into());
        }
        let again = [table.word(), compiled.word()];
        Work::new(env, how, so_far.word())
            .called_with(again)
            .go_on(shared, prepared, cursor, &guard)
    })
}

/// Work on its way.
pub(super) struct Work<'e> {
    env: Env<'e>,
    how: How,
    /// Results that are already a list.
    list: VmWord<'e>,
    /// Results in the order in which they were found: of a chunk all, of the list of a bag those of one key.
    found: Vec<VmWord<'e>>,
    /// Of which key these are: the [`Slice::key`].
    key: u64,
    count: u64,
    /// Objects read.
    read: u64,
    /// The terms of what is read and of the specification, if the caller has them.
    again: Option<[VmWord<'e>; 2]>,
}

impl<'e> Work<'e> {
    pub(super) fn new(env: Env<'e>, how: How, so_far: VmWord<'e>) -> Self {
        let number = |word| VmTerm::of(env, word).as_unsigned().unwrap_or(0);
        let (read, count) = match VmTerm::of(env, so_far).tuple_words() {
            Some(&[read, count]) => (number(read), number(count)),
            _ => (0, number(so_far)),
        };
        Work {
            env,
            how,
            list: so_far,
            found: Vec::new(),
            key: 0,
            count,
            read,
            again: None,
        }
    }

    /// With these terms of what is read and of the specification, to be called with once more. References made
    /// anew for each slice are binaries to the garbage collector, which comes when there are many.
    pub(super) fn called_with(self, again: [VmWord<'e>; 2]) -> Self {
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
        guard: &Guard,
    ) -> NifResult<'e> {
        let env = self.env;
        let terms = || [shared.id.term(env), prepared.compiled.term(env)];
        self.go_on_with(&shared.table, &terms, prepared, cursor, guard)
    }

    /// As [`go_on`](Work::go_on), for objects to which another term leads: makes that and the term of the
    /// specification.
    pub(super) fn go_on_with(
        mut self,
        table: &Table<Vm>,
        terms: &dyn Fn() -> [VmWord<'e>; 2],
        prepared: &Prepared,
        mut cursor: Cursor,
        guard: &Guard,
    ) -> NifResult<'e> {
        let (env, slice) = (self.env, new_slice());
        let progress = scratch::with_selecting(|selecting| {
            self.run(table, prepared, &mut cursor, &slice, selecting, guard)
        })?;
        consume(env, &slice);
        self.read += slice.objects();
        let is_part = self.how.lists() && matches!(cursor.at, At::Within(..));
        let is_too_much = matches!(self.how, How::Chunk { most, .. } if self.found.len() > most);
        let tag = match progress {
            Progress::Done if is_too_much => KnownAtom::Done,
            Progress::Done => return Ok(self.result()),
            Progress::More if is_part => KnownAtom::Part,
            Progress::More => KnownAtom::More,
        };
        // What was found may be of the key before the one that the slice ended in.
        let mut of_key = Vec::new();
        if is_part && self.key == slice.key() {
            of_key = std::mem::take(&mut self.found);
        }
        let mut result = self.result();
        if is_part {
            result = env.tuple(&[env.list(&of_key), result]);
        }
        let [what, compiled] = self.again.unwrap_or_else(terms);
        let position = position(env, &cursor);
        Ok(env.tuple(&[tag.word(), what, compiled, position, result]))
    }

    /// Takes what was found of a bag. The objects of a key come oldest first, so they are not put before each other.
    #[inline]
    fn found_of_key(&mut self, key: u64, result: VmWord<'e>) {
        if key != self.key {
            self.key = key;
            self.list = self.env.list_before(&self.found, self.list);
            self.found.clear();
        }
        self.found.push(result);
    }

    /// What there is.
    fn result(&self) -> VmWord<'e> {
        match self.how {
            How::Chunk { .. } => self.env.list(&self.found),
            how if how.lists() => self.env.list_before(&self.found, self.list),
            How::Rows => (self.env).tuple(&[self.env.uint(self.read), self.env.uint(self.count)]),
            _ => self.env.uint(self.count),
        }
    }

    /// Does a slice.
    fn run(
        &mut self,
        table: &Table<Vm>,
        prepared: &Prepared,
        cursor: &mut Cursor,
        slice: &Slice,
        selecting: &mut Selecting<VmWord<'e>>,
        guard: &Guard,
    ) -> Result<Progress, NoReply> {
        let Selecting { runner, results } = selecting;
        let selection = &mut Selection {
            query: &*prepared.query,
            cursor,
            runner,
            environment: &Caller(self.env),
            slice,
            guard,
        };
        let (env, is_bag) = (self.env, table.table_type().is_bag());
        let changed = match self.how {
            How::List { .. } | How::Objects if !is_bag => {
                return Ok(table.select(selection, &mut |outcome| {
                    self.list = env.cons(results.build(env, outcome), self.list);
                    ControlFlow::Continue(())
                }));
            }
            How::List { .. } | How::Objects => {
                return Ok(table.select(selection, &mut |outcome| {
                    self.found_of_key(slice.key(), results.build(env, outcome));
                    ControlFlow::Continue(())
                }));
            }
            How::Chunk { most, .. } => {
                return Ok(table.select(selection, &mut |outcome| {
                    self.found.push(results.build(env, outcome));
                    match self.found.len() >= most {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                }));
            }
            How::Count => {
                return Ok(table.select(selection, &mut |outcome| {
                    self.count += u64::from(outcome.is_true());
                    ControlFlow::Continue(())
                }));
            }
            How::Rows => {
                return Ok(table.select(selection, &mut |_| {
                    self.count += 1;
                    ControlFlow::Continue(())
                }));
            }
            How::Delete => table.select_delete(selection),
            How::Take => table.select_take(selection, &mut |object| {
                let object = make_object(env, object, &mut results.scratch);
                match is_bag {
                    true => self.found_of_key(slice.key(), object),
                    false => self.list = env.cons(object, self.list),
                }
            }),
            How::Replace => table.select_replace(selection)?,
        };
        self.count += changed.objects as u64;
        Ok(changed.progress)
    }
}

impl<'e> Results<VmWord<'e>> {
    #[inline]
    fn build(&mut self, env: Env<'e>, outcome: &Outcome<'_, Vm>) -> VmWord<'e> {
        match outcome.as_object() {
            Some(object) => make_object(env, object, &mut self.scratch),
            None => outcome.write(&mut VmSink::new(env), &mut self.writer),
        }
    }
}

/// How much work slices are forced to end after; 0 if they end when their time is over.
static FORCED: AtomicU32 = AtomicU32::new(0);

fn new_slice() -> Slice {
    match FORCED.load(Ordering::Relaxed) {
        0 => Slice::new(),
        ticks => Slice::of_work(ticks - 1),
    }
}

/// `force_slices(Ticks)`, for tests: from now on slices end after so much work, see [`Slice::of_work`]. 0 undoes that.
fn force_slices<'e>(_env: Env<'e>, [ticks]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let ticks = ticks.as_small().ok_or(KnownAtom::None)?;
    let ticks = u32::try_from(ticks).map_err(|_| KnownAtom::None)?;
    FORCED.store(ticks, Ordering::Relaxed);
    Ok(KnownAtom::True.word())
}

/// Tells the VM how much of the caller's time was used: all of it is about two slices.
fn consume(env: Env<'_>, slice: &Slice) {
    let percent = (slice.percent() / 2).min(100);
    if percent > 0 {
        // SAFETY: the environment of this call.
        unsafe { sys::enif_consume_timeslice(env.raw(), percent as i32) };
    }
}

/// A cursor as a term: `{up | down, Step, start | Key | {Key, N} | N}`.
fn position<'e>(env: Env<'e>, cursor: &Cursor) -> VmWord<'e> {
    let way = if cursor.down {
        KnownAtom::Down
    } else {
        KnownAtom::Up
    };
    let at = match &cursor.at {
        At::Start => KnownAtom::Start.word(),
        At::Behind(key) => env.binary(key),
        At::Within(key, position) => env.tuple(&[env.binary(key), env.uint(*position)]),
        At::Between(place) => env.uint(*place),
    };
    env.tuple(&[way.word(), env.uint(cursor.step as u64), at])
}

/// The cursor that a term is.
pub(super) fn cursor_of<'e>(env: Env<'e>, term: VmTerm<'e>) -> Option<Cursor> {
    let &[way, step, at] = term.tuple_words()? else {
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
        down: match way {
            way if KnownAtom::Down.is(way) => true,
            way if KnownAtom::Up.is(way) => false,
            _ => return None,
        },
        step: usize::try_from(VmTerm::of(env, step).as_unsigned()?).ok()?,
        at,
    })
}

/// `explain(Table, MatchSpec) -> {Access, Plan, Known, Nanoseconds, Compiled}`: what will be read and, as a
/// boolean, whether the specification was known, with the time that it took to find that out.
fn explain<'e>(env: Env<'e>, [table, spec]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let begun = Instant::now();
    query::with_prepared(&shared.table, spec, |prepared, known| {
        let nanos = begun.elapsed().as_nanos();
        let access = match prepared.query.access() {
            Access::Nothing => KnownAtom::Nothing,
            Access::Points => KnownAtom::Points,
            Access::Ranges => KnownAtom::Ranges,
            Access::Everything => KnownAtom::Everything,
        };
        Ok(env.tuple(&[
            access.word(),
            env.binary(prepared.query.show_plan().as_bytes()),
            super::boolean(known),
            env.uint(u64::try_from(nanos).unwrap_or(u64::MAX)),
            prepared.compiled.term(env),
        ]))
    })
}

/// `clear(Table) -> N`: deletes all objects, as one step, and counts them.
fn clear<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let objects = writable(env, table, &guard)?.table.clear();
    Ok(env.uint(objects as u64))
}

/// `match_spec_compile(MatchSpec, CompiledByVm) -> Reference`.
fn match_spec_compile<'e>(env: Env<'e>, [spec, by_vm]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let compiled = Compiled::new(spec)?.with_vm_reference(by_vm.word());
    Ok(ResourceRef::new(compiled).term(env))
}

/// `match_spec_by_vm(Reference) -> CompiledByVm`.
fn match_spec_by_vm<'e>(env: Env<'e>, [compiled]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let compiled = resource::get::<Compiled>(compiled).ok_or(KnownAtom::None)?;
    compiled.vm_reference(env).ok_or(KnownAtom::None.into())
}

fn is_compiled_ms<'e>(_env: Env<'e>, [term]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    Ok(super::boolean(resource::get::<Compiled>(term).is_some()))
}
