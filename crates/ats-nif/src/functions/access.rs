//! The table that a call is about, and whether the caller may do what it wants with it.

use crate::atoms::KnownAtom;
use crate::call::NoReply;
use crate::env::Env;
use crate::handle::{Handle, Protection, Shared};
use crate::vm_term::VmTerm;
use crate::{lifetime, process, registry, resource};
use ats_sync::Guard;

/// The table that a term names or identifies, whether its owner is alive or not.
#[inline]
fn resolve<'g>(term: VmTerm<'g>, guard: &'g Guard) -> Result<&'g Shared, KnownAtom> {
    if term.is_atom() {
        return registry::find(term.word().raw(), guard).ok_or(KnownAtom::Id);
    }
    let handle = resource::get::<Handle>(term).ok_or(KnownAtom::Type)?;
    handle.get(guard).ok_or(KnownAtom::Id)
}

/// The table that a term names or identifies, if there is one.
pub(super) fn find_table<'g>(
    env: Env<'_>,
    term: VmTerm<'g>,
    guard: &'g Guard,
) -> Result<Option<&'g Shared>, KnownAtom> {
    match resolve(term, guard) {
        Ok(shared) => Ok(lifetime::ensure_alive(env, shared, guard).then_some(shared)),
        Err(KnownAtom::Id) => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// A table that the caller may read.
#[inline]
pub(super) fn find_readable<'g>(
    env: Env<'_>,
    term: VmTerm<'g>,
    guard: &'g Guard,
) -> Result<&'g Shared, KnownAtom> {
    check_readable(env, resolve(term, guard)?, guard)
}

/// The same table, if the caller may read it.
#[inline]
pub(super) fn check_readable<'g>(
    env: Env<'_>,
    shared: &'g Shared,
    guard: &'g Guard,
) -> Result<&'g Shared, KnownAtom> {
    let protection = shared.protection();
    if protection == Protection::OfSource {
        return check_source(env, shared, guard);
    }
    let for_all = protection != Protection::Private;
    if is_allowed(env, shared, for_all) {
        return Ok(shared);
    }
    refuse(env, shared, for_all, guard)
}

/// The same moment of a table, if the caller may read the table.
#[cold]
fn check_source<'g>(
    env: Env<'_>,
    shared: &'g Shared,
    guard: &'g Guard,
) -> Result<&'g Shared, KnownAtom> {
    let moment = shared.moment.as_ref().ok_or(KnownAtom::Id)?;
    let source = moment.source.get(guard).ok_or(KnownAtom::Id)?;
    check_readable(env, source, guard)?;
    Ok(shared)
}

/// A table that the caller may write.
#[inline]
pub(super) fn find_writable<'g>(
    env: Env<'_>,
    term: VmTerm<'g>,
    guard: &'g Guard,
) -> Result<&'g Shared, KnownAtom> {
    let shared = resolve(term, guard)?;
    let for_all = shared.protection() == Protection::Public;
    if is_allowed(env, shared, for_all) {
        return Ok(shared);
    }
    refuse(env, shared, for_all, guard)
}

/// Does something with a table that the caller may write. `work` gets the guard under which the
/// table was found, or none on a dirty scheduler: a long call must not keep what other calls remove
/// meanwhile from being freed.
#[inline]
pub(super) fn with_writable<R>(
    env: Env<'_>,
    table: VmTerm<'_>,
    work: impl FnOnce(&Shared, Option<&Guard>) -> Result<R, NoReply>,
) -> Result<R, NoReply> {
    let guard = ats_sync::pin();
    let shared = find_writable(env, table, &guard)?;
    if process::on_dirty_scheduler() {
        let shared = shared.to_arc();
        drop(guard);
        return work(&shared, None);
    }
    work(shared, Some(&guard))
}

/// Returns `true` if all processes, or else the owner, include the caller, and the table has not
/// ended with its owner.
#[inline]
fn is_allowed(env: Env<'_>, shared: &Shared, for_all: bool) -> bool {
    if for_all {
        shared.has_living_owner(env)
    } else {
        shared.is_owner(env)
    }
}

/// Says why the caller may not do it, or finds out that it may, because it is the heir of a dead
/// owner.
#[cold]
fn refuse<'g>(
    env: Env<'_>,
    shared: &'g Shared,
    for_all: bool,
    guard: &Guard,
) -> Result<&'g Shared, KnownAtom> {
    if !lifetime::inherit_or_end(env, shared, guard) {
        Err(KnownAtom::Id)
    } else if is_allowed(env, shared, for_all) {
        Ok(shared)
    } else if shared.moment.is_some() && shared.protection() != Protection::Private {
        Err(KnownAtom::Snapshot)
    } else {
        Err(KnownAtom::Access)
    }
}

/// The same table, unless it may have several objects with a key.
pub(super) fn check_not_bag(shared: &Shared) -> Result<&Shared, KnownAtom> {
    match shared.table.table_type().is_bag() {
        true => Err(KnownAtom::TableType),
        false => Ok(shared),
    }
}
