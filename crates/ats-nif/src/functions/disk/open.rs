//! Opening a directory as a table, and closing it.

use super::access::{on_dirty_io, opened};
use super::terms::{failed, given, path, size, told};
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::disk::{Failure, Opened, Settings, describe};
use crate::env::{Env, VmWord};
use crate::full_scan::{self, FullScan};
use crate::functions::access::existing;
use crate::functions::info::type_word;
use crate::functions::tables::{Term, one_of, table_type};
use crate::handle::{Protection, Recipe, Reported, WriteConcurrency};
use crate::owner::Owner;
use crate::portable::VmCodec;
use crate::vm_term::VmTerm;
use crate::{lifetime, nif, release, sys};
use ats::{Store, Table};
use ats_disk::{Compression, Durability};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_open", disk_open, 3),
        nif!("disk_close", disk_close, 1),
        nif!("disk_describe", disk_describe, 1),
    ]
}

/// `sync`, `system`, or an interval in milliseconds.
fn durability(env: Env<'_>, word: VmWord<'_>) -> Result<Durability, KnownAtom> {
    if KnownAtom::Sync.is(word) {
        return Ok(Durability::Always);
    }
    if KnownAtom::System.is(word) {
        return Ok(Durability::System);
    }
    let interval = VmTerm::of(env, word).as_unsigned().ok_or(KnownAtom::None)?;
    Ok(Durability::Interval(Duration::from_millis(interval)))
}

/// `disk_open(Directory, {Create, IsWritable, Type, KeyPos, Merge, Durability, BlockBytes, Memory,
/// SnapshotAge, MemtableKeys, Format, Compressed}, Owner)`, checked by the Erlang side: `{ok, Table}`,
/// or `{error, Cause, Text}`.
/// `Directory` is a binary.
fn disk_open<'e>(env: Env<'e>, [directory, options, owner]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    on_dirty_io()?;
    let words = options.tuple_words().ok_or(KnownAtom::None)?;
    let words: &[VmWord<'e>; 12] = words.try_into().map_err(|_| KnownAtom::None)?;
    let [
        create,
        is_writable,
        kind,
        position,
        merge,
        durable,
        block,
        memory,
        age,
        keys,
        format,
        compressed,
    ] = *words;
    let settings = Settings {
        create: KnownAtom::True.is(create),
        read_only: KnownAtom::False.is(is_writable),
        table_type: given(env, kind, |kind| table_type(Term(kind.word())).ok())?,
        key_position: given(env, position, size)?,
        merge: given(env, merge, |merge| merge.as_bytes().map(<[u8]>::to_vec))?,
        format: given(env, format, |format| format.as_bytes().map(<[u8]>::to_vec))?,
        zeros: release::zeros(),
        durability: durability(env, durable)?,
        block_bytes: given(env, block, size)?,
        memory: given(env, memory, size)?,
        memtable_keys: given(env, keys, size)?,
        compression: match KnownAtom::True.is(compressed) {
            true => Compression::Lz4,
            false => Compression::None,
        },
        snapshot_age: given(env, age, |age| age.as_unsigned().map(Duration::from_millis))?,
    };
    if !owner.is_local_pid() {
        return Err(KnownAtom::None.into());
    }
    let opened = match Opened::open(path(directory)?, &settings) {
        Ok(opened) => Arc::new(opened),
        Err(failure) => return Ok(failed(env, &failure)),
    };
    let protections = [
        (KnownAtom::True, Protection::Public),
        (KnownAtom::False, Protection::Protected),
    ];
    let protection = one_of(Term(is_writable), &protections)?;
    let recipe = recipe(&opened, opened.as_table(), protection, owner.word());
    let guard = ats_sync::pin();
    match lifetime::create(env, recipe, &guard) {
        Ok(shared) => Ok(env.tuple(&[KnownAtom::Ok.word(), shared.id.term(env)])),
        Err(cause) => {
            // The owner has ended meanwhile. What was opened is in order.
            let _nothing_to_flush = opened.close();
            Err(cause.into())
        }
    }
}

/// What a table is made with that is on the store of an open directory, or on what that was at a moment.
pub(super) fn recipe(
    opened: &Arc<Opened>,
    store: Box<dyn Store>,
    protection: Protection,
    owner: VmWord<'_>,
) -> Recipe {
    let description = opened.description();
    Recipe {
        table: Table::on_store(
            store,
            Arc::new(VmCodec),
            description.table_type,
            description.key_position,
            description.zeros,
        ),
        disk: Some(Arc::clone(opened)),
        frozen: None,
        limited: None,
        name: KnownAtom::Dats.word().raw(),
        named: false,
        protection,
        reported: Reported {
            write_concurrency: WriteConcurrency::True,
            read_concurrency: true,
            decentralized_counters: false,
        },
        full_scan: full_scan::Watch::new(FullScan::Allow),
        owner: Owner::Process(owner.raw()),
        heir: None,
    }
}

/// `disk_close(Table)`: closes a table for all processes: `ok`, or `{error, Cause, Text}`, after which it is closed,
/// too.
fn disk_close<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let guard = ats_sync::pin();
    let shared = existing(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let opened = opened(shared)?;
    if !lifetime::delete(shared, &guard) {
        return Err(KnownAtom::Id.into());
    }
    drop(guard);
    let (closed, files) = (opened.close(), opened.files());
    drop(opened);
    files.wait();
    Ok(told(env, closed))
}

/// `disk_describe(Directory)`: `{ok, Type, KeyPos, Merge, Format}`, or why there is no table.
fn disk_describe<'e>(env: Env<'e>, [directory]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let described = match describe(path(directory)?) {
        Ok(None) => Err(Failure::new(KnownAtom::NotADatsTable, "there is no table")),
        Ok(Some(description)) => Ok(description),
        Err(failure) => Err(failure),
    };
    Ok(match described {
        Ok(description) => env.tuple(&[
            KnownAtom::Ok.word(),
            type_word(description.table_type),
            env.int(description.key_position as i64),
            env.binary(&description.merge),
            env.binary(&description.format),
        ]),
        Err(failure) => failed(env, &failure),
    })
}
