//! Programs that merge the values of a table on disk: their inputs and results.

use super::access::{find_open_table, is_snapshot, on_dirty_io};
use super::read::with_value;
use super::terms::{check_length, record_term, result_term, size, value_bytes};
use crate::atoms::{self, KnownAtom};
use crate::call::NifResult;
use crate::env::{Env, VmWord};
use crate::etf::Etf;
use crate::functions::access::{find_readable, find_table};
use crate::functions::tables::{Term, one_of};
use crate::vm_term::VmTerm;
use crate::{nif, process, sys};
use ats::terms::Error;
use ats::terms::program_merge::{Program, ProgramMerge, merged_value};
use ats_term::etf;
use std::collections::BTreeMap;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_program", disk_program, 1),
        nif!("disk_pending", disk_pending, 1),
        nif!("disk_resolve", disk_resolve, 2),
        nif!("disk_take_noted", disk_take_noted, 2),
        nif!("disk_watch", disk_watch, 2),
        nif!("disk_gate", disk_gate, 2),
        nif!("disk_set_program", disk_set_program, 3),
    ]
}

/// `disk_program(Table)`: `{module, Name, Version, Id}`, the program that merges the values of a
/// table, and a unique number of the table; `none` without such a program.
fn disk_program<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_table(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
    let Some(program) = opened.program() else {
        return Ok(KnownAtom::None.word());
    };
    let [module, version] = program_words(env, program);
    let id = env.uint(program.id());
    Ok(env.tuple(&[KnownAtom::Module.word(), module, version, id]))
}

/// Returns the name and the version of a program that merges.
pub(super) fn program_words<'e>(env: Env<'e>, program: &ProgramMerge) -> [VmWord<'e>; 2] {
    let program = program.program();
    let name = name_word(env, &program.name);
    [name, env.uint(u64::from(program.version))]
}

/// Builds the name of a program, a term of atoms and tuples.
fn name_word<'e>(env: Env<'e>, name: &ats_term::Term) -> VmWord<'e> {
    match name.as_tuple() {
        Some(names) => {
            let words: Vec<_> = names.iter().map(|name| name_word(env, name)).collect();
            env.tuple(&words)
        }
        None => {
            let atom = name.as_atom().expect("a name is of atoms and tuples");
            atoms::of_text(env, atom.as_str()).expect("it was the name of an atom")
        }
    }
}

/// Reads the version of a program.
pub(super) fn version_of(word: VmTerm<'_>) -> Result<u32, KnownAtom> {
    let version = size(word).and_then(|version| u32::try_from(version).ok());
    version.ok_or(KnownAtom::None)
}

/// `disk_pending(Table)`: some pending keys of a snapshot, starting with the one that a read met
/// last, as a list of records `{Key, Value}`; `none` if the table is no snapshot.
fn disk_pending<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let may_block = on_dirty_io()?;
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let Some(snapshot) = shared.pending_snapshot.clone() else {
        return Ok(KnownAtom::None.word());
    };
    drop(guard);
    let records = snapshot.next_window(Some(may_block));
    let records = records.map_err(Error::from)?;
    let words: Vec<_> = records
        .iter()
        .map(|(key, value)| record_term(env, key, value))
        .collect();
    Ok(env.list(&words))
}

/// `disk_resolve(Snapshot, [{Key, Value | missing}])`: sets the values of pending keys of a
/// snapshot, and discards those set before.
fn disk_resolve<'e>(env: Env<'e>, [table, values]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let snapshot = shared
        .pending_snapshot
        .as_ref()
        .ok_or(KnownAtom::TableType)?;
    let (mut list, mut known, mut bytes) = (values, BTreeMap::new(), 0);
    while let Some((pair, rest)) = list.as_cons() {
        let Some(&[key, value]) = pair.tuple_words() else {
            return Err(KnownAtom::None.into());
        };
        let key = VmTerm::of(env, key);
        let value = value_bytes(VmTerm::of(env, value))?;
        let key = key.as_bytes().ok_or(KnownAtom::None)?;
        bytes += key.len() + value.map_or(0, <[u8]>::len);
        check_length(bytes)?;
        known.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        list = rest;
    }
    snapshot.resolve(known);
    Ok(KnownAtom::True.word())
}

/// `disk_take_noted(Table, N)`: takes at most `N` noted keys, of not many bytes, and returns those
/// that are pending, as records like those of `disk_pending`.
fn disk_take_noted<'e>(env: Env<'e>, [table, n]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    /// Limit of the memory used, which may be exceeded by one key.
    const MOST_BYTES: usize = 4 << 20;
    on_dirty_io()?;
    let most = size(n).ok_or(KnownAtom::None)?;
    if is_snapshot(env, table)? {
        // A snapshot has no noted keys: they belong to the live table.
        return Ok(env.list(&[]));
    }
    let opened = find_open_table(env, table)?;
    let program = opened.program().ok_or(KnownAtom::TableType)?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while found.len() < most && bytes < MOST_BYTES {
        let Some(key) = program.take_noted(1).pop() else {
            break;
        };
        let pending = with_value(&opened, &key, |value| {
            merged_value(value).is_none().then(|| {
                bytes += key.len() + value.len();
                record_term(env, &key, value)
            })
        });
        // The read has noted the key again; without this, a key that cannot be merged would recur
        // for ever.
        program.forget(&key);
        found.extend(pending?.flatten());
    }
    Ok(env.list(&found))
}

/// `disk_watch(Table, Pid)`: has `{pending, Table}` sent to a process when keys are pending.
fn disk_watch<'e>(env: Env<'e>, [table, pid]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_table(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
    let program = opened.program().ok_or(KnownAtom::TableType)?;
    if !pid.is_local_pid() {
        return Err(KnownAtom::None.into());
    }
    let (pid, id) = (pid.word().raw(), shared.id.clone());
    program.watch(Box::new(move || {
        // A scheduler can send only through the environment of its call, which is unknown here.
        process::is_own_thread()
            && process::tell(pid, |env| {
                env.tuple(&[KnownAtom::Pending.word(), id.term(env)])
            })
    }));
    Ok(KnownAtom::True.word())
}

/// `disk_gate(Table, open | closed)`: makes `disk_operand` refuse writes, or allow them again. No
/// such write is under way when this returns.
fn disk_gate<'e>(env: Env<'e>, [table, gate]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    on_dirty_io()?;
    let gates = [(KnownAtom::Open, false), (KnownAtom::Closed, true)];
    let is_closed = one_of(Term(gate.word()), &gates)?;
    let opened = find_open_table(env, table)?;
    let program = opened.program().ok_or(KnownAtom::TableType)?;
    program.close_gate(is_closed);
    Ok(KnownAtom::True.word())
}

/// `disk_set_program(Table, Name, Version)`: replaces the program that merges values: `ok`, or
/// `{error, Cause, Text}`.
fn disk_set_program<'e>(env: Env<'e>, [table, name, version]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    on_dirty_io()?;
    let name = etf::decode(Etf::of(name.word()).bytes(), etf::Options::TRUSTED);
    let program = Program {
        name: name.map_err(|_| KnownAtom::None)?,
        version: version_of(version)?,
    };
    let opened = find_open_table(env, table)?;
    let merge = opened.program().ok_or(KnownAtom::TableType)?;
    Ok(result_term(env, opened.set_program(merge, program)))
}
