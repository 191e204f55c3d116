//! Operations on closed tables.

use super::access::on_dirty_io;
use super::terms::{failure_term, path, read_optional, size};
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::disk::{DescriptionHint, Failure, Side, copy, destroy, rename, repair};
use crate::env::{Env, VmWord};
use crate::functions::tables::{Term, table_type};
use crate::vm_term::VmTerm;
use crate::{nif, sys};
use std::os::unix::ffi::OsStrExt;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_destroy", disk_destroy, 1),
        nif!("disk_rename", disk_rename, 2),
        nif!("disk_copy", disk_copy, 2),
        nif!("disk_repair", disk_repair, 2),
    ]
}

/// `disk_destroy(Directory)`: removes a table: `{ok, Names}` with the files that stay.
fn disk_destroy<'e>(env: Env<'e>, [directory]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    Ok(match destroy(path(directory)?) {
        Ok(names) => {
            let names = names.iter().map(|name| env.binary(name.as_bytes()));
            let names: Vec<_> = names.collect();
            env.tuple(&[KnownAtom::Ok.word(), env.list(&names)])
        }
        Err(failure) => failure_term(env, &failure),
    })
}

/// Builds `ok`, or `{error, source | target | earlier, Cause, Text}`.
pub(super) fn side_result_term(env: Env<'_>, done: Result<(), (Side, Failure)>) -> VmWord<'_> {
    let Err((side, failure)) = done else {
        return KnownAtom::Ok.word();
    };
    let side = match side {
        Side::Source => KnownAtom::Source,
        Side::Target => KnownAtom::Target,
        Side::Earlier => KnownAtom::Earlier,
    };
    let text = env.binary(failure.text.as_bytes());
    env.tuple(&[
        KnownAtom::Error.word(),
        side.word(),
        failure.cause.word(),
        text,
    ])
}

/// `disk_rename(From, To)`.
fn disk_rename<'e>(env: Env<'e>, [from, to]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    on_dirty_io()?;
    Ok(side_result_term(env, rename(path(from)?, path(to)?)))
}

/// `disk_copy(From, To)`.
fn disk_copy<'e>(env: Env<'e>, [from, to]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    on_dirty_io()?;
    Ok(side_result_term(env, copy(path(from)?, path(to)?)))
}

/// `disk_repair(Directory, default | {Type, KeyPos, Merge})`: `{ok, Records, LostEntries, Outdated,
/// Faults, Kept}`; the last is `default` if nothing was damaged.
fn disk_repair<'e>(env: Env<'e>, [directory, hint]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    on_dirty_io()?;
    let hint = read_optional(hint, read_hint)?;
    let repaired = match repair(path(directory)?, hint.as_ref()) {
        Ok(repaired) => repaired,
        Err(failure) => return Ok(failure_term(env, &failure)),
    };
    let salvaged = &repaired.salvaged;
    let faults = salvaged.faults.iter();
    let faults: Vec<_> = faults
        .map(|fault| env.binary(fault.to_string().as_bytes()))
        .collect();
    let kept = match &repaired.kept {
        Some(kept) => env.binary(kept.as_os_str().as_bytes()),
        None => KnownAtom::Default.word(),
    };
    Ok(env.tuple(&[
        KnownAtom::Ok.word(),
        env.uint(salvaged.records),
        env.uint(salvaged.lost_entries),
        env.uint(salvaged.outdated),
        env.list(&faults),
        kept,
    ]))
}

fn read_hint(hint: VmTerm<'_>) -> Option<DescriptionHint> {
    let env = hint.env();
    let [kind, position, merge] = *hint.tuple_words()? else {
        return None;
    };
    Some(DescriptionHint {
        table_type: table_type(Term(kind)).ok()?,
        key_position: size(VmTerm::of(env, position))?,
        merge: read_optional(VmTerm::of(env, merge), |merge| {
            merge.as_bytes().map(<[u8]>::to_vec)
        })
        .ok()?,
    })
}
