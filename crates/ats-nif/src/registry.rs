//! All tables of the VM, and the names of the named ones.
//!
//! A table comes and goes under the lock of one part of the registry, which its address chooses: it
//! gets its name there, and there it stops existing. A listing holds the locks of all parts, so it
//! is that of one moment: none comes or goes or gets another name meanwhile. No lock is taken to
//! ask whether a table exists, and which one has a name.

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

/// The parts of the registry, each with a lock of its own.
const PARTS: usize = 64;

/// Tables, by address.
type Tables = HashSet<usize, BuildHasherDefault<Spread>>;

static ALL: LazyLock<[CachePadded<Mutex<Tables>>; PARTS]> =
    LazyLock::new(|| std::array::from_fn(|_| CachePadded(Mutex::default())));

fn lock(part: &'static Mutex<Tables>) -> MutexGuard<'static, Tables> {
    // Sets are valid at every moment, so a panic elsewhere does not spoil them.
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of a table, whose lock is held.
fn lock_part(address: usize) -> MutexGuard<'static, Tables> {
    let mut hash = Spread::default();
    hash.write_usize(address);
    // Sets use the low bits and the highest.
    lock(&ALL[(hash.finish() >> 20) as usize % PARTS])
}

fn address(shared: &Shared) -> usize {
    ptr::from_ref(shared).expose_provenance()
}

/// The table with this name.
#[inline]
pub fn find(name: Word, guard: &Guard) -> Option<&Shared> {
    let shared = NAMES.get(name, guard)?;
    // SAFETY: a table's name goes before the table is retired (HANDLE-2 of `handle`), so a table
    // found by its name under a guard lives as long as the guard.
    Some(unsafe { &*shared })
}

/// Enters a new table, with its name if it is a named one; false if that is taken.
///
/// # Safety
/// The table was not entered before. It is taken out of its handle by [`leave`] only.
pub unsafe fn enter(shared: &Shared, guard: &Guard) -> bool {
    let mut part = lock_part(address(shared));
    // SAFETY: the caller says that the table was not entered before, so it has no name yet, and it
    // lives until it has left the names (HANDLE-2).
    if shared.named && !unsafe { NAMES.insert(shared, guard) } {
        return false;
    }
    part.insert(address(shared))
}

/// Takes a table that was entered out of its handle: it does not exist any more. False if another
/// thread has done so.
pub fn leave(shared: &Shared, guard: &Guard) -> bool {
    let mut part = lock_part(address(shared));
    shared.id.end(guard, |shared| {
        part.remove(&address(shared));
        shrink(&mut part);
        if shared.named {
            // SAFETY: a named table was given its name when it was entered.
            unsafe { NAMES.remove(shared, guard) };
        }
    })
}

/// Gives a named table another name instead of the one it has, which must be `old` if that is
/// given: a process that knows the table by its name does not know it under another.
pub fn rename(shared: &Shared, old: Option<Word>, new: Word, guard: &Guard) -> Renaming {
    let _part = lock_part(address(shared));
    // SAFETY: a named table has got its name, and lives as long as the guard.
    unsafe { NAMES.rename(shared, old, new, guard) }
}

/// Every table there is at one moment, with the word of its name.
pub fn list_all(_guard: &Guard) -> Vec<(&Shared, Word)> {
    // Each other thread holds the lock of one part at most, so no circle is possible.
    let parts: Vec<_> = ALL.iter().map(|part| lock(part)).collect();
    let addresses = parts.iter().flat_map(|part| part.iter());
    addresses
        .map(|address| {
            // SAFETY: a table is taken out under a lock that we hold before it is retired, so it
            // lives as long as the guard.
            let shared = unsafe { &*ptr::with_exposed_provenance::<Shared>(*address) };
            (shared, shared.name().raw())
        })
        .collect()
}
