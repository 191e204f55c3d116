//! Walking over keys.

use super::{cause, key_term, object_list, readable};
use crate::atoms::Known;
use crate::call::NifResult;
use crate::env::{Env, VmWord};
use crate::foreign::Vm;
use crate::handle::Shared;
use crate::scratch::Reading;
use crate::vm_sink::make_object;
use crate::vm_term::VmTerm;
use crate::{nif, process, scratch, sys};
use ats::{Found, SlotAnswer, TableType};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("first", first, 1),
        nif!("last", last, 1),
        nif!("next", next, 2),
        nif!("prev", prev, 2),
        nif!("first_lookup", first_lookup, 1),
        nif!("last_lookup", last_lookup, 1),
        nif!("next_lookup", next_lookup, 2),
        nif!("prev_lookup", prev_lookup, 2),
        nif!("slot", slot, 2),
        nif!("chunk", chunk, 3),
    ]
}

/// Which way to go.
#[derive(Clone, Copy)]
enum Way {
    Up,
    Down,
}

/// What to return of the key that was found.
type Shape = for<'e> fn(Env<'e>, &Shared, &Found<'_, Vm>) -> VmWord<'e>;

fn with_objects<'e>(env: Env<'e>, shared: &Shared, found: &Found<'_, Vm>) -> VmWord<'e> {
    env.tuple(&[key_term(env, shared, found), object_list(env, found)])
}

fn end<'e>(env: Env<'e>, table: VmTerm<'e>, way: Way, shape: Shape) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let found = match way {
        Way::Up => shared.table.first(&guard),
        Way::Down => shared.table.last(&guard),
    };
    Ok(shaped(env, shared, found, shape))
}

fn step<'e>(
    env: Env<'e>,
    table: VmTerm<'e>,
    key: VmTerm<'e>,
    way: Way,
    shape: Shape,
) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let table = &shared.table;
    if table.table_type() == TableType::OrderedSet && Known::EndOfTable.is(key.word()) {
        return Err(Known::None);
    }
    let found = scratch::with_key(|bytes| {
        table.key_bytes(key, bytes);
        match way {
            Way::Up => table.next(bytes, &guard),
            Way::Down => table.prev(bytes, &guard),
        }
    });
    Ok(shaped(env, shared, found.map_err(cause)?, shape))
}

fn shaped<'e>(
    env: Env<'e>,
    shared: &Shared,
    found: Option<Found<'_, Vm>>,
    shape: Shape,
) -> VmWord<'e> {
    found.map_or(Known::EndOfTable.word(), |found| shape(env, shared, &found))
}

fn first<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    end(env, table, Way::Up, key_term)
}

fn last<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    end(env, table, Way::Down, key_term)
}

fn next<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    step(env, table, key, Way::Up, key_term)
}

fn prev<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    step(env, table, key, Way::Down, key_term)
}

fn first_lookup<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    end(env, table, Way::Up, with_objects)
}

fn last_lookup<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    end(env, table, Way::Down, with_objects)
}

fn next_lookup<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    step(env, table, key, Way::Up, with_objects)
}

fn prev_lookup<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    step(env, table, key, Way::Down, with_objects)
}

/// Objects of an `ordered_set` beyond this place are looked for on a dirty scheduler.
const FAR_SLOT: usize = 10_000;

fn slot<'e>(env: Env<'e>, [table, index]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let index = index
        .as_small()
        .and_then(|index| usize::try_from(index).ok());
    let index = index.ok_or(Known::None)?;
    let ordered = shared.table.table_type() == TableType::OrderedSet;
    if ordered && index > FAR_SLOT && !process::on_dirty_scheduler() {
        return Err(Known::Dirty);
    }
    let mut objects = Vec::new();
    let answer = scratch::with_reading(|Reading { scratch, room }| {
        shared.table.slot(index, &guard, &mut |found| {
            let _all = found.each(room, |object| {
                objects.push(make_object(env, object, scratch));
                ControlFlow::Continue(())
            });
        })
    });
    match answer {
        SlotAnswer::Here => Ok(env.list(&objects)),
        SlotAnswer::End => Ok(Known::EndOfTable.word()),
        SlotAnswer::Beyond => Err(Known::None),
    }
}

/// A chunk takes no longer than about this, however large its objects are.
const CHUNK_TIME: Duration = Duration::from_micros(500);
/// Records between two looks at the clock.
const CHUNK_LOOK: usize = 16;

/// `chunk(Table, start | {after_key, Key}, MostObjects) -> {Objects, done | {after_key, Key}}`:
/// the objects of the next keys, in the order of the table.
fn chunk<'e>(env: Env<'e>, [table, from, most]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let most = most
        .as_small()
        .filter(|most| *most > 0)
        .ok_or(Known::None)? as usize;
    let after = match from.tuple_words() {
        Some([_, key]) => Some(VmTerm::of(env, *key)),
        _ => None,
    };
    let mut objects = Vec::new();
    let mut last = None;
    let mut stopped = false;
    let mut keys = 0;
    let begun = Instant::now();
    scratch::with_key(|bytes| {
        if let Some(key) = after {
            shared.table.key_bytes(key, bytes);
        }
        let after = after.is_some().then_some(&bytes[..]);
        scratch::with_reading(|Reading { scratch, room }| {
            shared.table.scan(after, &guard, &mut |found| {
                let _all = found.each(room, |object| {
                    objects.push(make_object(env, object, scratch));
                    ControlFlow::Continue(())
                });
                last = Some(found);
                keys += 1;
                let late = keys % CHUNK_LOOK == 0 && begun.elapsed() > CHUNK_TIME;
                stopped = late || objects.len() >= most;
                match stopped {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            })
        })
    })
    .map_err(cause)?;
    let rest = match last {
        Some(found) if stopped => {
            env.tuple(&[Known::AfterKey.word(), key_term(env, shared, &found)])
        }
        _ => Known::Done.word(),
    };
    // SAFETY: the environment of this call.
    unsafe { sys::enif_consume_timeslice(env.raw(), 10) };
    Ok(env.tuple(&[env.list(&objects), rest]))
}
