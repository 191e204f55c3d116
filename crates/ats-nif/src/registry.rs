//! All tables of the VM, and the names of the named ones.
//!
//! A table is entered, named and removed under the lock of one part of the registry, which its
//! address selects. A listing holds the locks of all parts, so it shows one moment: no table is
//! entered, removed or renamed meanwhile. Lookups of tables and names take no lock.

use crate::handle::Shared;
use crate::names::{Named, Names, Renaming};
use crate::process_monitor::{Spread, shrink};
use crate::sys::Word;
use ats_sync::{CachePadded, Guard};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
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

/// Number of parts of the registry, each with its own lock.
const PARTS: usize = 64;

/// Tables, by address.
type Tables = HashSet<usize, BuildHasherDefault<Spread>>;

static ALL: LazyLock<[CachePadded<Mutex<Tables>>; PARTS]> =
    LazyLock::new(|| std::array::from_fn(|_| CachePadded(Mutex::default())));

fn lock(part: &'static Mutex<Tables>) -> MutexGuard<'static, Tables> {
    // Sets are consistent at every moment, so a poisoned lock is harmless.
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the part of a table.
fn lock_part(address: usize) -> MutexGuard<'static, Tables> {
    let mut hash = Spread::default();
    hash.write_usize(address);
    // The hash set uses the low and the highest bits, so the part comes from those between.
    lock(&ALL[(hash.finish() >> 20) as usize % PARTS])
}

fn address(shared: &Shared) -> usize {
    ptr::from_ref(shared).expose_provenance()
}

/// Returns the table with this name.
#[inline]
pub fn find(name: Word, guard: &Guard) -> Option<&Shared> {
    let shared = NAMES.get(name, guard)?;
    // SAFETY: a table's name is removed before the table is retired (HANDLE-2 of `handle`), so a
    // table found by its name under a guard lives as long as the guard.
    Some(unsafe { &*shared })
}

/// Enters a new table, with its name if it is named. Returns `false` if the name is taken.
///
/// # Safety
/// The table must not have been entered before. Only [`leave`] may take it out of its handle.
pub unsafe fn enter(shared: &Shared, guard: &Guard) -> bool {
    let mut part = lock_part(address(shared));
    // SAFETY: the caller promises that the table was not entered before, so it has no name yet, and
    // it lives until its name is removed (HANDLE-2).
    if shared.named && !unsafe { NAMES.insert(shared, guard) } {
        return false;
    }
    part.insert(address(shared))
}

/// Takes an entered table out of its handle: it no longer exists. Returns `false` if another thread
/// has done so.
pub fn leave(shared: &Shared, guard: &Guard) -> bool {
    let mut part = lock_part(address(shared));
    shared.id.end(guard, |shared| {
        part.remove(&address(shared));
        shrink(&mut part);
        if shared.named {
            // SAFETY: a named table was inserted when it was entered, and is still alive.
            unsafe { NAMES.remove(shared, guard) };
        }
    })
}

/// Renames a named table. If `old` is given, the table must still have that name: a process that
/// knows a table by its name does not know it by another one.
pub fn rename(shared: &Shared, old: Option<Word>, new: Word, guard: &Guard) -> Renaming {
    let _part = lock_part(address(shared));
    // SAFETY: a named table was inserted when it was entered, and lives as long as the guard.
    unsafe { NAMES.rename(shared, old, new, guard) }
}

/// Lists all tables at one moment, with the words of their names.
pub fn list_all(_guard: &Guard) -> Vec<(&Shared, Word)> {
    // Every other thread holds the lock of at most one part, so no deadlock is possible.
    let parts: Vec<_> = ALL.iter().map(|part| lock(part)).collect();
    let addresses = parts.iter().flat_map(|part| part.iter());
    addresses
        .map(|address| {
            // SAFETY: a table leaves the set under a lock that we hold before it is retired, so it
            // lives as long as the guard.
            let shared = unsafe { &*ptr::with_exposed_provenance::<Shared>(*address) };
            (shared, shared.name().raw())
        })
        .collect()
}
