//! Taking all objects out of a table.
//!
//! A drained table leaves a resource with its objects, to which only the process refers that drained it. If
//! that is killed the objects go with it, whether writers have finished or not.

use super::select::{How, Work, cursor_of};
use super::writable;
use crate::atoms::Known;
use crate::call::NifResult;
use crate::env::{Env, VmWord};
use crate::foreign::Vm;
use crate::resource::{self, Resource, ResourceRef, Slot};
use crate::vm_term::VmTerm;
use crate::{nif, query, sys};
use ats::Drained;
use std::ffi::CStr;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("drain_start", drain_start, 1),
        nif!("drain_more", drain_more, 4),
    ]
}

/// The objects of a table that was drained.
pub(crate) struct Drain(Drained<Vm>);

impl Resource for Drain {
    const NAME: &'static CStr = c"ats_drain";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }
}

/// `drain_start(Table) -> Drain`: takes all objects out of a table, as one step.
fn drain_start<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let drained = writable(env, table, &guard)?.table.drain();
    Ok(ResourceRef::new(Drain(drained)).term(env))
}

/// `drain_more(Drain, MatchSpec, Position, Result)`: goes on to make a list of the objects, as `select_more`
/// does, from `start` on. Returns `wait` if writers have not finished yet.
fn drain_more<'e>(env: Env<'e>, [drain, spec, position, so_far]: [VmTerm<'e>; 4]) -> NifResult<'e> {
    let drained = resource::get::<Drain>(drain).ok_or(Known::None)?;
    // Before the thread is pinned, or writers would never seem to have finished.
    let Some(table) = drained.0.settled() else {
        return Ok(Known::Wait.word());
    };
    let guard = ats_sync::pin();
    let how = How::List { reverse: false };
    let cursor = match Known::Start.is(position.word()) {
        true => how.start(),
        false => cursor_of(env, position).ok_or(Known::None)?,
    };
    query::with_prepared(table, spec, |prepared, _known| {
        let terms = || -> [VmWord<'e>; 2] { [drain.word(), prepared.compiled.term(env)] };
        Work::new(env, how, so_far.word()).go_on_with(table, &terms, prepared, cursor, &guard)
    })
}
