//! Steps from key to key.

use super::access::find_readable;
use super::object_terms::{is_long, key_term, object_list, write_key};
use super::order_statistics::{self, Reached};
use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::handle::Shared;
use crate::scratch::ReadBuffers;
use crate::vm_host::VmHost;
use crate::vm_sink::make_object;
use crate::vm_term::VmTerm;
use crate::{nif, process, scratch, sys};
use ats::terms::Direction::{self, Down, Up};
use ats::terms::{LookupResult, NextKey, SlotAnswer};
use ats_sync::Guard;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("first", first, 1),
        nif!("last", last, 1),
        nif!("next", next, 2),
        nif!("prev", prev, 2),
        nif!("first_lookup", first_lookup, 1),
        nif!("last_lookup", last_lookup, 1),
        nif!("next_lookup", next_lookup, 2),
        nif!("prev_lookup", prev_lookup, 2),
        nif!("slot", slot, 2),
        nif!("chunk", chunk, 3),
    ]
}

pub(super) fn first<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    end(env, table, Up, only_key)
}

pub(super) fn last<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    end(env, table, Down, only_key)
}

pub(super) fn next<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    step_to_key(env, table, key, Up)
}

pub(super) fn prev<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    step_to_key(env, table, key, Down)
}

pub(super) fn first_lookup<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    end(env, table, Up, with_objects)
}

pub(super) fn last_lookup<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    end(env, table, Down, with_objects)
}

pub(super) fn next_lookup<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    step_to_objects(env, table, key, Up)
}

pub(super) fn prev_lookup<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    step_to_objects(env, table, key, Down)
}

/// The form in which a found key is returned.
type Shape = for<'e> fn(Env<'e>, &Shared, &LookupResult<'_, VmHost>) -> NifResult<'e>;

fn only_key<'e>(env: Env<'e>, shared: &Shared, found: &LookupResult<'_, VmHost>) -> NifResult<'e> {
    Ok(key_term(env, shared, found))
}

fn with_objects<'e>(
    env: Env<'e>,
    shared: &Shared,
    found: &LookupResult<'_, VmHost>,
) -> NifResult<'e> {
    let objects = object_list(env, found)?;
    Ok(env.tuple(&[key_term(env, shared, found), objects]))
}

fn end<'e>(env: Env<'e>, table: VmTerm<'e>, direction: Direction, shape: Shape) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let found = match direction {
        Up => shared.table.first(&guard)?,
        Down => shared.table.last(&guard)?,
    };
    apply_shape(env, shared, found, shape)
}

/// Takes a step that returns the key.
fn step_to_key<'e>(
    env: Env<'e>,
    table: VmTerm<'e>,
    key: VmTerm<'e>,
    direction: Direction,
) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = walkable(env, table, key, &guard)?;
    let next = scratch::with_key(|bytes| {
        write_key(&shared.table, key, bytes)?;
        Ok::<_, NoReply>(shared.table.next_key(bytes, direction, &guard)?)
    });
    Ok(match next? {
        Some(NextKey::Integer(key)) => env.int(key),
        Some(NextKey::Of(found)) => key_term(env, shared, &found),
        None => KnownAtom::EndOfTable.word(),
    })
}

/// Resolves the table of a step.
#[inline]
fn walkable<'e, 'g>(
    env: Env<'e>,
    table: VmTerm<'e>,
    key: VmTerm<'e>,
    guard: &'g Guard,
) -> Result<&'g Shared, NoReply>
where
    'e: 'g,
{
    let shared = find_readable(env, table, guard)?;
    let is_ordered = shared.table.table_type().is_ordered();
    if is_ordered && KnownAtom::EndOfTable.is(key.word()) {
        return Err(KnownAtom::None.into());
    }
    Ok(shared)
}

/// Takes a step that returns the objects of the key, too.
fn step_to_objects<'e>(
    env: Env<'e>,
    table: VmTerm<'e>,
    key: VmTerm<'e>,
    direction: Direction,
) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = walkable(env, table, key, &guard)?;
    let table = &shared.table;
    let found = scratch::with_key(|bytes| {
        write_key(table, key, bytes)?;
        Ok::<_, NoReply>(match direction {
            Up => table.next(bytes, &guard)?,
            Down => table.prev(bytes, &guard)?,
        })
    });
    apply_shape(env, shared, found?, with_objects)
}

fn apply_shape<'e>(
    env: Env<'e>,
    shared: &Shared,
    found: Option<LookupResult<'_, VmHost>>,
    shape: Shape,
) -> NifResult<'e> {
    match found {
        Some(found) => shape(env, shared, &found),
        None => Ok(KnownAtom::EndOfTable.word()),
    }
}

pub(super) fn slot<'e>(env: Env<'e>, [table, index]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let index = index
        .as_small()
        .and_then(|index| usize::try_from(index).ok());
    let index = index.ok_or(KnownAtom::None)?;
    if shared.table.table_type().is_ordered() {
        drop(guard);
        return match order_statistics::skip(env, table, (None, None), Up, index)? {
            Reached::Object(object) => Ok(env.list(&[object])),
            Reached::End(len) if len == index => Ok(KnownAtom::EndOfTable.word()),
            Reached::End(_) => Err(KnownAtom::None.into()),
        };
    }
    let mut objects = Vec::new();
    let mut long = false;
    let answer = scratch::with_read_buffers(|ReadBuffers { scratch, unpacked }| {
        shared.table.slot(index, &guard, &mut |found| {
            long |= is_long(&found);
            if long {
                return;
            }
            let _all = found.each(unpacked, |object| {
                objects.push(make_object(env, object, scratch));
                ControlFlow::Continue(())
            });
        })
    });
    match answer? {
        SlotAnswer::Here if long => Err(NoReply::DirtyCpu),
        SlotAnswer::Here => Ok(env.list(&objects)),
        SlotAnswer::End => Ok(KnownAtom::EndOfTable.word()),
        SlotAnswer::Beyond => Err(KnownAtom::None.into()),
    }
}

/// Approximate time limit of a chunk, however large its objects are.
const CHUNK_TIME: Duration = Duration::from_micros(500);
/// Number of objects between two checks of the clock.
const CHUNK_LOOK: usize = 16;

/// Start position of a chunk.
enum Position<'e> {
    Start,
    AfterKey(VmTerm<'e>),
    /// Among the objects of this key: the one with this position, or the next.
    Within(VmTerm<'e>, u64),
}

impl<'e> Position<'e> {
    fn of(env: Env<'e>, term: VmTerm<'e>) -> Result<Self, KnownAtom> {
        match term.tuple_words() {
            Some([_, key]) => Ok(Position::AfterKey(VmTerm::of(env, *key))),
            Some([_, key, position]) => {
                let position = VmTerm::of(env, *position).as_small();
                let position = position.and_then(|position| u64::try_from(position).ok());
                let position = position.ok_or(KnownAtom::None)?;
                Ok(Position::Within(VmTerm::of(env, *key), position))
            }
            _ => Ok(Position::Start),
        }
    }

    fn key(&self) -> Option<VmTerm<'e>> {
        match self {
            Position::Start => None,
            Position::AfterKey(key) | Position::Within(key, _) => Some(*key),
        }
    }
}

/// Objects collected for the caller.
struct Chunk<'e> {
    env: Env<'e>,
    objects: Vec<VmWord<'e>>,
    most: usize,
    begun: Instant,
}

impl<'e> Chunk<'e> {
    fn is_full(&self) -> bool {
        let len = self.objects.len();
        let look = len > 0 && len.is_multiple_of(CHUNK_LOOK);
        len >= self.most || look && self.begun.elapsed() > CHUNK_TIME
    }

    /// Adds the objects of a key. If these are many, and not all fit, returns the position of the
    /// rest.
    fn add(
        &mut self,
        found: &LookupResult<'_, VmHost>,
        reading: &mut ReadBuffers<VmWord<'e>>,
    ) -> ControlFlow<u64> {
        if found.is_large() {
            return self.add_from(found, 0, reading);
        }
        let _all = found.each(&mut reading.unpacked, |object| {
            let object = make_object(self.env, object, &mut reading.scratch);
            self.objects.push(object);
            ControlFlow::Continue(())
        });
        ControlFlow::Continue(())
    }

    /// Adds the objects of a key from a position on. A small key has none left: its objects were
    /// added when it was visited, or have been removed since.
    fn add_from(
        &mut self,
        found: &LookupResult<'_, VmHost>,
        position: u64,
        reading: &mut ReadBuffers<VmWord<'e>>,
    ) -> ControlFlow<u64> {
        let mut rest = None;
        let _part = found.each_from(position, &mut reading.unpacked, |position, object| {
            if self.is_full() {
                rest = Some(position);
                return ControlFlow::Break(());
            }
            let object = make_object(self.env, object, &mut reading.scratch);
            self.objects.push(object);
            ControlFlow::Continue(())
        });
        rest.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }

    /// Returns the objects, and the start of the next chunk.
    fn with(&self, next: VmWord<'e>) -> VmWord<'e> {
        self.env.tuple(&[self.env.list(&self.objects), next])
    }
}

/// `chunk(Table, Position, MostObjects) -> {Objects, done | Position}`: the next objects in table
/// order. A position is `start`, `{after_key, Key}`, or `{within, Key, N}`. All objects of a key
/// come in one chunk, unless they are many.
fn chunk<'e>(env: Env<'e>, [table, from, most]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let most = most
        .as_small()
        .filter(|most| *most > 0)
        .ok_or(KnownAtom::None)? as usize;
    let from = Position::of(env, from)?;
    let mut chunk = Chunk {
        env,
        objects: Vec::new(),
        most,
        begun: Instant::now(),
    };
    let filled = scratch::with_key(|bytes| {
        if let Some(key) = from.key() {
            write_key(&shared.table, key, bytes)?;
        }
        fill(&mut chunk, shared, from, bytes, &guard)
    });
    // A chunk of a millisecond uses up the caller's time slice.
    process::consume(env, (chunk.begun.elapsed().as_micros() / 10).max(1));
    filled
}

/// Fills a chunk. `bytes` is the encoded key of the position, if it has one.
fn fill<'e>(
    chunk: &mut Chunk<'e>,
    shared: &Shared,
    from: Position<'e>,
    bytes: &[u8],
    guard: &Guard,
) -> NifResult<'e> {
    let env = chunk.env;
    let within =
        |key, position: u64| env.tuple(&[KnownAtom::Within.word(), key, env.uint(position)]);
    if let Position::Within(key, position) = from
        && let Some(found) = shared.table.lookup_bytes(bytes, guard)?
    {
        let added = scratch::with_read_buffers(|reading| chunk.add_from(&found, position, reading));
        if let ControlFlow::Break(rest) = added {
            return Ok(chunk.with(within(key.word(), rest)));
        }
    }
    let mut stopped = None;
    let after = from.key().is_some().then_some(bytes);
    scratch::with_read_buffers(|reading| {
        shared.table.scan(after, guard, &mut |found| {
            let added = chunk.add(&found, reading);
            if added.is_break() || chunk.is_full() {
                stopped = Some((found, added));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })
    })?;
    let next = match stopped {
        None => KnownAtom::Done.word(),
        Some((found, added)) => {
            let key = key_term(env, shared, &found);
            match added {
                ControlFlow::Break(rest) => within(key, rest),
                ControlFlow::Continue(()) => env.tuple(&[KnownAtom::AfterKey.word(), key]),
            }
        }
    };
    Ok(chunk.with(next))
}
