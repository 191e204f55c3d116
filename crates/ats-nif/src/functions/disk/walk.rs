//! Walks through all objects of a table on disk, returned as bytes from which the caller makes
//! terms.
//!
//! A query makes a record from the bytes of the store, and a term from the record. A walk that
//! wants every object unchanged joins the bytes of many objects to those of one list: the VM
//! decodes them at once, and lets other processes run meanwhile.

use super::terms::{check_length, size};
use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::etf::VERSION;
use crate::functions::access::find_readable;
use crate::functions::arguments;
use crate::functions::object_terms::write_key;
use crate::functions::range::{RangeEnd, boundary};
use crate::vm_term::VmTerm;
use crate::{nif, process, scratch, sys};
use ats::terms::program_merge::objects;
use ats::terms::{Direction, Error, KeyRange};
use ats_store::successor;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

const LIST_EXT: u8 = 108;
const NIL_EXT: u8 = 106;
/// Position of the number of elements in an encoded list.
const COUNT: std::ops::Range<usize> = 2..6;

/// Size of a chunk, which has at least one key. Its decoding takes about a twentieth of the
/// caller's time slice.
const CHUNK_BYTES: usize = 64 << 10;
const PERCENT: u128 = 5;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_chunk", disk_chunk, 3),
        nif!("disk_step", disk_step, 3),
        nif!("disk_skip", disk_skip, 5),
        nif!("disk_key", disk_key, 2),
        nif!("disk_median", disk_median, 3),
    ]
}

/// A list in the external term format.
struct List {
    bytes: Vec<u8>,
    count: u32,
}

impl List {
    fn new() -> Self {
        List {
            bytes: vec![VERSION, LIST_EXT, 0, 0, 0, 0],
            count: 0,
        }
    }

    /// Adds the objects of a value, oldest first upwards and newest first downwards.
    fn add(&mut self, value: &[u8], direction: Direction) -> Result<(), NoReply> {
        let mut objects = objects(value).map_err(Error::from)?;
        if direction == Direction::Down {
            objects.reverse();
        }
        for object in objects {
            let term = object.strip_prefix(&[VERSION]);
            self.bytes
                .extend_from_slice(term.ok_or(KnownAtom::Damaged)?);
            self.count = self.count.checked_add(1).ok_or(KnownAtom::SystemLimit)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes[COUNT].copy_from_slice(&self.count.to_be_bytes());
        self.bytes.push(NIL_EXT);
        self.bytes
    }
}

/// `disk_chunk(Table, Direction, Last)`: the objects of some keys after the key `Last`, or from the
/// first key in direction `up` or `down` if `Last` is `start`: `{Tag, Objects, NewLast}`, where
/// `Objects` is a list in the external term format. The objects of one key come oldest first on the
/// way up. The tag is `done` at the end of the table, `pending` if the values of the next key have
/// to be merged first, else `more`.
fn disk_chunk<'e>(env: Env<'e>, arguments: [VmTerm<'e>; 3]) -> NifResult<'e> {
    let chunk = chunk(env, arguments, CHUNK_BYTES)?;
    process::consume(env, PERCENT);
    Ok(chunk)
}

/// `disk_step(Table, Direction, Last)`: like `disk_chunk`, with the objects of one key.
fn disk_step<'e>(env: Env<'e>, arguments: [VmTerm<'e>; 3]) -> NifResult<'e> {
    chunk(env, arguments, 0)
}

/// Reads the objects of one chunk, or of one key.
fn chunk<'e>(
    env: Env<'e>,
    [table, direction, last]: [VmTerm<'e>; 3],
    most_bytes: usize,
) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let last_word = last.word();
    let last = if KnownAtom::Start.is(last_word) {
        None
    } else {
        Some(last.as_bytes().ok_or(KnownAtom::None)?)
    };
    let behind: Vec<u8>;
    let direction = arguments::direction(direction.word()).ok_or(KnownAtom::None)?;
    let range = match direction {
        Direction::Down => KeyRange {
            low: None,
            high: last,
        },
        Direction::Up => {
            behind = last.map_or_else(Vec::new, successor);
            let low = Some(behind.as_slice());
            KeyRange { low, high: None }
        }
    };
    let is_snapshot_of_program = shared.pending_snapshot.is_some();
    let (mut list, mut failed, mut next) = (List::new(), None, None);
    let mut visited = Vec::new();
    let read = shared
        .table
        .scan_bytes(range, direction, &mut |key, value| {
            let added = check_length(value.len()).and_then(|()| list.add(value, direction));
            match added {
                Ok(()) if list.bytes.len() < most_bytes => {
                    if is_snapshot_of_program {
                        visited.clear();
                        visited.extend_from_slice(key);
                    }
                    return ControlFlow::Continue(());
                }
                Ok(()) => next = Some(key.to_vec()),
                Err(why) => failed = Some(why),
            }
            ControlFlow::Break(())
        });
    let is_pending = read == Err(Error::Storage(ats_store::Error::Pending));
    if !is_pending {
        read?;
    }
    if let Some(why) = failed {
        return Err(why);
    }
    let is_empty = list.count == 0;
    let (tag, next) = match &next {
        Some(key) => (KnownAtom::More, env.binary(key)),
        None if is_pending && is_empty => (KnownAtom::Pending, last_word),
        None if is_pending => (KnownAtom::Pending, env.binary(&visited)),
        None => (KnownAtom::Done, last_word),
    };
    Ok(env.tuple(&[tag.word(), env.binary(&list.finish()), next]))
}

/// Time after which `disk_skip` returns.
const SLICE: Duration = Duration::from_micros(500);
/// Number of keys that `disk_skip` passes before it looks at the clock again.
const KEYS_AT_ONCE: usize = 16;

/// `disk_skip(Table, From, To, Direction, Most)`: passes at most `Most` objects of an ordered table
/// between two bounds, given as in `range_start`, from one end in direction `up` or `down`: `{Tag,
/// Passed, Reached}`. The tag is `object` if `Reached` is the object behind those that were passed,
/// and `done` at the other end of the range. Otherwise the walk goes on from the encoded bound
/// `Reached`, or from where it began if that is `none`: the tag is `more`, or `pending` if the
/// values of the next key have to be merged first.
fn disk_skip<'e>(
    env: Env<'e>,
    [table, from, to, direction, most]: [VmTerm<'e>; 5],
) -> NifResult<'e> {
    let begun = Instant::now();
    let guard = ats_sync::pin();
    let table = &find_readable(env, table, &guard)?.table;
    if !table.table_type().is_ordered() {
        return Err(KnownAtom::TableType.into());
    }
    let direction = arguments::direction(direction.word()).ok_or(KnownAtom::None)?;
    let (low, high) = (
        boundary(env, from, RangeEnd::From)?,
        boundary(env, to, RangeEnd::To)?,
    );
    let range = KeyRange {
        low: low.as_deref(),
        high: high.as_deref(),
    };
    let mut skip = Skip {
        env,
        direction,
        is_bag: table.table_type().is_bag(),
        left: size(most).ok_or(KnownAtom::None)?,
        passed: 0,
    };
    let (mut ended, mut keys, mut last) = (None, 0, Vec::new());
    let read = table.scan_bytes(range, direction, &mut |key, value| {
        match skip.pass(value) {
            Ok(None) => {}
            found => {
                ended = Some(found);
                return ControlFlow::Break(());
            }
        }
        last.clear();
        last.extend_from_slice(key);
        keys += 1;
        if keys % KEYS_AT_ONCE == 0 && begun.elapsed() > SLICE {
            ended = Some(Ok(None));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    let is_pending = read == Err(Error::Storage(ats_store::Error::Pending));
    if !is_pending {
        read?;
    }
    let reached = match direction {
        _ if keys == 0 => KnownAtom::None.word(),
        Direction::Up => env.binary(&successor(&last)),
        Direction::Down => env.binary(&last),
    };
    let (tag, reached) = match ended.transpose()? {
        Some(Some(object)) => (KnownAtom::Object, object),
        Some(None) => (KnownAtom::More, reached),
        None if is_pending => (KnownAtom::Pending, reached),
        None => (KnownAtom::Done, reached),
    };
    // A time slice of the caller is about a millisecond.
    process::consume(env, begun.elapsed().as_micros() / 10);
    Ok(env.tuple(&[tag.word(), env.uint(skip.passed as u64), reached]))
}

/// A walk that passes objects.
struct Skip<'e> {
    env: Env<'e>,
    direction: Direction,
    is_bag: bool,
    /// Number of objects that are still to be passed.
    left: usize,
    passed: usize,
}

impl<'e> Skip<'e> {
    /// Passes the objects of a value, or returns the one of them behind which none are left to be
    /// passed.
    fn pass(&mut self, value: &[u8]) -> Result<Option<VmWord<'e>>, NoReply> {
        if !self.is_bag && self.left > 0 {
            self.left -= 1;
            self.passed += 1;
            return Ok(None);
        }
        check_length(value.len())?;
        let objects = objects(value).map_err(Error::from)?;
        if self.left >= objects.len() {
            self.left -= objects.len();
            self.passed += objects.len();
            return Ok(None);
        }
        let index = match self.direction {
            Direction::Up => self.left,
            Direction::Down => objects.len() - 1 - self.left,
        };
        let object = self.env.from_etf(objects[index]);
        object.ok_or(KnownAtom::Damaged.into()).map(Some)
    }
}

/// `disk_key(Table, Key)`: a key as encoded in the store, for `disk_chunk`.
fn disk_key<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    scratch::with_key(|bytes| {
        write_key(&shared.table, key, bytes)?;
        Ok(env.binary(bytes))
    })
}

/// Reads a key as encoded in the store; `None` for `none`.
fn bound_bytes(bound: VmTerm<'_>) -> Result<Option<&[u8]>, KnownAtom> {
    if KnownAtom::None.is(bound.word()) {
        Ok(None)
    } else {
        bound.as_bytes().ok_or(KnownAtom::None).map(Some)
    }
}

/// `disk_median(Snapshot, Low, High)`: divides the records of a snapshot from `Low` on and below
/// `High`, each an encoded key or `none`. Returns `{Median, Key, Object}` with the key and an
/// object of the first record from the median on; `{Median, none}` if there is no such record below
/// `High`; `none` if there are no records.
fn disk_median<'e>(env: Env<'e>, [table, low, high]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let (low, high) = (bound_bytes(low)?, bound_bytes(high)?);
    let Some(median) = shared.table.median_bytes(KeyRange { low, high })? else {
        return Ok(KnownAtom::None.word());
    };
    let behind = KeyRange {
        low: Some(&median),
        high,
    };
    let mut found = None;
    let mut read = |key: &[u8], value: &[u8]| {
        found = Some(first_object(env, &median, key, value));
    };
    match &shared.pending_snapshot {
        // The next key is the same whether or not its values are merged.
        Some(snapshot) => snapshot
            .first(process::may_block(), behind, &mut read)
            .map_err(Error::from)?,
        None => shared
            .table
            .scan_bytes(behind, Direction::Up, &mut |key, value| {
                read(key, value);
                ControlFlow::Break(())
            })?,
    }
    found.unwrap_or_else(|| Ok(env.tuple(&[env.binary(&median), KnownAtom::None.word()])))
}

/// Builds `{Median, Key, Object}` of a record.
fn first_object<'e>(env: Env<'e>, median: &[u8], key: &[u8], value: &[u8]) -> NifResult<'e> {
    check_length(value.len().saturating_add(2 * key.len()))?;
    let objects = objects(value).map_err(Error::from)?;
    let object = objects.first().and_then(|object| env.from_etf(object));
    let object = object.ok_or(KnownAtom::Damaged)?;
    Ok(env.tuple(&[env.binary(median), env.binary(key), object]))
}
