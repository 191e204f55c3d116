//! Look-ups and removals of several keys in one call.
//!
//! Each function goes as far as one call may, and returns the keys that are left. Whoever calls it
//! again with these gets the rest, or the error of the first of them.

use super::access::{find_readable, find_writable};
use super::arguments::ListTerms;
use super::object_terms::{is_long, kept_object_list, object_list_unlimited, take_up};
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::handle::Shared;
use crate::scratch::{self, LONG_OBJECT};
use crate::vm_host::VmHost;
use crate::vm_term::VmTerm;
use crate::{nif, process, sys};
use ats::terms::{Error, KeptObjects, LookupResult};
use ats_sync::Guard;
use std::ops::ControlFlow;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("lookup_many", lookup_many, 2),
        nif!("take_many", take_many, 2),
        nif!("delete_many", delete_many, 2),
    ]
}

/// Maximum number of keys of one call, which then takes some fifty microseconds.
const MOST_KEYS: usize = 256;
/// Number of keys that cost a percent of the caller's time slice.
const KEYS_OF_A_PERCENT: usize = 64;

/// Calls `operation` with each key until it breaks or fails, or the call has lasted long enough.
/// Returns the number of keys that are done.
fn each_key<'e>(
    env: Env<'e>,
    shared: &Shared,
    keys: VmTerm<'e>,
    guard: &Guard,
    operation: impl FnMut(&[u8]) -> Result<ControlFlow<()>, Error>,
) -> Result<usize, NoReply> {
    let keys = ListTerms(keys).take(MOST_KEYS);
    let done = scratch::with_workspace(|work| shared.table.each_key(keys, work, guard, operation))?;
    process::consume(env, (done / KEYS_OF_A_PERCENT).max(1) as u128);
    Ok(done)
}

/// Returns the keys behind the first `done`.
fn rest(keys: VmTerm<'_>, done: usize) -> VmWord<'_> {
    let mut keys = ListTerms(keys);
    keys.by_ref().take(done).for_each(drop);
    keys.0.word()
}

/// The objects of each key of a call, as lists.
struct Lists<'e> {
    env: Env<'e>,
    lists: Vec<VmWord<'e>>,
    /// The size of all objects.
    words: usize,
    /// The objects of the last key, if they are many: their list is made when no guard is held.
    last: Option<KeptObjects<VmHost>>,
}

impl<'e> Lists<'e> {
    fn new(env: Env<'e>) -> Self {
        Lists {
            env,
            lists: Vec::with_capacity(16),
            words: 0,
            last: None,
        }
    }

    /// Adds the objects of the next key. Breaks when the call has copied enough.
    fn add(&mut self, found: Option<&LookupResult<'_, VmHost>>) -> ControlFlow<()> {
        let Some(found) = found else {
            self.lists.push(VmWord::NIL);
            return ControlFlow::Continue(());
        };
        if found.is_large()
            && let Some(kept) = found.keep()
        {
            self.last = Some(kept);
            return ControlFlow::Break(());
        }
        self.lists.push(object_list_unlimited(self.env, found));
        self.words += found.len_words();
        if self.words > LONG_OBJECT {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Returns the lists, behind the keys that are left.
    fn answer(mut self, left: VmWord<'e>) -> VmWord<'e> {
        if let Some(kept) = self.last {
            self.lists.push(kept_object_list(self.env, &kept));
        }
        self.env.cons(left, self.env.list(&self.lists))
    }
}

/// `lookup_many(Table, Keys) -> [KeysLeft | ObjectsOfEachKey]`.
fn lookup_many<'e>(env: Env<'e>, [table, keys]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let mut lists = Lists::new(env);
    let done = each_key(env, shared, keys, &guard, |key| {
        let found = shared.table.lookup_bytes(key, &guard)?;
        if found.as_ref().is_some_and(is_long) {
            return Err(Error::TooLarge);
        }
        Ok(lists.add(found.as_ref()))
    })?;
    drop(guard);
    Ok(lists.answer(rest(keys, done)))
}

/// `take_many(Table, Keys) -> [KeysLeft | ObjectsOfEachKey]`.
fn take_many<'e>(env: Env<'e>, [table, keys]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_writable(env, table, &guard)?;
    let mut lists = Lists::new(env);
    let done = each_key(env, shared, keys, &guard, |key| {
        let taken = take_up(&shared.table, key, &guard)?;
        Ok(lists.add(taken.as_ref()))
    })?;
    drop(guard);
    Ok(lists.answer(rest(keys, done)))
}

/// `delete_many(Table, Keys) -> KeysLeft`.
fn delete_many<'e>(env: Env<'e>, [table, keys]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_writable(env, table, &guard)?;
    let done = each_key(env, shared, keys, &guard, |key| {
        shared.table.delete_bytes(key, &guard)?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rest(keys, done))
}
