//! Snapshots of tables on disk, as tables.

use super::access::open_table_of;
use super::open::recipe;
use super::terms::{read_optional, size};
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::env::Env;
use crate::functions::access::find_readable;
use crate::handle::{Protection, Recipe, SnapshotView};
use crate::vm_term::VmTerm;
use crate::{lifetime, nif, sys};

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![nif!("disk_snapshot", disk_snapshot, 2)]
}

/// `disk_snapshot(Table, Most)`: a snapshot of a table that belongs to the caller. Unless `Most` is
/// `default`, the table keeps at most this many of them: beyond that, the least recently used
/// expire. For a snapshot held by a program, the result is the same snapshot, without a limit.
fn disk_snapshot<'e>(env: Env<'e>, [table, most]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let opened = open_table_of(shared)?;
    let caller = env.own_pid().ok_or(KnownAtom::None)?;
    let most = read_optional(most, size)?;
    let (table_snapshot, most) = match shared.read_point.as_ref().and_then(SnapshotView::of_disk) {
        Some(snapshot) => (opened.freeze_at(snapshot.clone()), None),
        None => (opened.freeze(), most),
    };
    let limited_snapshot = most.map(|most| {
        table_snapshot.snapshot.limit(most);
        table_snapshot.snapshot
    });
    let recipe = Recipe {
        pending_snapshot: table_snapshot.pending,
        limited_snapshot,
        ..recipe(&opened, table_snapshot.store, Protection::Private, caller)
    };
    let snapshot = lifetime::create(env, recipe, &guard)?;
    Ok(snapshot.id.term(env))
}
