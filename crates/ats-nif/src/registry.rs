//! All tables of the VM, and the names of the named ones.

use crate::env::Env;
use crate::handle::Shared;
use crate::process;
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
/// The VM says with a short delay that an owner is gone. Whoever replaces the owner, typically because
/// a supervisor restarted it, must not find the name taken meanwhile; so a table of a dead owner
/// without heir gives way.
pub fn claim_name(env: Env<'_>, name: Word, shared: *const Shared, guard: &Guard) -> bool {
    loop {
        if NAMES.insert(name, shared, guard) {
            return true;
        }
        match named(name, guard) {
            Some(other) if is_abandoned(env, other) => other.id.delete(guard),
            Some(_) => return false,
            None => continue,
        };
    }
}

/// Whether the owner of a table is dead and no heir will take it over.
pub fn is_abandoned(env: Env<'_>, shared: &Shared) -> bool {
    !process::is_alive(env, shared.owner()) && shared.admin().heir.is_none()
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
pub fn rename(shared: &Shared, new: Word, guard: &Guard) -> bool {
    let old = shared.name.load(Ordering::Acquire);
    if !NAMES.rename(old, new, shared, guard) {
        return false;
    }
    shared.name.store(new, Ordering::Release);
    true
}

/// Calls `f` with every table there is.
pub fn for_each(guard: &Guard, mut f: impl FnMut(&Shared)) {
    let _ = guard;
    let all = all();
    for address in all.iter() {
        // SAFETY: a table is taken out under the lock we hold before it is retired.
        f(unsafe { &*std::ptr::with_exposed_provenance::<Shared>(*address) });
    }
}
