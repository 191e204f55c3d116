//! All tables of the VM, and the names of the named ones.

use crate::env::Env;
use crate::handle::Shared;
use crate::sys::Word;
use ats::names::Names;
use ats_sync::Guard;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

static NAMES: Names<Shared> = Names::new();

/// Every table, by address. Touched when tables come and go, and by `all/0`.
static ALL: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(Mutex::default);

fn all() -> MutexGuard<'static, HashSet<usize>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The table with this name.
#[inline]
pub fn named(name: Word, guard: &Guard) -> Option<&Shared> {
    let shared = NAMES.get(name, guard)?;
    // SAFETY: a table's name goes before the table is retired (H2 of `handle`), so a table found by
    // its name under a guard lives as long as the guard.
    Some(unsafe { &*shared })
}

/// Gives a name to a new table; false if it is taken.
///
/// A table whose owner is dead gives way, unless an heir takes it: whoever replaces the owner, typically
/// because a supervisor restarted it, must not find the name taken.
pub fn claim_name(env: Env<'_>, name: Word, shared: *const Shared, guard: &Guard) -> bool {
    loop {
        if NAMES.insert(name, shared, guard) {
            return true;
        }
        match named(name, guard) {
            Some(other) if other.has_living_owner(env) || other.settle(env, guard) => return false,
            _ => std::hint::spin_loop(),
        }
    }
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
        // A renaming may be under way: it either sees the table's new name here or fails.
        while !NAMES.remove(table.name.load(Ordering::Acquire), shared, guard) {
            std::hint::spin_loop();
        }
    }
}

/// Gives a named table another name; false if that is taken.
///
/// As in [`claim_name`], a table whose owner is dead gives way.
pub fn rename(env: Env<'_>, shared: &Shared, new: Word, guard: &Guard) -> bool {
    loop {
        let old = shared.name.load(Ordering::Acquire);
        if NAMES.rename(old, new, shared, guard) {
            shared.name.store(new, Ordering::Release);
            return true;
        }
        match named(new, guard) {
            Some(other) if other.has_living_owner(env) || other.settle(env, guard) => return false,
            // Nobody has the new name, so the old one is not ours any more: the table is renamed or
            // deleted by somebody else.
            None if NAMES.get(old, guard) != Some(std::ptr::from_ref(shared)) => return false,
            _ => std::hint::spin_loop(),
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
