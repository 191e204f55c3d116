//! All tables of the VM, and the names of the named ones.

use crate::env::Env;
use crate::handle::Shared;
use crate::sys::Word;
use ats::names::{Named, Names, Renaming};
use ats_sync::Guard;
use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

static NAMES: Names<Shared> = Names::new();

impl Named for Shared {
    fn name(&self) -> &AtomicU64 {
        &self.name
    }

    fn exists(&self) -> bool {
        self.is_found_by_id()
    }
}

/// Every table, by address. Touched when tables come and go, and by `all/0`.
static ALL: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(Mutex::default);

fn all() -> MutexGuard<'static, HashSet<usize>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The table with this name.
#[inline]
pub fn named(name: Word, guard: &Guard) -> Option<&Shared> {
    let shared = NAMES.get(name, guard)?;
    // SAFETY: a table's name goes before the table is retired (HA2 of `handle`), so a table found by
    // its name under a guard lives as long as the guard.
    Some(unsafe { &*shared })
}

/// Gives a new table its name; false if that is taken.
///
/// A table whose owner is dead gives way, unless an heir takes it: a process that replaces the owner, typically
/// because a supervisor restarted it, must not find the name taken.
///
/// # Safety
/// `shared` is a table that has an identifier, and is known to no other thread.
pub unsafe fn claim_name(env: Env<'_>, name: Word, shared: *const Shared, guard: &Guard) -> bool {
    loop {
        // SAFETY: promised by the caller; it lives until `leave` (HA2 of `handle`).
        if unsafe { NAMES.insert(shared, guard) } {
            return true;
        }
        if is_kept(env, name, guard) {
            return false;
        }
    }
}

/// Whether there is a table with this name. If its owner is dead it ends now, or its heir takes it.
fn is_kept(env: Env<'_>, name: Word, guard: &Guard) -> bool {
    named(name, guard)
        .is_some_and(|other| other.has_living_owner(env) || other.end_or_inherit(env, guard))
}

/// Enters a new table.
pub fn enter(shared: *const Shared) {
    all().insert(shared.addr());
}

/// Takes a table out, with its name.
///
/// # Safety
/// The caller has taken the table out of its handle and has not retired it yet.
pub unsafe fn leave(shared: *const Shared, guard: &Guard) {
    all().remove(&shared.addr());
    // SAFETY: promised by the caller.
    let table = unsafe { &*shared };
    if table.named {
        // SAFETY: a named table was given its name before it could be taken out of its handle.
        unsafe { NAMES.remove(shared, guard) };
    }
}

/// Gives a named table another name instead of the one it has, which must be `old` if that is given: a process that
/// knows the table by its name does not know it under another.
///
/// As in [`claim_name`], a table whose owner is dead gives way.
pub fn rename(
    env: Env<'_>,
    shared: &Shared,
    old: Option<Word>,
    new: Word,
    guard: &Guard,
) -> Renaming {
    loop {
        // SAFETY: a named table has got its name, and lives as long as the guard.
        let renaming = unsafe { NAMES.rename(shared, old, new, guard) };
        if renaming != Renaming::Taken || is_kept(env, new, guard) {
            return renaming;
        }
    }
}

/// Every table there is.
pub fn every(_guard: &Guard) -> Vec<&Shared> {
    let all = all();
    all.iter()
        // SAFETY: a table is taken out under the lock we hold before it is retired, so it lives as long as the
        // guard.
        .map(|address| unsafe { &*std::ptr::with_exposed_provenance::<Shared>(*address) })
        .collect()
}
