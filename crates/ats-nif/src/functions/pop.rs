//! Removal of objects at the ends of a table.

use super::access::find_writable;
use crate::call::NifResult;
use crate::env::{Env, VmWord};
use crate::scratch::ReadBuffers;
use crate::vm_sink::make_object;
use crate::vm_term::VmTerm;
use crate::{nif, scratch, sys};
use ats::terms::End;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("take_first", take_first, 1),
        nif!("take_last", take_last, 1),
    ]
}

pub(super) fn take_first<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    take_end(env, table, End::First)
}

pub(super) fn take_last<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    take_end(env, table, End::Last)
}

fn take_end<'e>(env: Env<'e>, table: VmTerm<'e>, end: End) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_writable(env, table, &guard)?;
    let taken = scratch::with_workspace(|work| shared.table.take_end(end, work, &guard))?;
    Ok(taken.map_or(VmWord::NIL, |taken| {
        scratch::with_read_buffers(|ReadBuffers { scratch, unpacked }| {
            let object = make_object(env, taken.object(unpacked), scratch);
            env.cons(object, VmWord::NIL)
        })
    }))
}
