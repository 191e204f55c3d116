//! The fate of the tables of a process that has ended.
//!
//! A process may own a hundred thousand tables. The VM tells of its end in the midst of ending it,
//! so only a few of them are looked after then, and the others are left to the thread in the
//! background, as is the freeing of all. No process finds a table meanwhile whose owner is dead.

use crate::env::Env;
use crate::handle::{Handle, Shared};
use crate::lifetime;
use crate::resource::{Resource, ResourceRef, Slot};
use crate::succession::Fate;
use crate::sys::Word;
use crate::watch::{Watches, Watching};
use ats::background::{self, FreeInSlices};
use std::ffi::CStr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

impl Resource for Handle {
    const NAME: &'static CStr = c"ats_table";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }
}

impl Watching for Handle {
    const WATCH_NAME: &'static CStr = c"ats_watch";

    fn watch_slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }

    fn watches() -> &'static Watches<Self> {
        static WATCHES: LazyLock<Watches<Handle>> = LazyLock::new(Watches::default);
        &WATCHES
    }

    fn process_ended(env: Env<'_>, pid: Word, mut tables: Vec<ResourceRef<Self>>) {
        let rest = tables.split_off(tables.len().min(SLICE));
        for table in tables {
            tell(env, pid, &table);
        }
        if !rest.is_empty() {
            background::free(Box::new(Untold { pid, tables: rest }));
        }
    }
}

/// Tells a table that a process is gone.
fn tell(env: Env<'_>, pid: Word, table: &ResourceRef<Handle>) {
    let guard = ats_sync::pin();
    let Some(shared) = table.shared(&guard) else {
        return;
    };
    forget(shared, pid);
    let is_owner = shared.owner().is_some_and(|owner| owner.raw() == pid);
    if is_owner && shared.fate(env) == Fate::Ended {
        hand_over(table.clone());
    }
}

/// Tables that are yet to be told that a process is gone.
struct Untold {
    pid: Word,
    tables: Vec<ResourceRef<Handle>>,
}

impl FreeInSlices for Untold {
    fn free_slice(&mut self) -> bool {
        let rest = self.tables.len().saturating_sub(SLICE);
        for table in self.tables.split_off(rest) {
            tell(Env::of_own_thread(), self.pid, &table);
        }
        rest == 0
    }
}

/// A process is gone: its fixations end, and it is the heir of no table. Its pid may be that of
/// another process one day.
fn forget(shared: &Shared, pid: Word) {
    let mut admin = shared.admin();
    admin.watches.forget_process(pid);
    if let Some(heir) = admin.heir.as_mut().filter(|heir| heir.pid().raw() == pid) {
        heir.set_gone();
    }
    shared.end_fixes_of(&mut admin, pid);
}

/// The number of tables that are looked after before something else has its turn.
const SLICE: usize = 64;

static ENDED: Mutex<Vec<ResourceRef<Handle>>> = Mutex::new(Vec::new());

fn ended() -> MutexGuard<'static, Vec<ResourceRef<Handle>>> {
    // The list is valid at every moment, so a panic elsewhere does not spoil it.
    ENDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a table deleted soon. To wake the thread takes longer than all else, and is done for the
/// first of many tables only.
fn hand_over(table: ResourceRef<Handle>) {
    let mut ended = ended();
    ended.push(table);
    let is_first = ended.len() == 1;
    drop(ended);
    if is_first {
        background::free(Box::new(Ended));
    }
}

/// All that were handed over.
struct Ended;

impl FreeInSlices for Ended {
    fn free_slice(&mut self) -> bool {
        let mut ended = ended();
        let rest = ended.len().saturating_sub(SLICE);
        let slice = ended.split_off(rest);
        drop(ended);
        let guard = ats_sync::pin();
        for table in slice {
            if let Some(shared) = table.shared(&guard) {
                lifetime::delete(shared, &guard);
            }
        }
        // What was handed over since, to an empty list, has woken the thread anew.
        rest == 0
    }
}
