//! Terms that only an environment can keep, because they have identity or hold a resource.
//!
//! # Invariant
//! - SHARED_ENV-1. The heap of a [`SharedEnv`] only grows, and its terms never move or change: any
//!   thread that holds a count of it can read a term in it without a lock.

use crate::env::{Env, OwnEnv, VmWord};
use crate::etf::Etf;
use crate::sys::Word;
use std::sync::{Arc, Mutex, PoisonError};

/// An environment that keeps terms alive for tables.
pub struct SharedEnv(OwnEnv);

// SAFETY: only one thread writes to the environment at a time (the one that has it alone, or holds
// `OPEN_CHUNK`), and readers only read complete terms (SHARED_ENV-1).
unsafe impl Sync for SharedEnv {}

/// The number of aliases that share an environment.
const CHUNK: usize = 32;

/// The environment that takes the next alias, and the number of aliases in it. An alias holds no
/// resource, so it may stay until all of its chunk are gone; an environment for each would cost too
/// much.
static OPEN_CHUNK: Mutex<Option<(Arc<SharedEnv>, usize)>> = Mutex::new(None);

/// Keeps a term in an environment of its own, so that it is freed as soon as nothing refers to it.
pub fn hold_alone(term: VmWord<'_>) -> (Arc<SharedEnv>, Word) {
    let mut env = OwnEnv::new();
    let word = env.env().copy(term).raw();
    (Arc::new(SharedEnv(env)), word)
}

/// Keeps a copy of a term in an environment of its own, with copies of its binaries, so that it
/// keeps no larger binary alive. The copy goes through the external term format, so it is for terms
/// without identity. Returns `None` if the VM cannot decode the term.
pub fn hold_copy(term: VmWord<'_>) -> Option<(Arc<SharedEnv>, Word)> {
    let mut env = OwnEnv::new();
    let word = env.env().from_etf(Etf::of(term).bytes())?.raw();
    Some((Arc::new(SharedEnv(env)), word))
}

/// Keeps a term in an environment shared with others.
pub fn hold_in_chunk(term: VmWord<'_>) -> (Arc<SharedEnv>, Word) {
    let mut open = OPEN_CHUNK.lock().unwrap_or_else(PoisonError::into_inner);
    let (env, count) = open.get_or_insert_with(|| (Arc::new(SharedEnv(OwnEnv::new())), 0));
    // SAFETY: writers hold the lock, and readers do not touch a term that is being added
    // (SHARED_ENV-1).
    let word = unsafe { Env::from_raw(env.0.raw()) }.copy(term).raw();
    let env = Arc::clone(env);
    *count += 1;
    if *count == CHUNK {
        *open = None;
    }
    (env, word)
}
