//! The files of a table: the moments at which they are on disk, and at which they are sorted.

use super::access::{find_open_table, on_dirty_io};
use super::terms::result_term;
use crate::call::NifResult;
use crate::env::Env;
use crate::vm_term::VmTerm;
use crate::{nif, sys};

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_sync", disk_sync, 1),
        nif!("disk_flush", disk_flush, 1),
        nif!("disk_compact", disk_compact, 1),
    ]
}

/// `disk_sync(Table)`: makes all durable that was written before.
fn disk_sync<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let opened = find_open_table(env, table)?;
    Ok(result_term(env, opened.sync()))
}

/// `disk_flush(Table)`: writes to runs what is in memory.
fn disk_flush<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let opened = find_open_table(env, table)?;
    Ok(result_term(env, opened.flush()))
}

/// `disk_compact(Table)`: merges all runs into one.
fn disk_compact<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let opened = find_open_table(env, table)?;
    Ok(result_term(env, opened.compact()))
}
