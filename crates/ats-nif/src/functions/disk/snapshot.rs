//! Snapshots: tables that are what a table on disk was at a moment.

use super::access::opened;
use super::open::recipe;
use super::terms::{given, size};
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::env::Env;
use crate::functions::access::readable;
use crate::handle::{Protection, Recipe};
use crate::vm_term::VmTerm;
use crate::{lifetime, nif, sys};

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![nif!("disk_snapshot", disk_snapshot, 2)]
}

/// `disk_snapshot(Table, Most)`: a table that is what this is at the moment, and belongs to the
/// caller. Unless `Most` is `default`, it is one of those of the table that are so many at most: of
/// more, those that were not used for longest expire.
fn disk_snapshot<'e>(env: Env<'e>, [table, most]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let opened = opened(shared)?;
    let caller = env.own_pid().ok_or(KnownAtom::None)?;
    let frozen = opened.freeze();
    let limited = given(most, size)?.map(|most| {
        frozen.snapshot.limit(most);
        frozen.snapshot
    });
    let recipe = Recipe {
        frozen: frozen.pending,
        limited,
        ..recipe(&opened, frozen.store, Protection::Private, caller)
    };
    let snapshot = lifetime::create(env, recipe, &guard)?;
    Ok(snapshot.id.term(env))
}
