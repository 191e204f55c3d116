//! Snapshots: tables that are what a table on disk was at a moment.

use super::access::opened;
use super::open::recipe;
use super::terms::{given, size};
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::disk::{Pending, Polite};
use crate::env::Env;
use crate::functions::access::readable;
use crate::handle::{Protection, Recipe};
use crate::vm_term::VmTerm;
use crate::{lifetime, nif, sys};
use ats::Store;
use std::sync::Arc;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![nif!("disk_snapshot", disk_snapshot, 2)]
}

/// `disk_snapshot(Table, Most)`: a table that is what this is at the moment, and belongs to the caller. Unless
/// `Most` is `default`, it is one of those of the table that are so many at most: of more, those that were not
/// used for longest expire.
fn disk_snapshot<'e>(env: Env<'e>, [table, most]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let opened = opened(shared)?;
    let caller = env.own_pid().ok_or(KnownAtom::None)?;
    let snapshot = opened.store().files().snapshot();
    let frozen = opened.store().freeze(snapshot.clone());
    let limited = given(env, most.word(), size)?.map(|most| {
        snapshot.limit(most);
        snapshot
    });
    let (store, frozen): (Box<dyn Store>, _) = match opened.program() {
        None => (Box::new(Polite(frozen)), None),
        Some(merge) => {
            let frozen = Arc::new(Pending::new(frozen, Arc::clone(merge)));
            (Box::new(Polite(Arc::clone(&frozen))), Some(frozen))
        }
    };
    let recipe = Recipe {
        frozen,
        limited,
        ..recipe(&opened, store, Protection::Private, caller)
    };
    let snapshot = lifetime::create(env, recipe, &guard)?;
    Ok(snapshot.id.term(env))
}
