//! Tables that ended with their owner, on their way to be deleted.
//!
//! A process may own a hundred thousand tables. The VM tells of its end table by table, in the midst of
//! ending it, so what has to be done for each is left to the thread in the background. No process finds
//! these tables meanwhile, since their owner is dead.

use crate::handle::Handle;
use crate::resource::ResourceRef;
use ats::background::{self, FreeInSlices};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many tables are deleted before something else has its turn.
const SLICE: usize = 64;

static ENDED: Mutex<Vec<ResourceRef<Handle>>> = Mutex::new(Vec::new());

fn ended() -> MutexGuard<'static, Vec<ResourceRef<Handle>>> {
    // The list is valid at every moment, so a panic elsewhere does not spoil it.
    ENDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a table deleted soon. To wake the thread takes longer than all else, and is done for the first of many
/// tables only.
pub(crate) fn hand_over(table: ResourceRef<Handle>) {
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
            table.delete(&guard);
        }
        // What was handed over since, to an empty list, has woken the thread anew.
        rest == 0
    }
}
