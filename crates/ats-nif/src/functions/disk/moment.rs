//! Snapshots of tables on disk that programs hold: tables that show a moment, and only that.

use super::access::{on_dirty_io, open_table_of};
use super::endings::{end_moment, find_ending};
use super::open::recipe;
use super::terms::read_optional;
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::env::{Env, VmWord};
use crate::functions::access::{find_readable, find_table};
use crate::handle::{Handle, Moment, Protection, Recipe};
use crate::vm_term::VmTerm;
use crate::{lifetime, nif, resource, sys};
use std::time::Duration;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_moment", disk_moment, 2),
        nif!("disk_moment_state", disk_moment_state, 1),
        nif!("disk_moments", disk_moments, 1),
        nif!("disk_release", disk_release, 1),
    ]
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// `disk_moment(Table, default | MaxAge)`: a table that is what this is at the moment. Each process
/// may read it; it ends with the caller, after so many milliseconds, with the table, or if it holds
/// too much memory.
fn disk_moment<'e>(env: Env<'e>, [table, age]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    if shared.moment.is_some() {
        return Err(KnownAtom::Snapshot.into());
    }
    let opened = open_table_of(shared)?;
    let caller = env.own_pid().ok_or(KnownAtom::None)?;
    let age = read_optional(age, |age| age.as_unsigned().map(Duration::from_millis))?;
    let frozen = opened.freeze_at(opened.store().files().keep_snapshot(age));
    let recipe = Recipe {
        pending_snapshot: frozen.pending,
        moment: Some(Moment {
            snapshot: frozen.snapshot,
            source: shared.id.clone(),
        }),
        ..recipe(&opened, frozen.store, Protection::Protected, caller)
    };
    let moment = lifetime::create(env, recipe, &guard)?;
    moment.id.begin_snapshot();
    if !shared.is_found_by_id() {
        // Whoever closes the table may have looked for its snapshots before.
        end_moment(moment, &guard);
    }
    Ok(moment.id.term(env))
}

/// `disk_moment_state(Term)`: `none` if a term is no snapshot that a program holds; the reason why
/// it has ended, if it has; or `{Table, Owner, Milliseconds}`, of which the last is its age.
fn disk_moment_state<'e>(env: Env<'e>, [term]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let Some(handle) = resource::get::<Handle>(term) else {
        return Ok(KnownAtom::None.word());
    };
    let Some(why) = handle.ending() else {
        return Ok(KnownAtom::None.word());
    };
    let guard = ats_sync::pin();
    let Some(shared) = find_table(env, term, &guard)? else {
        return Ok(handle.ending().unwrap_or(why).word());
    };
    if let Some(why) = find_ending(shared) {
        return Ok(why.word());
    }
    let moment = shared.moment.as_ref().ok_or(KnownAtom::None)?;
    let owner = shared.owner().unwrap_or(KnownAtom::None.word());
    let age = env.uint(milliseconds(moment.snapshot.age()));
    Ok(env.tuple(&[moment.source.term(env), owner, age]))
}

/// `disk_moments(Table)`: `{Number, Oldest, Memory, FileBytes}` of the snapshots of a table.
/// `Oldest` is the age of the oldest in milliseconds, and bytes are those that only they read.
fn disk_moments<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    // It looks at each of them.
    on_dirty_io()?;
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let kept = open_table_of(shared)?.store().files().kept_snapshots();
    let words: [VmWord<'e>; 4] = [
        env.uint(kept.count as u64),
        env.uint(milliseconds(kept.oldest)),
        env.uint(kept.memory as u64),
        env.uint(kept.file_bytes),
    ];
    Ok(env.tuple(&words))
}

/// `disk_release(Snapshot)`: ends a snapshot, of any owner: `true`, also if it has ended otherwise.
fn disk_release<'e>(env: Env<'e>, [term]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let handle = resource::get::<Handle>(term).ok_or(KnownAtom::Type)?;
    if handle.set_released().ok_or(KnownAtom::Id)? == KnownAtom::Released {
        return Err(KnownAtom::Id.into());
    }
    let guard = ats_sync::pin();
    if let Some(shared) = find_table(env, term, &guard)? {
        lifetime::delete(shared, &guard);
    }
    Ok(KnownAtom::True.word())
}
