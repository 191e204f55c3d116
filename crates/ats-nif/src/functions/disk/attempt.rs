//! Functions of all tables, with refusals as return values.
//!
//! A table on disk refuses a read that may succeed later, if a program has to merge the values of
//! the key first. So callers of such a table get a tagged value where others get an exception.
//!
//! Functions that are hot for tables in memory are always inlined: this second caller must not
//! prevent that at their entry.

use crate::atoms::{self, KnownAtom};
use crate::call::{NifResult, NoReply};
use crate::env::Env;
use crate::functions::arguments::ListTerms;
use crate::functions::{counters, merge, objects, pop, transact, walks};
use crate::vm_term::VmTerm;
use crate::{nif, sys};

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![nif!("disk_try", disk_try, 3)]
}

/// More than the number of arguments after the table of any of these functions.
const MANY: usize = 5;

/// `disk_try(Table, Function, Arguments)`: calls a function with these arguments after the table:
/// `{ok, Answer}`, or `{refused, Cause}`.
fn disk_try<'e>(env: Env<'e>, [table, function, arguments]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    if !function.is_atom() {
        return Err(KnownAtom::None.into());
    }
    let (mut given, mut count) = ([table; MANY], 0);
    for (given, argument) in given.iter_mut().zip(ListTerms(arguments)) {
        *given = argument;
        count += 1;
    }
    let (tag, answer) = match call(env, table, atoms::text(function.word()), &given[..count]) {
        Ok(answer) => (KnownAtom::Ok, answer),
        Err(NoReply::Refused(cause)) => (KnownAtom::Refused, cause.word()),
        Err(later) => return Err(later),
    };
    Ok(env.tuple(&[tag.word(), answer]))
}

fn call<'e>(
    env: Env<'e>,
    table: VmTerm<'e>,
    function: &str,
    arguments: &[VmTerm<'e>],
) -> NifResult<'e> {
    match (function, arguments) {
        ("lookup", &[key]) => objects::lookup(env, [table, key]),
        ("member", &[key]) => objects::member(env, [table, key]),
        ("lookup_element", &[key, at]) => objects::lookup_element(env, [table, key, at]),
        ("lookup_element", &[key, at, default]) => {
            objects::lookup_element(env, [table, key, at, default])
        }
        ("lookup_elements", &[key, at]) => objects::lookup_elements(env, [table, key, at]),
        ("first", &[]) => walks::first(env, [table]),
        ("last", &[]) => walks::last(env, [table]),
        ("next", &[key]) => walks::next(env, [table, key]),
        ("prev", &[key]) => walks::prev(env, [table, key]),
        ("first_lookup", &[]) => walks::first_lookup(env, [table]),
        ("last_lookup", &[]) => walks::last_lookup(env, [table]),
        ("next_lookup", &[key]) => walks::next_lookup(env, [table, key]),
        ("prev_lookup", &[key]) => walks::prev_lookup(env, [table, key]),
        ("slot", &[index]) => walks::slot(env, [table, index]),
        ("insert", &[objects]) => objects::insert(env, [table, objects]),
        ("insert_new", &[objects]) => objects::insert_new(env, [table, objects]),
        ("delete_object", &[object]) => objects::delete_object(env, [table, object]),
        ("take", &[key]) => objects::take(env, [table, key]),
        ("take_first", &[]) => pop::take_first(env, [table]),
        ("take_last", &[]) => pop::take_last(env, [table]),
        ("update_counter", &[key, how]) => counters::update_counter(env, [table, key, how]),
        ("update_counter", &[key, how, default]) => {
            counters::update_counter(env, [table, key, how, default])
        }
        ("update_element", &[key, how]) => counters::update_element(env, [table, key, how]),
        ("update_element", &[key, how, default]) => {
            counters::update_element(env, [table, key, how, default])
        }
        ("merge", &[key, operand, how]) => merge::merge(env, [table, key, operand, how]),
        ("merge", &[key, operand, how, default]) => {
            merge::merge(env, [table, key, operand, how, default])
        }
        ("transact", &[conditions, then, otherwise]) => {
            transact::transact(env, [table, conditions, then, otherwise])
        }
        _ => Err(KnownAtom::None.into()),
    }
}
