//! Removal of all objects of a table, which are returned.
//!
//! The objects move to a resource that only the taking process refers to. If that process is
//! killed, the objects are lost. So objects are taken only once all long lists are written; after
//! that the take waits only for the native calls inside the table.

use super::access::find_writable;
use super::reading::SliceSource;
use super::slices::{Operation, Work, cursor_of};
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::env::Env;
use crate::resource::{self, Resource, ResourceRef, Slot};
use crate::vm_host::VmHost;
use crate::vm_term::VmTerm;
use crate::{nif, spec_shapes, sys};
use ats::terms::{Direction, DrainedTable, Error};
use std::ffi::CStr;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("take_all_start", take_all_start, 1),
        nif!("take_all_more", take_all_more, 4),
    ]
}

/// The objects of a drained table.
pub(crate) struct TakenObjects(DrainedTable<VmHost>);

impl Resource for TakenObjects {
    const NAME: &'static CStr = c"ats_taken";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }
}

/// `take_all_start(Table) -> Taken | wait`: takes all objects out of a table in one step. Takes
/// nothing and returns `wait` while a long list is being written.
fn take_all_start<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    match find_writable(env, table, &guard)?.table.take_all() {
        Err(Error::Busy) => Ok(KnownAtom::Wait.word()),
        taken => Ok(ResourceRef::new(TakenObjects(taken?)).term(env)),
    }
}

/// `take_all_more(Taken, MatchSpec, Position, Result)`: continues the list of the objects like
/// `select_more`, from `start` on. Returns `wait` while native calls that began before are still
/// inside the table.
fn take_all_more<'e>(
    env: Env<'e>,
    [taken_term, spec, position, so_far]: [VmTerm<'e>; 4],
) -> NifResult<'e> {
    let taken = resource::get::<TakenObjects>(taken_term).ok_or(KnownAtom::None)?;
    // Checked before the thread is pinned: its own pin would keep the writers from ever being
    // finished.
    let Some(table) = taken.0.when_at_rest() else {
        return Ok(KnownAtom::Wait.word());
    };
    let guard = ats_sync::pin();
    let operation = Operation::List(Direction::Up);
    let cursor = if KnownAtom::Start.is(position.word()) {
        operation.start()
    } else {
        cursor_of(env, position).ok_or(KnownAtom::None)?
    };
    spec_shapes::with_prepared(table, spec, |prepared| {
        let terms = |_: SliceSource<'_>| [taken_term.word(), prepared.term(env)];
        let work = Work::new(env, operation, so_far.word());
        work.go_on_with(table, &terms, prepared, cursor, SliceSource::None, &guard)
    })
}
