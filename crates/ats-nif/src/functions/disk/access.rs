//! Lookup of a call's open directory, and the schedulers on which calls may block.

use crate::atoms::KnownAtom;
use crate::call::NoReply;
use crate::disk::OpenTable;
use crate::env::Env;
use crate::functions::access::find_table;
use crate::handle::Shared;
use crate::process;
use crate::vm_term::VmTerm;
use ats_store::MayBlock;
use std::sync::Arc;

/// Returns the capability to block. Without it, the call moves to a dirty I/O scheduler.
pub(super) fn on_dirty_io() -> Result<MayBlock, NoReply> {
    process::may_block().ok_or(NoReply::DirtyIo)
}

/// Returns the open directory of a table.
pub(super) fn open_table_of(shared: &Shared) -> Result<Arc<OpenTable>, KnownAtom> {
    shared.disk.clone().ok_or(KnownAtom::TableType)
}

/// Returns `true` if a table is a snapshot held by a program.
pub(super) fn is_snapshot(env: Env<'_>, table: VmTerm<'_>) -> Result<bool, KnownAtom> {
    let guard = ats_sync::pin();
    let shared = find_table(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    Ok(shared.read_point.is_some())
}

/// Resolves the open directory of a table, for a call that takes long.
pub(super) fn find_open_table(
    env: Env<'_>,
    table: VmTerm<'_>,
) -> Result<Arc<OpenTable>, KnownAtom> {
    let guard = ats_sync::pin();
    open_table_of(find_table(env, table, &guard)?.ok_or(KnownAtom::Id)?)
}
