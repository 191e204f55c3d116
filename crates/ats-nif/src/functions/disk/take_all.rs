//! Removal of all objects of a table in a directory, which are returned.
//!
//! The objects become a table that does not change, as a snapshot is: the caller walks through it,
//! and it ends with the caller.

use super::access::{on_dirty_io, open_table_of};
use super::open::recipe;
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::env::Env;
use crate::functions::access::find_writable;
use crate::handle::{Protection, Recipe};
use crate::vm_term::VmTerm;
use crate::{lifetime, nif, sys};
use ats::terms::Error;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![nif!("disk_take_all", disk_take_all, 1)]
}

/// `disk_take_all(Table)`: removes all objects of a table, at one moment, and returns a table that
/// has them and belongs to the caller.
fn disk_take_all<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let may_block = on_dirty_io()?;
    let caller = env.own_pid().ok_or(KnownAtom::None)?;
    let guard = ats_sync::pin();
    let shared = find_writable(env, table, &guard)?.to_arc();
    drop(guard);
    let opened = open_table_of(&shared)?;
    let mut taken = None;
    shared.table.replace_all(|| {
        taken = Some(opened.take_all(may_block).map_err(Error::Storage)?);
        Ok(())
    })?;
    let (store, pending_snapshot) = taken.ok_or(KnownAtom::None)?;
    let recipe = Recipe {
        pending_snapshot,
        ..recipe(&opened, store, Protection::Private, caller)
    };
    let guard = ats_sync::pin();
    let taken = lifetime::create(env, recipe, &guard)?;
    Ok(taken.id.term(env))
}
