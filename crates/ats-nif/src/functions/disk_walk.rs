//! Walking through all objects of a table on disk: as bytes of the store, of which the caller makes terms.
//!
//! A query makes a record of the bytes of the store, and a term of that. Where every object is wanted as it is, the bytes of
//! many are put together to those of one list: the VM makes terms of them in one go, and lets other processes run
//! meanwhile.

use super::access::readable;
use super::disk::check_length;
use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::etf::VERSION;
use crate::vm_term::VmTerm;
use crate::{env::Env, nif, process, sys};
use ats::program_merge::objects;
use ats::{Direction, Error, KeyRange};
use std::ops::ControlFlow;

const LIST_EXT: u8 = 108;
const NIL_EXT: u8 = 106;
/// Where the number of elements is in the bytes of a list.
const COUNT: std::ops::Range<usize> = 2..6;

/// A chunk has so many bytes, or one key. They take about a twentieth of the caller's time slice.
const CHUNK_BYTES: usize = 64 << 10;
const PERCENT: u128 = 5;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![nif!("disk_chunk", disk_chunk, 3)]
}

/// The external term format of a list.
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

    /// Adds the objects of a value, which are the oldest first; in the other direction the newest first.
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

/// `disk_chunk(Table, Way, Last)`: the objects of some keys behind the key `Last`, or from the end of the table that `up` or
/// `down` begins at if that is `start`: `{Objects, NewLast}`, of which `Objects` is the external term format of a list, and
/// `NewLast` is `done` if there are no others. The objects of one key come oldest first on the way up.
fn disk_chunk<'e>(env: Env<'e>, [table, way, last]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let last = match KnownAtom::Start.is(last.word()) {
        true => None,
        false => Some(last.as_bytes().ok_or(KnownAtom::None)?),
    };
    let behind: Vec<u8>;
    let (direction, range) = match KnownAtom::Down.is(way.word()) {
        true => (
            Direction::Down,
            KeyRange {
                low: None,
                high: last,
            },
        ),
        false => {
            // No key is between one and the same with a zero behind it.
            behind = last.map_or_else(Vec::new, |last| [last, &[0]].concat());
            let low = Some(behind.as_slice());
            (Direction::Up, KeyRange { low, high: None })
        }
    };
    let (mut list, mut failed, mut next) = (List::new(), None, None);
    let read = shared
        .table
        .scan_bytes(range, direction, &mut |key, value| {
            let added = check_length(value.len()).and_then(|()| list.add(value, direction));
            match added {
                Ok(()) if list.bytes.len() < CHUNK_BYTES => return ControlFlow::Continue(()),
                Ok(()) => next = Some(key.to_vec()),
                Err(why) => failed = Some(why),
            }
            ControlFlow::Break(())
        });
    read?;
    if let Some(why) = failed {
        return Err(why);
    }
    process::consume(env, PERCENT);
    let next = match &next {
        Some(key) => env.binary(key),
        None => KnownAtom::Done.word(),
    };
    Ok(env.tuple(&[env.binary(&list.finish()), next]))
}
