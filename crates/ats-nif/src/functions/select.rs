//! Match specifications.

use super::access::{check_readable, find_readable, find_writable};
use super::reading::{self, Reading, SliceSource};
use super::slices::{Operation, Work, cursor_of, find_for, is_of_one_moment, start};
use crate::atoms::{KnownAtom, boolean};
use crate::call::NifResult;
use crate::env::{Env, VmWord};
use crate::full_scan::Verdict;
use crate::handle::Shared;
use crate::query::{self, Compiled, Prepared};
use crate::resource::{self, ResourceRef};
use crate::vm_term::VmTerm;
use crate::{nif, spec_shapes, sys};
use ats_match::plan::Access;
use std::time::Instant;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("select_start", select_start, 3),
        nif!("select_more", select_more, 5),
        nif!("table_of_snapshot", table_of_snapshot, 1),
        nif!("explain", explain, 2),
        nif!("match_spec_compile", match_spec_compile, 2),
        nif!("match_spec_by_vm", match_spec_by_vm, 1),
        nif!("is_compiled_ms", is_compiled_ms, 1),
    ]
}

/// `select_start(Table, MatchSpec, Operation) -> Result | {Tag, Table, Compiled, Position,
/// Result}`, where the tag is `more` if work is left; `done` if a chunk is too large but no work is
/// left; and `part` if the slice ended among the objects of a key, which come oldest first. With
/// `part` the result is `{Part, Result}`: the objects of this key found so far, and the list of
/// those of other keys. The remaining objects of the key go behind the part, and both in front of
/// the list. The slice that finds the last of them ends there.
///
/// So the list does not depend on the ends of slices: keys are in the reverse of the order in which
/// they are read, and the objects of a key in their own order.
///
/// The answer is `more` alone if `{objects, N}` or `{query, N}` finds more than N results, or does
/// not finish in a slice. `{objects, N}` reads the whole table despite the option `full_scan`.
///
/// The result `warn` means that the query would read the whole table, and that the option
/// `full_scan` asks for a warning. The caller logs it and calls again; then the query runs.
fn select_start<'e>(env: Env<'e>, [table, spec, operation]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let operation = match Operation::of(env, operation) {
        Ok(operation) => operation,
        // Errors of the table take precedence.
        Err(cause) => {
            find_readable(env, table, &guard)?;
            return Err(cause.into());
        }
    };
    let shared = find_for(env, table, operation, &guard)?;
    let is_distinct = shared.table.table_type().is_distinct_bag();
    if matches!(operation, Operation::Replace) && is_distinct {
        return Err(KnownAtom::TableType.into());
    }
    if spec.is_nil() {
        return Ok(Work::new(env, operation, VmWord::NIL).result());
    }
    let mut later = None;
    let result = spec_shapes::with_prepared(&shared.table, spec, |prepared| {
        let is_full = prepared.query.access() == Access::Everything;
        if is_full
            && !operation.is_meant_to_be_full()
            && shared.full_scan.judge()? == Verdict::WarnFirst
        {
            return Ok(KnownAtom::Warn.word());
        }
        if matches!(operation, Operation::Replace) && !keeps_key(shared, prepared) {
            return Err(KnownAtom::None.into());
        }
        if !is_of_one_moment(shared, prepared, operation) {
            let result = start(env, operation, shared, prepared, SliceSource::None, &guard)?;
            if !is_part_of_key(env, shared, operation, result) {
                return Ok(result);
            }
        }
        // A query must begin on a thread that is not pinned.
        later = Some((shared.to_arc(), prepared.clone()));
        Ok(VmWord::NIL)
    })?;
    let Some((shared, prepared)) = later else {
        return Ok(result);
    };
    drop(guard);
    let source = reading::begin(&shared)?;
    start(env, operation, &shared, &prepared, source, &ats_sync::pin())
}

/// Returns `true` if a slice has read only some objects of a key. A single slice reads them at one
/// moment, several do not.
fn is_part_of_key(env: Env<'_>, shared: &Shared, operation: Operation, result: VmWord<'_>) -> bool {
    let table = &shared.table;
    let is_more = || VmTerm::of(env, result).tuple_words().is_some();
    operation.has_read_point()
        && table.table_type().is_bag()
        && !table.has_byte_store()
        && is_more()
}

fn keeps_key(shared: &Shared, prepared: &Prepared) -> bool {
    let spec = prepared.query.program().spec();
    spec.keeps_key(shared.table.key_position())
}

/// `select_more(Table, Compiled, Position, Operation, Result)`, continues a query; `Result` is the
/// result so far. `Table` is the snapshot that the query reads, if it reads one.
fn select_more<'e>(
    env: Env<'e>,
    [table, compiled, position, operation, so_far]: [VmTerm<'e>; 5],
) -> NifResult<'e> {
    let operation = Operation::of(env, operation)?;
    let guard = ats_sync::pin();
    let reading = resource::get::<Reading>(table);
    let shared = match reading {
        // The result holds objects that are in no table any more: a take that has begun is
        // finished, even if the caller may no longer write.
        Some(reading) if matches!(operation, Operation::Take) => {
            reading.id.get(&guard).ok_or(KnownAtom::Id)?
        }
        Some(reading) if operation.writes() => {
            find_writable(env, VmTerm::of(env, reading.id.term(env)), &guard)?
        }
        Some(reading) => check_readable(env, reading.id.get(&guard).ok_or(KnownAtom::Id)?, &guard)?,
        None => find_for(env, table, operation, &guard)?,
    };
    if resource::get::<Compiled>(compiled).is_none() {
        return Err(KnownAtom::None.into());
    }
    let cursor = cursor_of(env, position).ok_or(KnownAtom::None)?;
    spec_shapes::with_prepared(&shared.table, compiled, |prepared| {
        if matches!(operation, Operation::Replace) && !keeps_key(shared, prepared) {
            return Err(KnownAtom::None.into());
        }
        let again = [table.word(), compiled.word()];
        let work = Work::new(env, operation, so_far.word()).with_call_terms(again);
        let Some(reading) = reading else {
            return work.go_on(shared, prepared, cursor, SliceSource::None, &guard);
        };
        if operation.writes() {
            let (table, source) = (&shared.table, SliceSource::Changed(reading));
            return work.go_on_with(table, &|_| again, prepared, cursor, source, &guard);
        }
        if operation.is_chunk() {
            reading.await_next_chunk();
        }
        let (table, source) = (&*reading.snapshot, SliceSource::Kept(reading));
        work.go_on_with(table, &|_| again, prepared, cursor, source, &guard)
    })
}

/// `table_of_snapshot(Term)`: the table whose snapshot a query reads, or `none`.
fn table_of_snapshot<'e>(env: Env<'e>, [term]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let reading = resource::get::<Reading>(term);
    Ok(reading.map_or(KnownAtom::None.word(), |reading| reading.id.term(env)))
}

/// `explain(Table, MatchSpec) -> {Access, Plan, Known, Nanoseconds, Compiled}`: the plan of the
/// reads; `Known` is `true` if the specification was cached, and `Nanoseconds` is the time of the
/// lookup.
fn explain<'e>(env: Env<'e>, [table, spec]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let begun = Instant::now();
    query::with_known(&shared.table, spec, |prepared, known| {
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
            boolean(known),
            env.uint(u64::try_from(nanos).unwrap_or(u64::MAX)),
            prepared.term(env),
        ]))
    })
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
    Ok(boolean(resource::get::<Compiled>(term).is_some()))
}
