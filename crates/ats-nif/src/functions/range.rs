//! Ranges of keys, given by their ends.

use super::select::{How, Work, allowed};
use crate::atoms::Known;
use crate::call::NifResult;
use crate::env::{Env, VmWord};
use crate::query::{self, Compiled, Prepared};
use crate::resource::ResourceRef;
use crate::vm_term::VmTerm;
use crate::{load, nif, sys};
use ats::TableType;
use ats::select::Query;
use ats_term::order::{self, Prefix};
use ats_term::{Kind, TermRef};
use std::sync::Arc;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![nif!("range_start", range_start, 5)]
}

/// `range_start(Table, MatchSpec, From, To, How)`: as `select_start`, but reads the keys between two cuts, and no
/// more, whatever the specification says. A cut is `none`, `{before, Key}`, `{behind, Key}`, or `{prefix, Pattern}`,
/// before or behind all keys that begin as the pattern does before its first `'_'`.
fn range_start<'e>(env: Env<'e>, [table, spec, from, to, how]: [VmTerm<'e>; 5]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let how = How::of(env, how)?;
    let shared = allowed(env, table, how, &guard)?;
    let table = &shared.table;
    if table.table_type() != TableType::OrderedSet {
        return Err(Known::TableType);
    }
    let from = cut(env, from, End::From)?.unwrap_or_default();
    let to = cut(env, to, End::To)?;
    let program = query::with_prepared(table, spec, |known, _| {
        Ok(Arc::clone(known.query.program()))
    })?;
    let query = Arc::new(Query::within(program, table, from, to));
    let compiled = ResourceRef::new(Compiled::of_query(&query));
    let prepared = Prepared { query, compiled };
    Work::new(env, how, VmWord::NIL).go_on(shared, &prepared, how.start(), &guard)
}

/// The ends of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    From,
    To,
}

/// The bytes at a cut.
fn cut<'e>(env: Env<'e>, term: VmTerm<'e>, end: End) -> Result<Option<Vec<u8>>, Known> {
    if Known::None.is(term.word()) {
        return Ok(None);
    }
    let Some(&[tag, key]) = term.tuple_words() else {
        return Err(Known::None);
    };
    let key = VmTerm::of(env, key);
    let mut front = Prefix::new(load::zeros());
    if Known::Prefix.is(tag) {
        write_front(key, &mut front)?;
    } else {
        front.term(key);
    }
    let bytes = front.into_bytes();
    let is_behind = Known::Behind.is(tag) || Known::Prefix.is(tag) && end == End::To;
    Ok(Some(match is_behind {
        true => order::prefix_end(&bytes),
        false => bytes,
    }))
}

/// Writes what is before the first `'_'` of a tuple or list; behind it, nothing else may be.
fn write_front(pattern: VmTerm<'_>, front: &mut Prefix) -> Result<(), Known> {
    let is_open = |term: VmTerm<'_>| Known::Underscore.is(term.word());
    let mut open = false;
    let mut part = |term: VmTerm<'_>, front: &mut Prefix| match (open, is_open(term)) {
        (true, false) => Err(Known::None),
        (_, true) => {
            open = true;
            Ok(())
        }
        (false, false) => {
            front.term(term);
            Ok(())
        }
    };
    match pattern.kind() {
        Kind::Tuple(arity) => {
            front.tuple(arity);
            (0..arity).try_for_each(|i| part(pattern.element(i), front))
        }
        Kind::Cons(..) => {
            let mut rest = pattern;
            while let Kind::Cons(head, tail) = rest.kind() {
                if !is_open(head) {
                    front.cons();
                }
                part(head, front)?;
                rest = tail;
            }
            part(rest, front)
        }
        _ => part(pattern, front),
    }
}
