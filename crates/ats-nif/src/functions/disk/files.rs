//! Operations on the files of a table: sync, flush, compaction and checkpoints.

use super::access::{find_open_table, on_dirty_io};
use super::closed::side_result_term;
use super::terms::{path, read_optional, result_term};
use crate::call::NifResult;
use crate::disk::checkpoint;
use crate::env::Env;
use crate::vm_term::VmTerm;
use crate::{nif, sys};

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_sync", disk_sync, 1),
        nif!("disk_flush", disk_flush, 1),
        nif!("disk_compact", disk_compact, 1),
        nif!("disk_checkpoint", disk_checkpoint, 3),
    ]
}

/// `disk_sync(Table)`: makes all earlier writes durable.
fn disk_sync<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let opened = find_open_table(env, table)?;
    Ok(result_term(env, opened.sync()))
}

/// `disk_flush(Table)`: writes the memtables to runs.
fn disk_flush<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let opened = find_open_table(env, table)?;
    Ok(result_term(env, opened.flush()))
}

/// `disk_compact(Table)`: compacts all runs into one.
fn disk_compact<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let opened = find_open_table(env, table)?;
    Ok(result_term(env, opened.compact()))
}

/// `disk_checkpoint(Table, To, default | Earlier)`: copies the table at this moment to another
/// directory.
fn disk_checkpoint<'e>(env: Env<'e>, [table, to, earlier]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    on_dirty_io()?;
    let opened = find_open_table(env, table)?;
    let earlier = read_optional(earlier, |earlier| path(earlier).ok())?;
    Ok(side_result_term(
        env,
        checkpoint(&opened, path(to)?, earlier),
    ))
}
