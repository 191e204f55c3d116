//! Merges into elements of objects.

use super::access::{check_not_bag, with_writable};
use super::arguments::{position, with_default};
use super::object_terms::look_up;
use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::env::Env;
use crate::handle::Shared;
use crate::scratch::ReadBuffers;
use crate::vm_sink::make_term;
use crate::vm_term::VmTerm;
use crate::{nif, scratch, sys};
use ats::terms::{Locking, Merge, MergedValue, Merging};
use ats_sync::Guard;
use ats_term::TermRef;
use ats_term::term_ref::{Kind, is_larger};

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![nif!("merge", merge, 4), nif!("merge", merge, 5)]
}

pub(super) fn merge<'e, const N: usize>(env: Env<'e>, args: [VmTerm<'e>; N]) -> NifResult<'e> {
    let ([table, key, operand, how], default) = with_default(&args);
    with_writable(env, table, |shared, guard| {
        let shared = check_not_bag(shared)?;
        if guard.is_some() && is_larger(how, LONG) {
            return Err(NoReply::DirtyCpu);
        }
        let (at, merge) = element_and_merge(shared, how)?;
        if let Some(default) = default {
            let checked = shared.table.check_object(default);
            checked.map_err(|_| KnownAtom::Default)?;
        }
        let locking = match guard {
            None => Locking::AfterMerging,
            // A long merge holds a lock that other keys share, so it must not run on a normal
            // scheduler.
            Some(guard) if is_long(shared, key, at, operand, &merge, guard) => {
                return Err(NoReply::DirtyCpu);
            }
            Some(_) => Locking::First,
        };
        let merging = Merging {
            key,
            position: at,
            operand,
            merge: &merge,
            default,
            locking,
        };
        scratch::with_workspace(|work| {
            shared.table.merge(merging, work, |value| match value {
                MergedValue::Small(value) => env.int(value),
                MergedValue::Term(term) => {
                    scratch::with_read_buffers(|ReadBuffers { scratch, .. }| {
                        make_term(env, term, scratch)
                    })
                }
            })
        })
    })
}

/// Parses `Merge` or `{Position, Merge}`.
pub(super) fn element_and_merge(
    shared: &Shared,
    how: VmTerm<'_>,
) -> Result<(usize, Merge), KnownAtom> {
    let of_term = |term| Merge::from_term(term).ok_or(KnownAtom::Merge);
    match how.tuple_words() {
        Some(&[at, merge]) if VmTerm::of(how.env(), at).as_small().is_some() => {
            let at = position(VmTerm::of(how.env(), at))?;
            Ok((at, of_term(VmTerm::of(how.env(), merge))?))
        }
        _ => Ok((shared.table.key_position() + 1, of_term(how)?)),
    }
}

/// Size in words above which values are merged on a dirty scheduler, unless the merge is as cheap
/// as an insert: values of this size take well under a millisecond. The same limit applies to the
/// term that describes the merge.
const LONG: usize = 4_000;

/// Returns `true` if the values are too large for a merge on this scheduler.
fn is_long(
    shared: &Shared,
    key: VmTerm<'_>,
    at: usize,
    operand: VmTerm<'_>,
    merge: &Merge,
    guard: &Guard,
) -> bool {
    // A term without parts is cheap to compare with any term.
    let can_be = merge.is_of_collections() || (merge.needs_comparison() && has_parts(operand));
    if !can_be || is_larger(operand, LONG) {
        return can_be;
    }
    let found = match look_up(shared, key, guard) {
        Ok(Some(found)) => found,
        Ok(None) => return false,
        Err(_) => return true,
    };
    scratch::with_read_buffers(|ReadBuffers { unpacked, .. }| {
        let value = at.checked_sub(1);
        let value = value.and_then(|at| found.element(at, unpacked));
        value.is_some_and(|value| is_larger(value, LONG))
    })
}

/// Returns `true` if merges of some values may take long.
pub(super) fn needs_time(merge: &Merge) -> bool {
    merge.is_of_collections() || merge.needs_comparison()
}

fn has_parts(term: VmTerm<'_>) -> bool {
    !term.is_immediate() && !matches!(term.kind(), Kind::Int(_) | Kind::Float(_))
}
