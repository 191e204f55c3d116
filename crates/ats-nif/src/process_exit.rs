//! Cleanup of the tables of a process that has exited.
//!
//! A process may own a hundred thousand tables. The VM reports the exit in the middle of it, so
//! only a few tables are handled then. The background thread handles the others, and frees all of
//! them. Meanwhile no process finds a table with a dead owner.

use crate::env::Env;
use crate::handle::{Handle, Shared};
use crate::lifetime;
use crate::ownership::Fate;
use crate::process_monitor::{ExitListener, ProcessMonitors};
use crate::resource::{Resource, ResourceRef, Slot};
use crate::sys::Word;
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

impl ExitListener for Handle {
    const MONITOR_NAME: &'static CStr = c"ats_watch";

    fn monitor_slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }

    fn monitors() -> &'static ProcessMonitors<Self> {
        static MONITORS: LazyLock<ProcessMonitors<Handle>> =
            LazyLock::new(ProcessMonitors::default);
        &MONITORS
    }

    fn on_process_end(env: Env<'_>, pid: Word, mut tables: Vec<ResourceRef<Self>>) {
        let rest = tables.split_off(tables.len().min(SLICE));
        for table in tables {
            notify(env, pid, &table);
        }
        if !rest.is_empty() {
            background::free(Box::new(TablesToNotify { pid, tables: rest }));
        }
    }
}

/// Tells a table that a process has exited.
fn notify(env: Env<'_>, pid: Word, table: &ResourceRef<Handle>) {
    let guard = ats_sync::pin();
    let Some(shared) = table.get(&guard) else {
        return;
    };
    forget(shared, pid);
    let is_owner = shared.owner().is_some_and(|owner| owner.raw() == pid);
    if is_owner && shared.inherit_if_orphaned(env) == Fate::Ended {
        delete_later(table.clone());
    }
}

/// Tables that have not been told of an exit yet.
struct TablesToNotify {
    pid: Word,
    tables: Vec<ResourceRef<Handle>>,
}

impl FreeInSlices for TablesToNotify {
    fn free_slice(&mut self) -> bool {
        let rest = self.tables.len().saturating_sub(SLICE);
        for table in self.tables.split_off(rest) {
            notify(Env::of_own_thread(), self.pid, &table);
        }
        rest == 0
    }
}

/// Ends the fixations of a process that has exited, and removes it as heir. Another process may
/// reuse its pid one day.
fn forget(shared: &Shared, pid: Word) {
    let mut admin = shared.admin();
    admin.monitors.forget_process(pid);
    if let Some(heir) = admin.heir.as_mut().filter(|heir| heir.pid().raw() == pid) {
        heir.set_gone();
    }
    shared.end_fixes_of(&mut admin, pid);
}

/// Number of tables handled before other work gets its turn.
const SLICE: usize = 64;

static TABLES_TO_DELETE: Mutex<Vec<ResourceRef<Handle>>> = Mutex::new(Vec::new());

fn lock_tables_to_delete() -> MutexGuard<'static, Vec<ResourceRef<Handle>>> {
    // The list is consistent at every moment, so a poisoned lock is harmless.
    TABLES_TO_DELETE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Queues a table for deletion. Waking the thread is the expensive part, so only the first of many
/// tables does it.
fn delete_later(table: ResourceRef<Handle>) {
    let mut tables = lock_tables_to_delete();
    tables.push(table);
    let is_first = tables.len() == 1;
    drop(tables);
    if is_first {
        background::free(Box::new(DeleteTables));
    }
}

/// The work of deleting [`TABLES_TO_DELETE`].
struct DeleteTables;

impl FreeInSlices for DeleteTables {
    fn free_slice(&mut self) -> bool {
        let mut tables = lock_tables_to_delete();
        let rest = tables.len().saturating_sub(SLICE);
        let slice = tables.split_off(rest);
        drop(tables);
        let guard = ats_sync::pin();
        for table in slice {
            if let Some(shared) = table.get(&guard) {
                lifetime::delete(shared, &guard);
            }
        }
        // A table added to an empty list since then has woken the thread again.
        rest == 0
    }
}
