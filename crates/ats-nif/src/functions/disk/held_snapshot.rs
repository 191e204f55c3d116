//! Snapshots of tables on disk that programs hold: read-only tables.

use super::access::{on_dirty_io, open_table_of};
use super::endings::end_snapshot;
use super::open::recipe;
use super::terms::read_optional;
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::env::{Env, VmWord};
use crate::functions::access::find_readable;
use crate::functions::snapshot::{is_pid_alive, milliseconds};
use crate::handle::{Protection, Recipe, Shown, SnapshotView};
use crate::vm_term::VmTerm;
use crate::{lifetime, nif, sys};
use std::time::Duration;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("hold_disk_snapshot", hold_disk_snapshot, 2),
        nif!("held_disk_snapshots", held_disk_snapshots, 1),
    ]
}

/// `hold_disk_snapshot(Table, default | MaxAge)`: a snapshot of a table, as a table. Every process
/// may read it; it ends with the caller, after `MaxAge` milliseconds, with the table, or if it
/// holds too much memory.
fn hold_disk_snapshot<'e>(env: Env<'e>, [table, age]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    if shared.read_point.is_some() {
        return Err(KnownAtom::Snapshot.into());
    }
    let opened = open_table_of(shared)?;
    let caller = env.own_pid().ok_or(KnownAtom::None)?;
    let age = read_optional(age, |age| age.as_unsigned().map(Duration::from_millis))?;
    let frozen = opened.freeze_at(opened.store().files().keep_snapshot(age));
    frozen.snapshot.set_holder(caller.raw());
    let recipe = Recipe {
        pending_snapshot: frozen.pending,
        read_point: Some(SnapshotView {
            shown: Shown::Disk(frozen.snapshot),
            source: shared.id.clone(),
        }),
        ..recipe(&opened, frozen.store, Protection::Snapshot, caller)
    };
    let read_point = lifetime::create(env, recipe, &guard)?;
    read_point.id.begin_snapshot();
    if !shared.is_found_by_id() {
        // A concurrent close may have listed the snapshots before this one was added.
        end_snapshot(read_point, &guard);
    }
    Ok(read_point.id.term(env))
}

/// `held_disk_snapshots(Table)`: `{Number, Oldest, Memory, FileBytes, Evicted}` of the snapshots of
/// a table. `Oldest` is the age of the oldest in milliseconds, `Memory` and `FileBytes` are the
/// bytes kept only for snapshots, and `Evicted` is the number of snapshots ended by limits.
fn held_disk_snapshots<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    // The call visits every snapshot.
    on_dirty_io()?;
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let opened = open_table_of(shared)?;
    let lives = |holder| is_pid_alive(env, holder);
    let kept = opened.store().files().kept_snapshots_of(&lives);
    let words: [VmWord<'e>; 5] = [
        env.uint(kept.count as u64),
        env.uint(milliseconds(kept.oldest)),
        env.uint(kept.memory as u64),
        env.uint(kept.file_bytes),
        env.uint(kept.evicted),
    ];
    Ok(env.tuple(&words))
}
