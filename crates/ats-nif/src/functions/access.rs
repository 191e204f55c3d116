//! Lookup of a call's table, and the check of the caller's rights.

use crate::atoms::KnownAtom;
use crate::call::NoReply;
use crate::env::Env;
use crate::handle::{Handle, Protection, Shared};
use crate::vm_term::VmTerm;
use crate::{lifetime, process, registry, resource};
use ats_sync::Guard;

/// Resolves a table name or identifier, whether or not the owner is alive.
#[inline]
fn resolve<'g>(term: VmTerm<'g>, guard: &'g Guard) -> Result<&'g Shared, KnownAtom> {
    if term.is_atom() {
        return registry::find(term.word().raw(), guard).ok_or(KnownAtom::Id);
    }
    let handle = resource::get::<Handle>(term).ok_or(KnownAtom::Type)?;
    handle.get(guard).ok_or(KnownAtom::Id)
}

/// Resolves a table name or identifier; fails if the table does not exist.
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

/// Resolves a table that the caller may read.
#[inline]
pub(super) fn find_readable<'g>(
    env: Env<'_>,
    term: VmTerm<'g>,
    guard: &'g Guard,
) -> Result<&'g Shared, KnownAtom> {
    check_readable(env, resolve(term, guard)?, guard)
}

/// Returns the table if the caller may read it.
#[inline]
pub(super) fn check_readable<'g>(
    env: Env<'_>,
    shared: &'g Shared,
    guard: &'g Guard,
) -> Result<&'g Shared, KnownAtom> {
    if shared.protection() == Protection::OfSource {
        return check_source(env, shared, guard);
    }
    check(env, shared, may_read, guard)
}

/// Returns a query's snapshot if the caller may read its table.
#[cold]
fn check_source<'g>(
    env: Env<'_>,
    shared: &'g Shared,
    guard: &'g Guard,
) -> Result<&'g Shared, KnownAtom> {
    let read_point = shared.read_point.as_ref().ok_or(KnownAtom::Id)?;
    let source = read_point.source.get(guard).ok_or(KnownAtom::Id)?;
    check_readable(env, source, guard)?;
    Ok(shared)
}

/// Resolves a table that the caller may write, or whose properties it may change. Nobody may do so
/// with a snapshot.
#[inline]
pub(super) fn find_writable<'g>(
    env: Env<'_>,
    term: VmTerm<'g>,
    guard: &'g Guard,
) -> Result<&'g Shared, KnownAtom> {
    check(env, resolve(term, guard)?, may_write, guard)
}

/// Resolves a table that the caller may delete: one that it may write, or a snapshot of its own.
pub(super) fn find_deletable<'g>(
    env: Env<'_>,
    term: VmTerm<'g>,
    guard: &'g Guard,
) -> Result<&'g Shared, KnownAtom> {
    check(env, resolve(term, guard)?, may_delete, guard)
}

/// Returns the table if the caller has a right to it.
#[inline(always)]
fn check<'g>(
    env: Env<'_>,
    shared: &'g Shared,
    is_allowed: fn(Env<'_>, &Shared) -> bool,
    guard: &'g Guard,
) -> Result<&'g Shared, KnownAtom> {
    if is_allowed(env, shared) {
        Ok(shared)
    } else {
        refuse(env, shared, is_allowed, guard)
    }
}

/// Runs `work` on a table that the caller may write. `work` gets the guard under which the table
/// was found, or none on a dirty scheduler: a long call must not delay the reclamation of memory
/// that other calls retire.
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

/// Returns `true` if the caller may read the table, and the table has not ended with its owner. A
/// query's snapshot is not asked about, as the table of that decides.
#[inline]
fn may_read(env: Env<'_>, shared: &Shared) -> bool {
    match shared.protection() {
        Protection::Public | Protection::Protected | Protection::Snapshot => {
            shared.has_living_owner(env)
        }
        Protection::Private | Protection::OfSource => shared.is_owner(env),
    }
}

/// Returns `true` if the caller may write to the table, and the table has not ended with its owner.
#[inline]
fn may_write(env: Env<'_>, shared: &Shared) -> bool {
    match shared.protection() {
        Protection::Public => shared.has_living_owner(env),
        Protection::Protected | Protection::Private => shared.is_owner(env),
        Protection::Snapshot | Protection::OfSource => false,
    }
}

fn may_delete(env: Env<'_>, shared: &Shared) -> bool {
    match shared.protection() {
        Protection::Public => shared.has_living_owner(env),
        _ => shared.is_owner(env),
    }
}

/// Returns the reason why the caller is refused, or the table if the caller has just inherited it
/// from a dead owner.
#[cold]
fn refuse<'g>(
    env: Env<'_>,
    shared: &'g Shared,
    is_allowed: fn(Env<'_>, &Shared) -> bool,
    guard: &Guard,
) -> Result<&'g Shared, KnownAtom> {
    if !lifetime::inherit_or_end(env, shared, guard) {
        Err(KnownAtom::Id)
    } else if is_allowed(env, shared) {
        Ok(shared)
    } else if shared.read_point.is_some() {
        Err(KnownAtom::Snapshot)
    } else {
        Err(KnownAtom::Access)
    }
}

/// Returns the table unless its keys may have several objects.
pub(super) fn check_not_bag(shared: &Shared) -> Result<&Shared, KnownAtom> {
    if shared.table.table_type().is_bag() {
        Err(KnownAtom::TableType)
    } else {
        Ok(shared)
    }
}
