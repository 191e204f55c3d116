//! All tables of the VM, and the names of the named ones.

use crate::handle::Shared;
use crate::sys::Word;
use ats::names::{Named, Names, Renaming};
use ats_sync::Guard;
use std::collections::HashSet;
use std::ptr;
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

/// Gives a new named table its name; false if that is taken.
///
/// # Safety
/// The table has no name yet. Once it is out of its handle, it is given to [`leave`] before it is retired.
pub unsafe fn claim_name(shared: &Shared, guard: &Guard) -> bool {
    // SAFETY: promised by the caller (HA2 of `handle`).
    unsafe { NAMES.insert(shared, guard) }
}

/// Enters a new table, which has its name.
///
/// # Safety
/// Once the table is out of its handle, it is given to [`leave`] before it is retired.
pub unsafe fn enter(shared: &Shared) {
    let mut all = all();
    // A named one may have been deleted meanwhile, and has left then. Or it leaves behind us: it takes the
    // lock after it was taken out of its handle.
    if shared.is_found_by_id() {
        all.insert(address(shared));
    }
}

fn address(shared: &Shared) -> usize {
    ptr::from_ref(shared).expose_provenance()
}

/// Takes a table out, with its name.
///
/// # Safety
/// The table was entered, and has been taken out of its handle.
pub unsafe fn leave(shared: &Shared, guard: &Guard) {
    all().remove(&address(shared));
    if shared.named {
        // SAFETY: a named table was given its name before it was entered.
        unsafe { NAMES.remove(shared, guard) };
    }
}

/// Gives a named table another name instead of the one it has, which must be `old` if that is given: a
/// process that knows the table by its name does not know it under another.
pub fn rename(shared: &Shared, old: Option<Word>, new: Word, guard: &Guard) -> Renaming {
    // SAFETY: a named table has got its name, and lives as long as the guard.
    unsafe { NAMES.rename(shared, old, new, guard) }
}

/// Every table there is.
pub fn every(_guard: &Guard) -> Vec<&Shared> {
    let all = all();
    all.iter()
        // SAFETY: a table is taken out under the lock we hold before it is retired, so it lives as long as
        // the guard.
        .map(|address| unsafe { &*ptr::with_exposed_provenance::<Shared>(*address) })
        .collect()
}
