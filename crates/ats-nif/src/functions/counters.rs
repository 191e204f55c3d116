//! Changes of single elements of objects: `update_counter` and `update_element`.

use super::access::{check_not_bag, with_writable};
use super::arguments::{LONG_LIST, ListTerms, position, proper_length, with_default};
use super::object_terms::look_up;
use crate::atoms::{KnownAtom, boolean};
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::handle::Shared;
use crate::vm_sink::VmSink;
use crate::vm_term::VmTerm;
use crate::{nif, process, scratch, sys};
use ats::terms::{CounterOp, Integer};
use ats_term::term_ref::TermSink;
use smallvec::SmallVec;

/// A list that needs no block of memory while it is short.
pub(super) type Few<T> = SmallVec<[T; 4]>;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("update_counter", update_counter, 3),
        nif!("update_counter", update_counter, 4),
        nif!("update_element", update_element, 3),
        nif!("update_element", update_element, 4),
    ]
}

/// The object to change.
#[derive(Clone, Copy)]
struct Target<'a, 'e> {
    shared: &'a Shared,
    key: VmTerm<'e>,
    /// The object to insert if the key is absent.
    default: Option<VmTerm<'e>>,
}

/// Changes the object of a key, in a table with at most one object for a key.
#[inline(always)]
fn change<'e>(
    env: Env<'e>,
    [table, key, how]: [VmTerm<'e>; 3],
    default: Option<VmTerm<'e>>,
    work: impl FnOnce(Target<'_, 'e>, VmTerm<'e>) -> NifResult<'e>,
) -> NifResult<'e> {
    with_writable(env, table, |shared, _| {
        let shared = check_not_bag(shared)?;
        let target = Target {
            shared,
            key,
            default,
        };
        work(target, how)
    })
}

#[inline(always)]
pub(super) fn update_counter<'e, const N: usize>(
    env: Env<'e>,
    args: [VmTerm<'e>; N],
) -> NifResult<'e> {
    let (args, default) = with_default(&args);
    change(env, args, default, |target, ops| target.update(env, ops))
}

#[inline(always)]
pub(super) fn update_element<'e, const N: usize>(
    env: Env<'e>,
    args: [VmTerm<'e>; N],
) -> NifResult<'e> {
    let (args, default) = with_default(&args);
    change(env, args, default, |target, specs| target.replace(specs))
}

impl<'e> Target<'_, 'e> {
    fn update(self, env: Env<'e>, ops: VmTerm<'e>) -> NifResult<'e> {
        let values = if is_list(ops) {
            self.update_several(env, ops)
        } else {
            self.update_one(env, ops)
        };
        values.map_err(|no_reply| match self.lacks_key(no_reply) {
            Ok(true) => KnownAtom::BadKey.into(),
            Ok(false) => no_reply,
            Err(other) => other,
        })
    }

    fn update_one(self, env: Env<'e>, op: VmTerm<'e>) -> NifResult<'e> {
        let table = &self.shared.table;
        let op = match Integer::from_term(op) {
            Some(increment) => CounterOp {
                position: table.key_position() + 1,
                increment,
                wrap: None,
            },
            None => counter_op(op)?,
        };
        let value = scratch::with_workspace(|work| {
            table.update_one_counter(self.key, &op, self.default, work)
        })?;
        Ok(integer(env, &value))
    }

    fn update_several(self, env: Env<'e>, ops: VmTerm<'e>) -> NifResult<'e> {
        let mut parsed = Few::new();
        parse_list(ops, counter_op, &mut parsed)?;
        let table = &self.shared.table;
        let mut values = Few::<Integer>::new();
        scratch::with_workspace(|work| {
            table.update_counter_into(self.key, &parsed, self.default, work, &mut values)
        })?;
        let values: Few<VmWord<'e>> = values.iter().map(|value| integer(env, value)).collect();
        Ok(env.list(&values))
    }

    fn replace(self, specs: VmTerm<'e>) -> NifResult<'e> {
        let replaced = if is_list(specs) {
            let mut values = Few::new();
            parse_list(specs, element_spec, &mut values)
                .and_then(|()| self.replace_elements(&values))
        } else {
            element_spec(specs)
                .map_err(NoReply::from)
                .and_then(|value| self.replace_elements(&[value]))
        };
        match replaced {
            Ok(replaced) => Ok(boolean(replaced)),
            Err(no_reply) if self.lacks_key(no_reply)? => Ok(boolean(false)),
            Err(no_reply) => Err(no_reply),
        }
    }

    #[inline]
    fn replace_elements(self, values: &[(usize, VmTerm<'e>)]) -> Result<bool, NoReply> {
        let table = &self.shared.table;
        scratch::with_workspace(|work| table.update_element(self.key, values, self.default, work))
    }

    /// Returns `true` if a call is refused because the key is absent. `ets` looks for the key
    /// before it checks the operations on the object, so a missing key takes precedence over any
    /// other error. The key may have come or gone since the refusal; both answers are then right,
    /// each for a moment within the call. Ends with [`NoReply::DirtyCpu`] if the lookup takes long.
    fn lacks_key(self, no_reply: NoReply) -> Result<bool, NoReply> {
        if self.default.is_some() || !matches!(no_reply, NoReply::Refused(_)) {
            return Ok(false);
        }
        Ok(look_up(self.shared, self.key, &ats_sync::pin())?.is_none())
    }
}

/// Parses the terms of a proper list and adds the results to `into`; ends with
/// [`NoReply::DirtyCpu`] if they are many.
#[inline]
pub(super) fn parse_list<'e, T>(
    list: VmTerm<'e>,
    read: impl Fn(VmTerm<'e>) -> Result<T, KnownAtom>,
    into: &mut Few<T>,
) -> Result<(), NoReply> {
    let len = proper_length(list, LONG_LIST + 1).ok_or(KnownAtom::None)?;
    if len > LONG_LIST {
        if !process::on_dirty_scheduler() {
            return Err(NoReply::DirtyCpu);
        }
        proper_length(list, usize::MAX).ok_or(KnownAtom::None)?;
    }
    for term in ListTerms(list) {
        into.push(read(term)?);
    }
    Ok(())
}

pub(super) fn is_list(term: VmTerm<'_>) -> bool {
    term.is_nil() || term.as_cons().is_some()
}

/// Parses `{Position, Increment}` or `{Position, Increment, Threshold, SetValue}`.
pub(super) fn counter_op(term: VmTerm<'_>) -> Result<CounterOp, KnownAtom> {
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

pub(super) fn integer<'e>(env: Env<'e>, value: &Integer) -> VmWord<'e> {
    value.with_parts(|parts| match parts {
        Ok(value) => env.int(value),
        Err((negative, magnitude)) => VmSink::new(env).big(negative, magnitude),
    })
}

/// Parses `{Position, Value}`.
pub(super) fn element_spec(term: VmTerm<'_>) -> Result<(usize, VmTerm<'_>), KnownAtom> {
    match term.tuple_words() {
        Some([at, value]) => {
            let at = position(VmTerm::of(term.env(), *at))?;
            Ok((at, VmTerm::of(term.env(), *value)))
        }
        _ => Err(KnownAtom::None),
    }
}
