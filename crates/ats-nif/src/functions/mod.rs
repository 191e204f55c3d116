//! The functions that Erlang calls, by what they are about.
//!
//! All begin alike: pin, find the table, check that the caller may do this, and only then look at the
//! other arguments. `ets` checks in this order, and it decides which cause an error names.

mod counters;
mod merge;
mod objects;
mod places;
mod pop;
mod range;
mod select;
mod tables;
mod take_all;
mod unprotected;
mod walks;

pub(crate) use take_all::TakenObjects;

use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::foreign::Vm;
use crate::handle::{Handle, Protection, Shared};
use crate::scratch::{self, LONG_OBJECT, Reading};
use crate::vm_sink::{make_object, make_term};
use crate::vm_term::VmTerm;
use crate::{process, registry, resource, sys};
use ats::{Error, Found, KeptObjects, Table, UnpackBuffer, Workspace};
use ats_sync::Guard;
use ats_term::image::{ImageRef, Object, Scratch};
use ats_term::walk::is_larger;
use std::ops::ControlFlow;

/// The functions of this module, for the VM.
pub(crate) fn all() -> Vec<sys::ErlNifFunc> {
    let mut functions = Vec::new();
    functions.extend(tables::functions());
    functions.extend(objects::functions());
    functions.extend(counters::functions());
    functions.extend(walks::functions());
    functions.extend(select::functions());
    functions.extend(range::functions());
    functions.extend(places::functions());
    functions.extend(take_all::functions());
    functions.extend(unprotected::functions());
    functions.extend(pop::functions());
    functions.extend(merge::functions());
    functions
}

/// The table that a term names or identifies, whether its owner is alive or not.
#[inline]
fn look_up<'g>(term: VmTerm<'g>, guard: &'g Guard) -> Result<&'g Shared, KnownAtom> {
    if term.is_atom() {
        return registry::named(term.word().raw(), guard).ok_or(KnownAtom::Id);
    }
    let handle = resource::get::<Handle>(term).ok_or(KnownAtom::Type)?;
    handle.shared(guard).ok_or(KnownAtom::Id)
}

/// The table that a term names or identifies.
#[inline]
fn find<'g>(env: Env<'_>, term: VmTerm<'g>, guard: &'g Guard) -> Result<&'g Shared, KnownAtom> {
    let shared = look_up(term, guard)?;
    if shared.has_living_owner(env) || shared.end_or_inherit(env, guard) {
        Ok(shared)
    } else {
        Err(KnownAtom::Id)
    }
}

/// A table that the caller may read.
#[inline]
fn readable<'g>(env: Env<'_>, term: VmTerm<'g>, guard: &'g Guard) -> Result<&'g Shared, KnownAtom> {
    let shared = look_up(term, guard)?;
    let for_all = shared.protection() != Protection::Private;
    if is_allowed(env, shared, for_all) {
        return Ok(shared);
    }
    refuse(env, shared, for_all, guard)
}

/// A table that the caller may write.
#[inline]
fn writable<'g>(env: Env<'_>, term: VmTerm<'g>, guard: &'g Guard) -> Result<&'g Shared, KnownAtom> {
    let shared = look_up(term, guard)?;
    let for_all = shared.protection() == Protection::Public;
    if is_allowed(env, shared, for_all) {
        return Ok(shared);
    }
    refuse(env, shared, for_all, guard)
}

/// Does something with a table that the caller may write. `work` gets the guard under which the table was found,
/// or none on a dirty scheduler: a long call must not keep what other calls remove meanwhile from being freed.
#[inline]
fn with_writable<R>(
    env: Env<'_>,
    table: VmTerm<'_>,
    work: impl FnOnce(&Shared, Option<&Guard>) -> Result<R, NoReply>,
) -> Result<R, NoReply> {
    let guard = ats_sync::pin();
    let shared = writable(env, table, &guard)?;
    if process::on_dirty_scheduler() {
        let held = shared.hold();
        drop(guard);
        return work(&held, None);
    }
    work(shared, Some(&guard))
}

/// Whether all processes, or else the owner, include the caller, and the table has not ended with its owner.
#[inline]
fn is_allowed(env: Env<'_>, shared: &Shared, for_all: bool) -> bool {
    if for_all {
        shared.has_living_owner(env)
    } else {
        shared.is_owner(env)
    }
}

/// Says why the caller may not do it, or finds out that it may, because it is the heir of a dead owner.
#[cold]
fn refuse<'g>(
    env: Env<'_>,
    shared: &'g Shared,
    for_all: bool,
    guard: &Guard,
) -> Result<&'g Shared, KnownAtom> {
    if !shared.end_or_inherit(env, guard) {
        Err(KnownAtom::Id)
    } else if is_allowed(env, shared, for_all) {
        Ok(shared)
    } else {
        Err(KnownAtom::Access)
    }
}

fn boolean(value: bool) -> VmWord<'static> {
    if value {
        KnownAtom::True.word()
    } else {
        KnownAtom::False.word()
    }
}

/// Runs an operation that copies objects into a table or takes them out of it; [`NoReply::DirtyCpu`] if they,
/// or the key, are large and this is not the scheduler for that.
#[inline]
fn copying<'e, R>(
    operation: impl FnOnce(&mut Workspace<VmTerm<'e>>) -> Result<R, Error>,
) -> Result<R, NoReply> {
    scratch::with_work(operation).map_err(NoReply::from)
}

/// The objects of a key, if there are any; [`NoReply::DirtyCpu`] if the key is large.
#[inline]
fn found<'g>(
    shared: &'g Shared,
    key: VmTerm<'_>,
    guard: &'g Guard,
) -> Result<Option<Found<'g, Vm>>, NoReply> {
    copying(|work| shared.table.lookup_within(key, work, guard))
}

/// Appends the bytes of a key; [`NoReply::DirtyCpu`] if that takes long.
fn write_key(table: &Table<Vm>, key: VmTerm<'_>, bytes: &mut Vec<u8>) -> Result<(), NoReply> {
    Ok(table.key_bytes_within(key, bytes, scratch::limit())?)
}

/// More objects of one key are read on a dirty scheduler: this many take well under a millisecond.
const LONG_BAG: usize = 1_000;

/// Whether a key has so many objects, or such large ones, that this is not the scheduler to read them all.
#[inline]
fn is_long(found: &Found<'_, Vm>) -> bool {
    has_many(found) || found.len_words() > LONG_OBJECT && !process::on_dirty_scheduler()
}

/// Whether a key has so many objects that this is not the scheduler to read a part of each.
#[inline]
fn has_many(found: &Found<'_, Vm>) -> bool {
    found.is_large() && found.count() > LONG_BAG && !process::on_dirty_scheduler()
}

/// An element of one of the objects of a key, which are so many `words`, as a term; [`NoReply::DirtyCpu`] if
/// it is large.
#[inline]
fn element_term<'e>(
    env: Env<'e>,
    words: usize,
    element: ImageRef<'_, Vm>,
    scratch: &mut Scratch<VmWord<'e>>,
) -> NifResult<'e> {
    let is_large = words > LONG_OBJECT && is_larger(element, LONG_OBJECT);
    if is_large && !process::on_dirty_scheduler() {
        return Err(NoReply::DirtyCpu);
    }
    Ok(make_term(env, element, scratch))
}

/// The objects of a key as a list, oldest first; [`NoReply::DirtyCpu`] if they are many, or large.
#[inline]
fn object_list<'e>(env: Env<'e>, found: &Found<'_, Vm>) -> NifResult<'e> {
    if is_long(found) {
        return Err(NoReply::DirtyCpu);
    }
    all_objects(env, found)
}

/// The objects of a key as a list, oldest first.
#[inline]
fn all_objects<'e>(env: Env<'e>, found: &Found<'_, Vm>) -> NifResult<'e> {
    scratch::with_reading(|reading| {
        if let Some(only) = found.only(&mut reading.unpacked) {
            let object = make_object(env, only, &mut reading.scratch);
            return Ok(env.cons(object, VmWord::NIL));
        }
        list_of(
            env,
            reading,
            |unpacked, visit| found.each(unpacked, visit),
            |object, scratch| Ok(make_object(env, object, scratch)),
        )
    })
}

/// As [`all_objects`], when the guard is gone under which they were found.
#[cold]
fn kept_objects<'e>(env: Env<'e>, kept: &KeptObjects<Vm>) -> NifResult<'e> {
    scratch::with_reading(|reading| {
        list_of(
            env,
            reading,
            |unpacked, visit| kept.each(unpacked, visit),
            |object, scratch| Ok(make_object(env, object, scratch)),
        )
    })
}

/// What is shown the objects of a key, one after the other.
type EachObject<'a> = dyn FnMut(Object<'_, Vm>) -> ControlFlow<()> + 'a;

/// A list of what `make` makes of each of the objects of a key, which `each` visits. The first object of which
/// it makes nothing ends this.
fn list_of<'e>(
    env: Env<'e>,
    Reading { scratch, unpacked }: &mut Reading<VmWord<'e>>,
    each: impl FnOnce(&mut UnpackBuffer, &mut EachObject<'_>) -> ControlFlow<()>,
    mut make: impl FnMut(Object<'_, Vm>, &mut Scratch<VmWord<'e>>) -> NifResult<'e>,
) -> NifResult<'e> {
    let mut terms = Vec::new();
    let mut result = Ok(());
    let _all = each(unpacked, &mut |object| match make(object, scratch) {
        Ok(term) => {
            terms.push(term);
            ControlFlow::Continue(())
        }
        Err(no_reply) => {
            result = Err(no_reply);
            ControlFlow::Break(())
        }
    });
    result.map(|()| env.list(&terms))
}

/// The key of a table's record, as its first object spells it.
fn key_term<'e>(env: Env<'e>, shared: &Shared, found: &Found<'_, Vm>) -> VmWord<'e> {
    scratch::with_reading(|Reading { scratch, unpacked }| {
        let key = found.element(shared.table.key_position() - 1, unpacked);
        make_term(env, key.expect("an object has its key"), scratch)
    })
}

/// More objects, or elements, are changed on a dirty scheduler: this many take well under a millisecond.
const LONG_LIST: usize = 500;

/// Whether a list is so long that this is not the scheduler to work through it.
fn is_long_list(list: VmTerm<'_>) -> bool {
    !process::on_dirty_scheduler() && proper_length(list, LONG_LIST + 1) > Some(LONG_LIST)
}

/// The terms of a proper list.
struct ListTerms<'e>(VmTerm<'e>);

impl<'e> Iterator for ListTerms<'e> {
    type Item = VmTerm<'e>;

    fn next(&mut self) -> Option<VmTerm<'e>> {
        let (head, tail) = self.0.as_cons()?;
        self.0 = tail;
        Some(head)
    }
}

/// Number of elements of a list, if it is a proper one; stops counting at `most`.
fn proper_length(list: VmTerm<'_>, most: usize) -> Option<usize> {
    let mut terms = ListTerms(list);
    let len = terms.by_ref().take(most).count();
    (len == most || terms.0.is_nil()).then_some(len)
}
