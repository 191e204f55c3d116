//! Replacement of all objects of a table in a directory.
//!
//! The new objects are first inserted into a *stage*: a table in memory with the same keys, whose
//! records are the same bytes. So a bad object is found before anything has changed, and objects of
//! the same key are treated as the type of the table demands. Then the records become one batch.

use super::access::{on_dirty_io, open_table_of};
use super::open::recipe;
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::env::Env;
use crate::functions::access::find_writable;
use crate::handle::Protection;
use crate::vm_term::VmTerm;
use crate::{lifetime, nif, sys};
use ats::terms::{BTreeStore, Error};
use ats_store::{Direction, KeyRange};
use std::sync::Arc;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_stage", disk_stage, 1),
        nif!("disk_exchange", disk_exchange, 2),
    ]
}

/// `disk_stage(Table)`: creates an empty stage for a table; the caller owns it.
fn disk_stage<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let opened = open_table_of(find_writable(env, table, &guard)?)?;
    let caller = env.own_pid().ok_or(KnownAtom::None)?;
    let store = Box::new(BTreeStore::new());
    let recipe = recipe(&opened, store, Protection::Private, caller);
    let stage = lifetime::create(env, recipe, &guard)?;
    Ok(stage.id.term(env))
}

/// `disk_exchange(Table, Stage)`: replaces all objects of a table by those of a stage that was made
/// for it.
fn disk_exchange<'e>(env: Env<'e>, [table, stage]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let may_block = on_dirty_io()?;
    let guard = ats_sync::pin();
    let shared = find_writable(env, table, &guard)?.to_arc();
    let stage = find_writable(env, stage, &guard)?.to_arc();
    drop(guard);
    let opened = open_table_of(&shared)?;
    if !Arc::ptr_eq(&opened, &self::open_table_of(&stage)?) {
        return Err(KnownAtom::TableType.into());
    }
    shared.table.replace_all(|| {
        let replaced = opened.store().replace_all(Some(may_block), |visit| {
            let all = KeyRange::default();
            let shown = stage.table.scan_bytes(all, Direction::Up, visit);
            shown.map_err(|_| ats_store::Error::Corrupt)
        });
        replaced.map_err(Error::Storage)
    })?;
    Ok(KnownAtom::True.word())
}
