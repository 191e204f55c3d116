//! Reads and writes of objects.

use super::access::{find_readable, find_writable, with_writable};
use super::arguments::{
    LONG_LIST, ListTerms, index, is_long_list, milliseconds, proper_length, with_default,
};
use super::object_terms::{
    EachObject, LONG_BAG, element_term, has_many, kept_object_list, list_of, look_up, object_list,
    object_list_unlimited, take_up, write_key,
};
use crate::atoms::{KnownAtom, boolean};
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::handle::Shared;
use crate::scratch::ReadBuffers;
use crate::vm_host::VmHost;
use crate::vm_term::VmTerm;
use crate::{nif, process, scratch, sys};
use ats::terms::{Error, ExistingKey, Lifetime, TimeLeft, UnpackBuffer};
use ats_term::image::{Object, Scratch};
use std::ops::ControlFlow;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("insert", insert, 2),
        nif!("insert_new", insert_new, 2),
        nif!("insert", insert_for, 3),
        nif!("insert_new", insert_new_for, 3),
        nif!("ttl", ttl, 2),
        nif!("own_ttl", own_ttl, 2),
        nif!("touch", touch, 3),
        nif!("lookup", lookup, 2),
        nif!("lookup_element", lookup_element, 3),
        nif!("lookup_element", lookup_element, 4),
        nif!("lookup_elements", lookup_elements, 3),
        nif!("member", member, 2),
        nif!("take", take, 2),
        nif!("delete", delete, 2),
        nif!("delete_object", delete_object, 2),
    ]
}

#[inline(always)]
pub(super) fn insert<'e>(env: Env<'e>, [table, objects]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    insert_if(env, table, objects, ExistingKey::Accepted)?;
    Ok(KnownAtom::True.word())
}

#[inline(always)]
pub(super) fn insert_new<'e>(env: Env<'e>, [table, objects]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    insert_if(env, table, objects, ExistingKey::Refused).map(boolean)
}

fn insert_if<'e>(
    env: Env<'e>,
    table: VmTerm<'e>,
    objects: VmTerm<'e>,
    existing: ExistingKey,
) -> Result<bool, NoReply> {
    with_writable(env, table, |shared, _| {
        insert_all(shared, objects, existing, None)
    })
}

/// `insert(Table, Objects, Lifetime)`
fn insert_for<'e>(env: Env<'e>, arguments: [VmTerm<'e>; 3]) -> NifResult<'e> {
    insert_if_for(env, arguments, ExistingKey::Accepted)?;
    Ok(KnownAtom::True.word())
}

/// `insert_new(Table, Objects, Lifetime)`
fn insert_new_for<'e>(env: Env<'e>, arguments: [VmTerm<'e>; 3]) -> NifResult<'e> {
    insert_if_for(env, arguments, ExistingKey::Refused).map(boolean)
}

fn insert_if_for<'e>(
    env: Env<'e>,
    [table, objects, lifetime]: [VmTerm<'e>; 3],
    existing: ExistingKey,
) -> Result<bool, NoReply> {
    let lifetime = lifetime_of(lifetime)?;
    with_writable(env, table, |shared, _| {
        if !shared.table.expires() {
            return Err(Error::NoTtl.into());
        }
        insert_all(shared, objects, existing, Some(lifetime))
    })
}

/// Inserts an object or a list of objects.
#[inline]
fn insert_all(
    shared: &Shared,
    objects: VmTerm<'_>,
    existing: ExistingKey,
    lifetime: Option<Lifetime>,
) -> Result<bool, NoReply> {
    match objects.as_cons() {
        None if objects.is_nil() => Ok(true),
        None => insert_one(shared, objects, existing, lifetime),
        Some((only, rest)) if rest.is_nil() => insert_one(shared, only, existing, lifetime),
        Some(_) if is_long_list(objects) => Err(NoReply::DirtyCpu),
        Some(_) => insert_list(shared, objects, existing, lifetime),
    }
}

#[inline]
fn insert_one(
    shared: &Shared,
    object: VmTerm<'_>,
    existing: ExistingKey,
    lifetime: Option<Lifetime>,
) -> Result<bool, NoReply> {
    scratch::with_workspace(|work| match (lifetime, existing) {
        (Some(lifetime), _) => shared.table.insert_for(object, lifetime, existing, work),
        (None, ExistingKey::Refused) => shared.table.insert_new(object, work),
        (None, ExistingKey::Accepted) => shared.table.insert(object, work).map(|()| true),
    })
}

fn insert_list(
    shared: &Shared,
    objects: VmTerm<'_>,
    existing: ExistingKey,
    lifetime: Option<Lifetime>,
) -> Result<bool, NoReply> {
    // The list is checked first, so that an improper one is cheap to refuse.
    if proper_length(objects, usize::MAX).is_none() {
        return Err(Error::NotATuple.into());
    }
    for object in ListTerms(objects) {
        shared.table.check_object(object)?;
    }
    let (table, objects) = (&shared.table, ListTerms(objects));
    scratch::with_workspace(|work| match (lifetime, existing) {
        (Some(lifetime), _) => table.insert_many_for(objects, lifetime, existing, work),
        (None, ExistingKey::Refused) => table.insert_many_new(objects, work),
        (None, ExistingKey::Accepted) => table.insert_many(objects, work).map(|()| true),
    })
}

/// Reads the time for which objects are there: milliseconds, `infinity`, `keep`, or `default` for
/// the time of the table.
fn lifetime_of(term: VmTerm<'_>) -> Result<Lifetime, KnownAtom> {
    Ok(if KnownAtom::Default.is(term.word()) {
        Lifetime::OfTable
    } else if KnownAtom::Keep.is(term.word()) {
        Lifetime::Kept
    } else if KnownAtom::Infinity.is(term.word()) {
        Lifetime::Forever
    } else {
        Lifetime::For(milliseconds(term)?)
    })
}

/// `ttl(Table, Key)`: the milliseconds that are left to the objects of a key, `infinity`, or
/// `undefined` if it has none.
fn ttl<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let left = scratch::with_workspace(|work| shared.table.time_left(key, work))?;
    Ok(left_word(env, left))
}

fn left_word(env: Env<'_>, left: Option<TimeLeft>) -> VmWord<'_> {
    match left {
        None => KnownAtom::Undefined.word(),
        Some(TimeLeft::Forever) => KnownAtom::Infinity.word(),
        Some(TimeLeft::Time(time)) => env.uint(time.as_millis() as u64),
    }
}

/// `own_ttl(Table, Key)`: `default` if the objects of a key have the time of the table, else the
/// same as `ttl(Table, Key)`.
fn own_ttl<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let left = scratch::with_workspace(|work| shared.table.time_left_and_kind(key, work))?;
    Ok(match left {
        Some((_, false)) => KnownAtom::Default.word(),
        left => left_word(env, left.map(|(left, _)| left)),
    })
}

/// `touch(Table, Key, Lifetime)`: `true` if the key has objects.
fn touch<'e>(env: Env<'e>, [table, key, lifetime]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    let lifetime = lifetime_of(lifetime)?;
    with_writable(env, table, |shared, _| {
        scratch::with_workspace(|work| shared.table.touch(key, lifetime, work))
    })
    .map(boolean)
}

pub(super) fn lookup<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let Some(found) = look_up(shared, key, &guard)? else {
        return Ok(VmWord::NIL);
    };
    if found.is_large()
        && process::on_dirty_scheduler()
        && let Some(kept) = found.keep()
    {
        drop(guard);
        return Ok(kept_object_list(env, &kept));
    }
    object_list(env, &found)
}

#[inline(always)]
pub(super) fn member<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let found = look_up(shared, key, &guard)?;
    Ok(boolean(found.is_some()))
}

#[inline(always)]
pub(super) fn lookup_element<'e, const N: usize>(
    env: Env<'e>,
    args: [VmTerm<'e>; N],
) -> NifResult<'e> {
    let ([table, key, position], default) = with_default(&args);
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let index = index(position)?;
    let Some(found) = look_up(shared, key, &guard)? else {
        return default.map(VmTerm::word).ok_or(KnownAtom::BadKey.into());
    };
    if has_many(&found) {
        return Err(NoReply::DirtyCpu);
    }
    let words = found.len_words();
    if !shared.table.table_type().is_bag() {
        return scratch::with_read_buffers(|ReadBuffers { scratch, unpacked }| {
            let element = found.element(index, unpacked).ok_or(KnownAtom::Position)?;
            element_term(env, words, element, scratch)
        });
    }
    if let Some(kept) = found.keep() {
        drop(guard);
        return elements(env, index, words, |unpacked, visit| {
            kept.each(unpacked, visit)
        });
    }
    elements(env, index, words, |unpacked, visit| {
        found.each(unpacked, visit)
    })
}

/// Builds element `index` of each object of a key, which are `words` in all.
fn elements(
    env: Env<'_>,
    index: usize,
    words: usize,
    each: impl FnOnce(&mut UnpackBuffer, &mut EachObject<'_>) -> ControlFlow<()>,
) -> NifResult<'_> {
    scratch::with_read_buffers(|reading| {
        list_of(env, reading, each, |object, scratch| {
            let element = object.get(index).ok_or(KnownAtom::Position)?;
            element_term(env, words, element, scratch)
        })
    })
}

/// Largest number of elements of an object that are located one by one.
const FEW_POSITIONS: usize = 8;

/// `lookup_elements(Table, Key, Positions)`: a list of these elements; of bags a list of such
/// lists.
pub(super) fn lookup_elements<'e>(
    env: Env<'e>,
    [table, key, positions]: [VmTerm<'e>; 3],
) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    proper_length(positions, usize::MAX).ok_or(KnownAtom::None)?;
    let indices = ListTerms(positions)
        .map(index)
        .collect::<Result<Vec<usize>, KnownAtom>>()?;
    let found = look_up(shared, key, &guard)?.ok_or(KnownAtom::BadKey)?;
    let wanted = found.count().saturating_mul(indices.len());
    if has_many(&found) || wanted > LONG_BAG && !process::on_dirty_scheduler() {
        return Err(NoReply::DirtyCpu);
    }
    let words = found.len_words();
    let mut elements = Vec::new();
    let mut elements_of =
        |object: Object<'_, VmHost>, scratch: &mut Scratch<VmWord<'e>>| -> NifResult<'e> {
            elements.clear();
            // Locating one element costs as much as passing those before it; an index of all
            // elements pays off for many.
            let slots = (indices.len() > FEW_POSITIONS).then(|| object.elements());
            for &index in &indices {
                let element = match slots {
                    Some(slots) => slots.get(index),
                    None => object.get(index),
                };
                let element = element.ok_or(KnownAtom::Position)?;
                elements.push(element_term(env, words, element, scratch)?);
            }
            Ok(env.list(&elements))
        };
    scratch::with_read_buffers(|reading| {
        if shared.table.table_type().is_bag() {
            return list_of(
                env,
                reading,
                |unpacked, visit| found.each(unpacked, visit),
                elements_of,
            );
        }
        let only = found.only(&mut reading.unpacked);
        let only = only.expect("a key has one object here");
        elements_of(only, &mut reading.scratch)
    })
}

#[inline(always)]
pub(super) fn take<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_writable(env, table, &guard)?;
    let taken = scratch::with_key(|bytes| {
        write_key(&shared.table, key, bytes)?;
        Ok::<_, NoReply>(take_up(&shared.table, bytes, &guard)?)
    });
    let Some(taken) = taken? else {
        return Ok(VmWord::NIL);
    };
    if let Some(kept) = taken.keep() {
        drop(guard);
        return Ok(kept_object_list(env, &kept));
    }
    Ok(object_list_unlimited(env, &taken))
}

fn delete<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_writable(env, table, &guard)?;
    scratch::with_workspace(|work| shared.table.delete(key, work))?;
    Ok(KnownAtom::True.word())
}

#[inline(always)]
pub(super) fn delete_object<'e>(env: Env<'e>, [table, object]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    with_writable(env, table, |shared, guard| {
        // A normal scheduler compares at most this many objects.
        let most = guard.map_or(usize::MAX, |_| LONG_LIST);
        if scratch::with_workspace(|work| shared.table.delete_object_if_few(object, most, work))? {
            Ok(KnownAtom::True.word())
        } else {
            Err(NoReply::DirtyCpu)
        }
    })
}
