//! Objects of an ordered table by rank.

use super::access::find_readable;
use super::range::{RangeEnd, boundary};
use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::scratch::{self, ReadBuffers};
use crate::vm_host::VmHost;
use crate::vm_sink::make_object;
use crate::vm_term::VmTerm;
use crate::{nif, process, sys};
use ats::terms::Direction::{self, Down, Up};
use ats::terms::{KeyRange, LookupResult, Passage, Skipped};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("range_size", range_size, 3),
        nif!("range_nth", range_nth, 4),
    ]
}

/// Time after which a call moves to a dirty scheduler, as the first count of a table does.
/// Completed counts are kept.
const SLICE: Duration = Duration::from_micros(500);
/// Time slice on a dirty scheduler: for so long a call may delay the reclamation of memory.
const LONG_SLICE: Duration = Duration::from_millis(5);

/// Number of objects of one key that take long to pass.
const LONG_WAY: usize = 100_000;

/// Encoded bounds of a range, where it has bounds.
pub(super) type Ends = (Option<Vec<u8>>, Option<Vec<u8>>);

/// The position that a walk has reached.
pub(super) enum Reached<'e> {
    /// An object.
    Object(VmWord<'e>),
    /// The end of the range, after this many objects.
    End(usize),
}

/// Skips `most` objects between two bounds.
pub(super) fn skip<'e>(
    env: Env<'e>,
    table: VmTerm<'e>,
    (low, high): Ends,
    direction: Direction,
    most: usize,
) -> Result<Reached<'e>, NoReply> {
    let dirty = process::on_dirty_scheduler();
    let time = if dirty { LONG_SLICE } else { SLICE };
    let key_range = KeyRange {
        low: low.as_deref(),
        high: high.as_deref(),
    };
    let mut passage = Passage::new();
    loop {
        // A new pin for each slice lets memory be reclaimed in between.
        let guard = ats_sync::pin();
        let table = &find_readable(env, table, &guard)?.table;
        // The clock is read only when `skip` asks for a pause, which is seldom.
        let mut begun = None;
        let mut pause = || {
            if begun.get_or_insert_with(Instant::now).elapsed() > time {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let slice = table.skip(key_range, direction, most, &mut passage, &guard, &mut pause);
        if let Some(begun) = begun {
            // The caller's time slice is about two slices of ours.
            let micros = begun.elapsed().as_micros();
            process::consume(env, (micros * 50 / SLICE.as_micros()).max(1));
        }
        match slice? {
            Skipped::At(found, within) => {
                return object(env, &found, within, direction).map(Reached::Object);
            }
            Skipped::All(passed) => return Ok(Reached::End(passed)),
            Skipped::Paused { .. } if !dirty => return Err(NoReply::DirtyCpu),
            Skipped::Paused { .. } => {}
        }
    }
}

/// Returns the object with `rank` objects before it. A high rank takes long.
fn object<'e>(
    env: Env<'e>,
    found: &LookupResult<'_, VmHost>,
    before: usize,
    direction: Direction,
) -> NifResult<'e> {
    if before > LONG_WAY && !process::on_dirty_scheduler() {
        return Err(NoReply::DirtyCpu);
    }
    Ok(scratch::with_read_buffers(
        |ReadBuffers { scratch, unpacked }| {
            make_object(env, found.nth(before, direction, unpacked), scratch)
        },
    ))
}

/// Returns the encoded bounds of a range, if the table has ranges.
fn ends<'e>(
    env: Env<'e>,
    table: VmTerm<'e>,
    from: VmTerm<'e>,
    to: VmTerm<'e>,
) -> Result<Ends, NoReply> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    if !shared.table.table_type().is_ordered() {
        return Err(KnownAtom::TableType.into());
    }
    Ok((
        boundary(env, from, RangeEnd::From)?,
        boundary(env, to, RangeEnd::To)?,
    ))
}

/// `range_size(Table, From, To) -> N`: the number of objects between two bounds, given as in
/// `range_start`.
fn range_size<'e>(env: Env<'e>, [table, from, to]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    let ends = ends(env, table, from, to)?;
    match skip(env, table, ends, Up, usize::MAX)? {
        Reached::End(count) => Ok(env.uint(count as u64)),
        Reached::Object(_) => Err(KnownAtom::SystemLimit.into()),
    }
}

/// `range_nth(Table, From, To, N) -> Object | '$end_of_table'`: the N-th object between two bounds,
/// from 1, or from the end, from -1.
fn range_nth<'e>(env: Env<'e>, [table, from, to, n]: [VmTerm<'e>; 4]) -> NifResult<'e> {
    let ends = ends(env, table, from, to)?;
    let n = n.as_small().filter(|n| *n != 0).ok_or(KnownAtom::None)?;
    let direction = if n > 0 { Up } else { Down };
    let rank = n.unsigned_abs() as usize - 1;
    Ok(match skip(env, table, ends, direction, rank)? {
        Reached::Object(object) => object,
        Reached::End(_) => KnownAtom::EndOfTable.word(),
    })
}
