//! Ranges of keys, given by their bounds.

use super::reading::{self, SliceSource};
use super::slices::{Operation, find_for, is_of_one_moment, start};
use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::query::{self, Compiled, Prepared};
use crate::resource::ResourceRef;
use crate::scratch::limit;
use crate::vm_term::VmTerm;
use crate::{nif, otp_release, sys};
use ats::terms::select::Query;
use ats_term::order::{self, Prefix};
use ats_term::term_ref::{has_part, is_larger};
use ats_term::{Kind, TermRef};
use std::sync::Arc;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![nif!("range_start", range_start, 5)]
}

/// `range_start(Table, MatchSpec | keys, From, To, Operation)`: like `select_start`, but reads only
/// the keys between two bounds; `keys` selects the key of each object. A bound is `none`, `{before,
/// Key}`, `{behind, Key}`, or `{prefix, Pattern}`, before or behind all keys that match the
/// pattern; or `{bytes, Key}`, before an encoded key.
fn range_start<'e>(
    env: Env<'e>,
    [table, spec, from, to, operation]: [VmTerm<'e>; 5],
) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let operation = Operation::of(env, operation)?;
    let shared = find_for(env, table, operation, &guard)?;
    let table = &shared.table;
    if !table.table_type().is_ordered() {
        return Err(KnownAtom::TableType.into());
    }
    let spec = if KnownAtom::Keys.is(spec.word()) {
        VmTerm::of(env, keys_spec(env, table.key_position()))
    } else {
        spec
    };
    let from = boundary(env, from, RangeEnd::From)?.unwrap_or_default();
    let to = boundary(env, to, RangeEnd::To)?;
    let program = query::with_known(table, spec, |known, _| {
        Ok(Arc::clone(known.query.program()))
    })?;
    let query = Arc::new(Query::within(program, table, from, to));
    let compiled = ResourceRef::new(Compiled::of_query(&query));
    let prepared = Prepared::with_compiled(query, compiled);
    if !is_of_one_moment(shared, &prepared, operation) {
        return start(env, operation, shared, &prepared, SliceSource::None, &guard);
    }
    // A query must begin on a thread that is not pinned.
    let shared = shared.to_arc();
    drop(guard);
    let source = reading::begin(&shared)?;
    start(env, operation, &shared, &prepared, source, &ats_sync::pin())
}

/// Builds `[{'_', [], [{element, KeyPosition, '$_'}]}]`.
fn keys_spec(env: Env<'_>, key_position: usize) -> VmWord<'_> {
    let position = env.uint(key_position as u64);
    let key = env.tuple(&[
        KnownAtom::Element.word(),
        position,
        KnownAtom::WholeObject.word(),
    ]);
    let clause = env.tuple(&[KnownAtom::Underscore.word(), VmWord::NIL, env.list(&[key])]);
    env.list(&[clause])
}

/// An end of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeEnd {
    From,
    To,
}

/// Encodes a bound.
pub(super) fn boundary<'e>(
    env: Env<'e>,
    term: VmTerm<'e>,
    end: RangeEnd,
) -> Result<Option<Vec<u8>>, NoReply> {
    if KnownAtom::None.is(term.word()) {
        return Ok(None);
    }
    let Some(&[tag, key]) = term.tuple_words() else {
        return Err(KnownAtom::None.into());
    };
    let key = VmTerm::of(env, key);
    if KnownAtom::Bytes.is(tag) {
        let bytes = key.as_bytes().ok_or(KnownAtom::None)?;
        return Ok(Some(bytes.to_vec()));
    }
    let mut front = Prefix::new(otp_release::zeros());
    if KnownAtom::Prefix.is(tag) {
        if is_larger(key, limit()) {
            return Err(NoReply::DirtyCpu);
        }
        write_front(key, &mut front)?;
    } else {
        write_term(key, &mut front)?;
    }
    let bytes = front.into_bytes();
    let is_behind = KnownAtom::Behind.is(tag) || KnownAtom::Prefix.is(tag) && end == RangeEnd::To;
    Ok(Some(if is_behind {
        order::prefix_end(&bytes)
    } else {
        bytes
    }))
}

/// Writes the part of a pattern before the first `'_'`, at any depth. Only `'_'` may follow: any
/// other term, also the end of a list or another tuple, would exclude some of the keys with this
/// prefix.
fn write_front(pattern: VmTerm<'_>, front: &mut Prefix) -> Result<(), NoReply> {
    let is_underscore = |part: VmTerm<'_>| KnownAtom::Underscore.is(part.word());
    let mut todo = vec![pattern];
    let mut open = false;
    while let Some(part) = todo.pop() {
        match part.kind() {
            _ if is_underscore(part) => open = true,
            _ if open => return Err(KnownAtom::None.into()),
            Kind::Tuple(arity) => {
                front.tuple(arity);
                todo.extend((0..arity).rev().map(|i| part.element(i)));
            }
            Kind::Cons(head, tail) => {
                front.cons();
                todo.extend([tail, head]);
            }
            // The encoding of a map begins with all its keys, so a prefix cannot end among its
            // values.
            Kind::Map(_) if has_part(part, |part, _| is_underscore(part)) => {
                return Err(KnownAtom::None.into());
            }
            _ => write_term(part, front)?,
        }
    }
    Ok(())
}

/// Appends a term; ends with [`NoReply::DirtyCpu`] if that takes long.
fn write_term(term: VmTerm<'_>, front: &mut Prefix) -> Result<(), NoReply> {
    let most = limit().saturating_mul(size_of::<u64>());
    if front.term_within(term, most) {
        Ok(())
    } else {
        Err(NoReply::DirtyCpu)
    }
}
