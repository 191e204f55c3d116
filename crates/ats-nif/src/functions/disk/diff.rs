//! The difference of two snapshots of a table on disk.

use super::access::{on_dirty_io, open_table_of};
use crate::atoms::{KnownAtom, boolean};
use crate::call::{NifResult, NoReply};
use crate::env::Env;
use crate::etf::VERSION;
use crate::functions::access::find_readable;
use crate::handle::{Shared, SnapshotView};
use crate::vm_term::VmTerm;
use crate::{nif, sys};
use ats::terms::Error;
use ats::terms::program_merge::objects;
use ats_disk::{Diff, values_of_record};
use ats_store::{KeyRange, successor};

/// Limits of a chunk: bytes of its changes, and number of keys visited. A chunk has at least the
/// changes of one key.
const CHUNK_BYTES: usize = 64 << 10;
const CHUNK_KEYS: usize = 4096;

const LIST_EXT: u8 = 108;
const NIL_EXT: u8 = 106;
const SMALL_TUPLE_EXT: u8 = 104;
const PAIR: u8 = 2;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_diff", disk_diff, 4),
        nif!("disk_is_current", disk_is_current, 2),
    ]
}

/// The objects of a key that one snapshot has and the other does not, in the external term format.
#[derive(Default)]
struct Side {
    bytes: Vec<u8>,
    count: u32,
}

impl Side {
    fn push(&mut self, object: &[u8]) -> Result<(), NoReply> {
        let term = object.strip_prefix(&[VERSION]);
        self.bytes
            .extend_from_slice(term.ok_or(KnownAtom::Damaged)?);
        self.count = self.count.checked_add(1).ok_or(KnownAtom::SystemLimit)?;
        Ok(())
    }

    /// Appends the objects as a list.
    fn write(&self, out: &mut Vec<u8>) {
        if self.count > 0 {
            out.push(LIST_EXT);
            out.extend_from_slice(&self.count.to_be_bytes());
            out.extend_from_slice(&self.bytes);
        }
        out.push(NIL_EXT);
    }
}

/// The pairs of a chunk, and the pair under construction.
struct Pairs {
    /// `true` if each object of a key has its own record.
    has_bags: bool,
    out: Vec<u8>,
    count: u32,
    key: Vec<u8>,
    sides: [Side; 2],
}

impl Pairs {
    /// Adds the values of a record in the two snapshots. Returns `false`, and adds nothing, if the
    /// chunk is full already.
    fn add(&mut self, diff: &Diff, is_full: bool) -> Result<bool, NoReply> {
        let difference = diff.difference();
        let values = [difference.first, difference.second];
        let key = match (self.has_bags, values[0].or(values[1])) {
            (true, Some(value)) => {
                let (key, _) = values_of_record(difference.key, value).map_err(of_store)?;
                key
            }
            _ => difference.key,
        };
        if key != self.key {
            self.finish_pair();
            if is_full || self.out.len() >= CHUNK_BYTES {
                return Ok(false);
            }
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        for (side, value) in self.sides.iter_mut().zip(values) {
            let Some(value) = value else { continue };
            if self.has_bags {
                let (_, values) = values_of_record(difference.key, value).map_err(of_store)?;
                values.iter().try_for_each(|object| side.push(object))?;
            } else {
                let objects = objects(value).map_err(Error::from)?;
                objects.iter().try_for_each(|object| side.push(object))?;
            }
        }
        Ok(true)
    }

    fn finish_pair(&mut self) {
        if self.sides.iter().any(|side| side.count > 0) {
            self.out.extend([SMALL_TUPLE_EXT, PAIR]);
            for side in &mut self.sides {
                std::mem::take(side).write(&mut self.out);
            }
            self.count += 1;
        }
    }

    /// Returns the list in the external term format.
    fn finish(mut self) -> Vec<u8> {
        self.finish_pair();
        let mut bytes = vec![VERSION];
        if self.count > 0 {
            bytes.push(LIST_EXT);
            bytes.extend_from_slice(&self.count.to_be_bytes());
            bytes.append(&mut self.out);
        }
        bytes.push(NIL_EXT);
        bytes
    }
}

fn of_store(error: ats_disk::Error) -> NoReply {
    Error::Storage(error.into()).into()
}

/// `disk_diff(First, Second, start | Last, Deadline)`: differences between two snapshots after the
/// record `Last`: `{more | done, Pairs, NewLast, NewDeadline}`, where `Pairs` is a list of
/// `{OfFirst, OfSecond}` in the external term format. Each pair holds all changes of one key: on
/// each side the objects of records that the other snapshot does not have unchanged.
///
/// No record of the earlier snapshot expires before `Deadline`, in milliseconds; 0 if that is not
/// known. None of the later snapshot expires before the least `NewDeadline` of all calls.
fn disk_diff<'e>(env: Env<'e>, [first, second, last, deadline]: [VmTerm<'e>; 4]) -> NifResult<'e> {
    on_dirty_io()?;
    let deadline = deadline.as_unsigned().ok_or(KnownAtom::None)?;
    let guard = ats_sync::pin();
    let first = find_readable(env, first, &guard)?.to_arc();
    let second = find_readable(env, second, &guard)?.to_arc();
    drop(guard);
    let opened = open_table_of(&first)?;
    let snapshot_of = |shared: &Shared| shared.read_point.as_ref()?.of_disk().cloned();
    let (Some(first), Some(second)) = (snapshot_of(&first), snapshot_of(&second)) else {
        return Err(KnownAtom::None.into());
    };
    let low = if KnownAtom::Start.is(last.word()) {
        Vec::new()
    } else {
        successor(last.as_bytes().ok_or(KnownAtom::None)?)
    };
    let range = KeyRange {
        low: Some(&low),
        high: None,
    };
    let diff = first.diff_before(&second, range, deadline);
    let mut diff = diff.map_err(of_store)?.ok_or(KnownAtom::OtherTable)?;
    let mut pairs = Pairs {
        has_bags: opened.description().table_type.is_bag(),
        out: Vec::new(),
        count: 0,
        key: Vec::new(),
        sides: Default::default(),
    };
    let (mut looked_at, mut last_key) = (0, Vec::new());
    let tag = loop {
        if !diff.step().map_err(of_store)? {
            break KnownAtom::Done;
        }
        looked_at += 1;
        let is_full = looked_at > CHUNK_KEYS;
        let is_between = pairs.sides.iter().all(|side| side.count == 0);
        if diff.has_difference() {
            if !pairs.add(&diff, is_full && pairs.count > 0)? {
                break KnownAtom::More;
            }
        } else if is_full && is_between {
            break KnownAtom::More;
        }
        last_key.clear();
        last_key.extend_from_slice(diff.key());
    };
    let bytes = pairs.finish();
    Ok(env.tuple(&[
        tag.word(),
        env.binary(&bytes),
        env.binary(&last_key),
        env.uint(diff.first_deadline()),
    ]))
}

/// `disk_is_current(Snapshot, Deadline)`: `true` if the table has the objects of the snapshot now.
/// No record of them expires before `Deadline`, as for `disk_diff`. O(1), reads no file.
fn disk_is_current<'e>(env: Env<'e>, [snapshot, deadline]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let deadline = deadline.as_unsigned().ok_or(KnownAtom::None)?;
    let guard = ats_sync::pin();
    let shared = find_readable(env, snapshot, &guard)?;
    let read_point = shared.read_point.as_ref();
    let snapshot = read_point.and_then(SnapshotView::of_disk);
    let is_current = snapshot.ok_or(KnownAtom::None)?.is_current(deadline);
    Ok(boolean(is_current))
}
