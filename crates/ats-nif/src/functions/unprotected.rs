//! Reads that ignore the protection of a table, for a report about it.

use super::access::find_table;
use super::reading::SliceSource;
use super::slices::{Operation, Work, cursor_of};
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::env::{Env, VmWord};
use crate::vm_term::VmTerm;
use crate::{nif, spec_shapes, sys};
use ats::terms::Direction;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![nif!("read_unprotected", read_unprotected, 3)]
}

/// `read_unprotected(Table, MatchSpec, Position)`: the objects of the next slice of a table, from
/// `start` on, like `select_more`; or `undefined`. Private tables of others can be read, too: the
/// caller must report no more about them than `ets` would.
fn read_unprotected<'e>(env: Env<'e>, [table, spec, position]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let Some(shared) = find_table(env, table, &guard)? else {
        return Ok(KnownAtom::Undefined.word());
    };
    let operation = Operation::List(Direction::Down);
    let cursor = if KnownAtom::Start.is(position.word()) {
        operation.start()
    } else {
        cursor_of(env, position).ok_or(KnownAtom::None)?
    };
    spec_shapes::with_prepared(&shared.table, spec, |prepared| {
        Work::new(env, operation, VmWord::NIL).go_on(
            shared,
            prepared,
            cursor,
            SliceSource::None,
            &guard,
        )
    })
}
