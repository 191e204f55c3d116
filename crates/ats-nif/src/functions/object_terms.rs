//! Conversion of found objects to terms.

use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::handle::Shared;
use crate::process;
use crate::scratch::{self, LONG_OBJECT, ReadBuffers};
use crate::vm_host::VmHost;
use crate::vm_sink::{make_object, make_term};
use crate::vm_term::VmTerm;
use ats::terms::{Error, KeptObjects, LookupResult, Table, UnpackBuffer};
use ats_sync::Guard;
use ats_term::image::{ImageRef, Object, Scratch};
use ats_term::term_ref::is_larger;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Looks up the objects of a key; ends with [`NoReply::DirtyCpu`] if the key is large.
#[inline]
pub(super) fn look_up<'g>(
    shared: &'g Shared,
    key: VmTerm<'_>,
    guard: &'g Guard,
) -> Result<Option<LookupResult<'g, VmHost>>, NoReply> {
    scratch::with_workspace(|work| shared.table.lookup_within(key, work, guard))
}

/// Takes the objects of a key; fails with [`Error::TooLarge`], and takes none, if they are many or
/// large.
pub(super) fn take_up<'g>(
    table: &'g Table<VmHost>,
    key: &[u8],
    guard: &'g Guard,
) -> Result<Option<LookupResult<'g, VmHost>>, Error> {
    // Taken objects must be returned, on whichever scheduler; so their number is checked first.
    let is_bag = table.table_type().is_bag();
    if is_bag
        && table
            .lookup_bytes(key, guard)?
            .is_some_and(|found| has_many(&found))
    {
        return Err(Error::TooLarge);
    }
    table.take_bytes(key, scratch::limit(), guard)
}

/// Appends the bytes of a key; ends with [`NoReply::DirtyCpu`] if that takes long.
pub(super) fn write_key(
    table: &Table<VmHost>,
    key: VmTerm<'_>,
    bytes: &mut Vec<u8>,
) -> Result<(), NoReply> {
    Ok(table.key_bytes_within(key, bytes, scratch::limit())?)
}

/// Number of objects of one key above which they are read on a dirty scheduler: this many take well
/// under a millisecond.
pub(super) const LONG_BAG: usize = 1_000;

/// Returns `true` if a key has too many objects, or too large ones, to be read on this scheduler.
#[inline]
pub(super) fn is_long(found: &LookupResult<'_, VmHost>) -> bool {
    has_many(found) || found.len_words() > LONG_OBJECT && !process::on_dirty_scheduler()
}

/// Returns `true` if a key has too many objects for this scheduler to read a part of each.
#[inline]
pub(super) fn has_many(found: &LookupResult<'_, VmHost>) -> bool {
    found.is_large() && found.count() > LONG_BAG && !process::on_dirty_scheduler()
}

/// Builds an element of one of the objects of a key, which are `words` in all; ends with
/// [`NoReply::DirtyCpu`] if it is large.
#[inline]
pub(super) fn element_term<'e>(
    env: Env<'e>,
    words: usize,
    element: ImageRef<'_, VmHost>,
    scratch: &mut Scratch<VmWord<'e>>,
) -> NifResult<'e> {
    let is_large = words > LONG_OBJECT && is_larger(element, LONG_OBJECT);
    if is_large && !process::on_dirty_scheduler() {
        return Err(NoReply::DirtyCpu);
    }
    Ok(make_term(env, element, scratch))
}

/// Builds the list of a key's objects, oldest first; ends with [`NoReply::DirtyCpu`] if they are
/// many, or large.
#[inline]
pub(super) fn object_list<'e>(env: Env<'e>, found: &LookupResult<'_, VmHost>) -> NifResult<'e> {
    if is_long(found) {
        return Err(NoReply::DirtyCpu);
    }
    Ok(object_list_unlimited(env, found))
}

/// Builds the list of a key's objects, oldest first.
#[inline]
pub(super) fn object_list_unlimited<'e>(
    env: Env<'e>,
    found: &LookupResult<'_, VmHost>,
) -> VmWord<'e> {
    scratch::with_read_buffers(|reading| {
        if let Some(only) = found.only(&mut reading.unpacked) {
            let object = make_object(env, only, &mut reading.scratch);
            return env.cons(object, VmWord::NIL);
        }
        list_of_objects(env, reading, |unpacked, visit| found.each(unpacked, visit))
    })
}

/// Makes a list like [`object_list_unlimited`], for objects kept beyond the guard they were found
/// under.
#[cold]
pub(super) fn kept_object_list<'e>(env: Env<'e>, kept: &KeptObjects<VmHost>) -> VmWord<'e> {
    scratch::with_read_buffers(|reading| {
        list_of_objects(env, reading, |unpacked, visit| kept.each(unpacked, visit))
    })
}

/// Builds a list of the objects of a key that `each` visits.
fn list_of_objects<'e>(
    env: Env<'e>,
    reading: &mut ReadBuffers<VmWord<'e>>,
    each: impl FnOnce(&mut UnpackBuffer, &mut EachObject<'_>) -> ControlFlow<()>,
) -> VmWord<'e> {
    let list: Result<_, Infallible> = list_of(env, reading, each, |object, scratch| {
        Ok(make_object(env, object, scratch))
    });
    let Ok(list) = list;
    list
}

/// A function that is shown the objects of a key one by one.
pub(super) type EachObject<'a> = dyn FnMut(Object<'_, VmHost>) -> ControlFlow<()> + 'a;

/// Builds a list of the results of `make` for each object of a key that `each` visits. The walk
/// ends at the first object without a result.
pub(super) fn list_of<'e, E>(
    env: Env<'e>,
    ReadBuffers { scratch, unpacked }: &mut ReadBuffers<VmWord<'e>>,
    each: impl FnOnce(&mut UnpackBuffer, &mut EachObject<'_>) -> ControlFlow<()>,
    mut make: impl FnMut(Object<'_, VmHost>, &mut Scratch<VmWord<'e>>) -> Result<VmWord<'e>, E>,
) -> Result<VmWord<'e>, E> {
    let mut terms = Vec::new();
    let mut result = Ok(());
    let _all = each(unpacked, &mut |object| match make(object, scratch) {
        Ok(term) => {
            terms.push(term);
            ControlFlow::Continue(())
        }
        Err(error) => {
            result = Err(error);
            ControlFlow::Break(())
        }
    });
    result.map(|()| env.list(&terms))
}

/// Builds the key of a record, as spelled by its first object.
pub(super) fn key_term<'e>(
    env: Env<'e>,
    shared: &Shared,
    found: &LookupResult<'_, VmHost>,
) -> VmWord<'e> {
    scratch::with_read_buffers(|ReadBuffers { scratch, unpacked }| {
        let key = found.element(shared.table.key_position() - 1, unpacked);
        make_term(env, key.expect("an object has its key"), scratch)
    })
}
