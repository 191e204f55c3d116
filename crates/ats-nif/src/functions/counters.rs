//! Changing elements of objects: `update_counter` and `update_element`.

use super::{ListTerms, boolean, copying, found, is_long_list, proper_length, writable};
use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::handle::Shared;
use crate::vm_sink::VmSink;
use crate::vm_term::VmTerm;
use crate::{nif, process, sys};
use ats::{CounterOp, Integer};
use ats_term::walk::TermSink;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("update_counter", update_counter, 3),
        nif!("update_counter", update_counter_or, 4),
        nif!("update_element", update_element, 3),
        nif!("update_element", update_element_or, 4),
    ]
}

fn update_counter<'e>(env: Env<'e>, [table, key, ops]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    count(env, table, key, ops, None)
}

fn update_counter_or<'e>(
    env: Env<'e>,
    [table, key, ops, default]: [VmTerm<'e>; 4],
) -> NifResult<'e> {
    count(env, table, key, ops, Some(default))
}

fn count<'e>(
    env: Env<'e>,
    table: VmTerm<'e>,
    key: VmTerm<'e>,
    ops: VmTerm<'e>,
    default: Option<VmTerm<'e>>,
) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = not_a_bag(writable(env, table, &guard)?)?;
    if process::on_dirty_scheduler() {
        // A long call must not keep what other calls remove meanwhile from being freed.
        let held = shared.hold();
        drop(guard);
        return count_in(env, &held, key, ops, default);
    }
    count_in(env, shared, key, ops, default)
}

fn count_in<'e>(
    env: Env<'e>,
    shared: &Shared,
    key: VmTerm<'e>,
    ops: VmTerm<'e>,
    default: Option<VmTerm<'e>>,
) -> NifResult<'e> {
    let values = if is_list(ops) {
        change_several(env, shared, key, ops, default)
    } else {
        change_one(env, shared, key, ops, default)
    };
    values.map_err(
        |no_reply| match is_for_missing_key(no_reply, shared, key, default) {
            Ok(true) => KnownAtom::BadKey.into(),
            Ok(false) => no_reply,
            Err(other) => other,
        },
    )
}

fn change_one<'e>(
    env: Env<'e>,
    shared: &Shared,
    key: VmTerm<'e>,
    op: VmTerm<'e>,
    default: Option<VmTerm<'e>>,
) -> NifResult<'e> {
    let op = match Integer::from_term(op) {
        Some(increment) => CounterOp {
            position: shared.table.key_position() + 1,
            increment,
            wrap: None,
        },
        None => counter_op(op)?,
    };
    let table = &shared.table;
    let value = copying(|work| table.update_one_counter(key, &op, default, work))?;
    Ok(integer(env, &value))
}

fn change_several<'e>(
    env: Env<'e>,
    shared: &Shared,
    key: VmTerm<'e>,
    ops: VmTerm<'e>,
    default: Option<VmTerm<'e>>,
) -> NifResult<'e> {
    if is_long_list(ops) {
        return Err(NoReply::DirtyCpu);
    }
    proper_length(ops, usize::MAX).ok_or(KnownAtom::None)?;
    let ops = ListTerms(ops)
        .map(counter_op)
        .collect::<Result<Vec<_>, _>>()?;
    let table = &shared.table;
    let values = copying(|work| table.update_counter(key, &ops, default, work))?;
    let values: Vec<VmWord<'e>> = values.iter().map(|value| integer(env, value)).collect();
    Ok(env.list(&values))
}

/// Whether a refusal concerns a key that is not there. `ets` looks for the key before it looks at
/// what to do with the object, so a missing key counts more than whatever is wrong with that. The
/// key may have come or gone since the refusal; both answers are then right, each for a moment
/// within the call. [`NoReply::DirtyCpu`] if it takes long to look for the key.
fn is_for_missing_key(
    no_reply: NoReply,
    shared: &Shared,
    key: VmTerm<'_>,
    default: Option<VmTerm<'_>>,
) -> Result<bool, NoReply> {
    if default.is_some() || !matches!(no_reply, NoReply::Refused(_)) {
        return Ok(false);
    }
    Ok(found(shared, key, &ats_sync::pin())?.is_none())
}

fn is_list(term: VmTerm<'_>) -> bool {
    term.is_nil() || term.as_cons().is_some()
}

pub(super) fn not_a_bag(shared: &Shared) -> Result<&Shared, KnownAtom> {
    match shared.table.table_type().is_bag() {
        true => Err(KnownAtom::TableType),
        false => Ok(shared),
    }
}

/// `{Position, Increment}` or `{Position, Increment, Threshold, SetValue}`.
fn counter_op(term: VmTerm<'_>) -> Result<CounterOp, KnownAtom> {
    let parts = term.tuple_words().ok_or(KnownAtom::None)?;
    let integer =
        |at: usize| Integer::from_term(VmTerm::of(term.env(), parts[at])).ok_or(KnownAtom::None);
    let wrap = match parts.len() {
        2 => None,
        4 => Some((integer(2)?, integer(3)?)),
        _ => return Err(KnownAtom::None),
    };
    Ok(CounterOp {
        position: position(VmTerm::of(term.env(), parts[0]))?,
        increment: integer(1)?,
        wrap,
    })
}

/// A position; those that no object can have are all the same to us.
pub(super) fn position(term: VmTerm<'_>) -> Result<usize, KnownAtom> {
    let position = term.as_small().ok_or(KnownAtom::None)?;
    usize::try_from(position).map_err(|_| KnownAtom::Position)
}

fn integer<'e>(env: Env<'e>, value: &Integer) -> VmWord<'e> {
    value.with_parts(|parts| match parts {
        Ok(value) => env.int(value),
        Err((negative, magnitude)) => VmSink::new(env).big(negative, magnitude),
    })
}

fn update_element<'e>(env: Env<'e>, [table, key, specs]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    replace(env, table, key, specs, None)
}

fn update_element_or<'e>(
    env: Env<'e>,
    [table, key, specs, default]: [VmTerm<'e>; 4],
) -> NifResult<'e> {
    replace(env, table, key, specs, Some(default))
}

fn replace<'e>(
    env: Env<'e>,
    table: VmTerm<'e>,
    key: VmTerm<'e>,
    specs: VmTerm<'e>,
    default: Option<VmTerm<'e>>,
) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = not_a_bag(writable(env, table, &guard)?)?;
    if process::on_dirty_scheduler() {
        let held = shared.hold();
        drop(guard);
        return replace_in(&held, key, specs, default);
    }
    replace_in(shared, key, specs, default)
}

fn replace_in<'e>(
    shared: &Shared,
    key: VmTerm<'e>,
    specs: VmTerm<'e>,
    default: Option<VmTerm<'e>>,
) -> NifResult<'e> {
    let table = &shared.table;
    let done = element_specs(specs)
        .and_then(|values| copying(|work| table.update_element(key, &values, default, work)));
    match done {
        Err(no_reply) => match is_for_missing_key(no_reply, shared, key, default)? {
            true => Ok(boolean(false)),
            false => Err(no_reply),
        },
        Ok(replaced) => Ok(boolean(replaced)),
    }
}

fn element_specs(specs: VmTerm<'_>) -> Result<Vec<(usize, VmTerm<'_>)>, NoReply> {
    if is_list(specs) {
        if is_long_list(specs) {
            return Err(NoReply::DirtyCpu);
        }
        proper_length(specs, usize::MAX).ok_or(KnownAtom::None)?;
        return Ok(ListTerms(specs)
            .map(element_spec)
            .collect::<Result<_, _>>()?);
    }
    Ok(vec![element_spec(specs)?])
}

/// `{Position, Value}`.
fn element_spec(term: VmTerm<'_>) -> Result<(usize, VmTerm<'_>), KnownAtom> {
    match term.tuple_words() {
        Some([at, value]) => {
            let at = position(VmTerm::of(term.env(), *at))?;
            Ok((at, VmTerm::of(term.env(), *value)))
        }
        _ => Err(KnownAtom::None),
    }
}
