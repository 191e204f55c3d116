//! What the VM tells of the end of a process, and the tables that ended with it, on their way to be deleted.
//!
//! A process may own a hundred thousand tables. The VM tells of its end table by table, in the midst of
//! ending it, so what has to be done for each is left to the thread in the background. No process finds
//! these tables meanwhile, since their owner is dead.

use crate::env::{Env, VmWord};
use crate::handle::{Handle, Shared};
use crate::lifetime;
use crate::resource::{Resource, ResourceRef, Slot};
use crate::succession::Fate;
use crate::sys::Word;
use ats::background::{self, FreeInSlices};
use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

impl Resource for Handle {
    const NAME: &'static CStr = c"ats_table";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }

    fn down(&self, env: Env<'_>, pid: VmWord<'_>) {
        let guard = ats_sync::pin();
        let Some(shared) = self.shared(&guard) else {
            return;
        };
        forget(shared, pid.raw());
        let is_owner = shared.owner().is_some_and(|owner| owner.raw() == pid.raw());
        if is_owner && shared.fate(env) == Fate::Ended {
            hand_over(shared.id.clone());
        }
    }
}

/// A process is gone: its fixations end, and it is the heir of no table. Its pid may be that of another
/// process one day.
fn forget(shared: &Shared, pid: Word) {
    let mut admin = shared.admin();
    admin.watched.remove(&pid);
    if let Some(heir) = admin.heir.as_mut().filter(|heir| heir.pid().raw() == pid) {
        heir.set_gone();
    }
    shared.end_fixes_of(&mut admin, pid);
}

/// How many tables are deleted before something else has its turn.
const SLICE: usize = 64;

static ENDED: Mutex<Vec<ResourceRef<Handle>>> = Mutex::new(Vec::new());

fn ended() -> MutexGuard<'static, Vec<ResourceRef<Handle>>> {
    // The list is valid at every moment, so a panic elsewhere does not spoil it.
    ENDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a table deleted soon. To wake the thread takes longer than all else, and is done for the first of many
/// tables only.
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
