//! Tables in directories: opening, closing, and what only they have.

use super::access::{existing, readable, with_writable};
use super::info::{fixed, type_word};
use super::reading::write_key;
use super::tables::{Term, one_of, table_type};
use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::disk::{
    Expected, Failure, Opened, Pending, Polite, Settings, describe, politely, replace,
};
use crate::env::{Env, VmWord};
use crate::etf::Etf;
use crate::foreign::Vm;
use crate::full_scan::{self, FullScan};
use crate::handle::{Protection, Recipe, Reported, Shared, WriteConcurrency};
use crate::owner::Owner;
use crate::portable::VmCodec;
use crate::scratch::LONG_OBJECT;
use crate::vm_term::VmTerm;
use crate::{atoms, lifetime, nif, process, release, scratch, sys};
use ats::program_merge::{Length, Program, ProgramMerge, Written, merged, objects, written};
use ats::{Error, Store, Table};
use ats_disk::{Compression, Durability, Info};
use ats_store::Merges;
use ats_term::etf;
use ats_term::walk::is_larger;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_open", disk_open, 3),
        nif!("disk_close", disk_close, 1),
        nif!("disk_sync", disk_sync, 1),
        nif!("disk_describe", disk_describe, 1),
        nif!("disk_write", disk_write, 2),
        nif!("disk_delete", disk_delete, 2),
        nif!("disk_program", disk_program, 1),
        nif!("disk_format", disk_format, 1),
        nif!("disk_operand", disk_operand, 4),
        nif!("disk_pending", disk_pending, 1),
        nif!("disk_resolve", disk_resolve, 2),
        nif!("disk_record", disk_record, 2),
        nif!("disk_replace", disk_replace, 5),
        nif!("disk_noted", disk_noted, 2),
        nif!("disk_watch", disk_watch, 2),
        nif!("disk_gate", disk_gate, 2),
        nif!("disk_set_program", disk_set_program, 3),
        nif!("disk_flush", disk_flush, 1),
        nif!("disk_compact", disk_compact, 1),
        nif!("disk_snapshot", disk_snapshot, 2),
        nif!("disk_lookup", disk_lookup, 2),
        nif!("disk_size", disk_size, 1),
        nif!("disk_kind", disk_kind, 1),
        nif!("disk_stats", disk_stats, 1),
        nif!("disk_memory", disk_memory, 0),
        nif!("disk_set_memory", disk_set_memory, 1),
    ]
}

/// Calls are made again where they may wait.
pub(super) fn on_dirty_io() -> Result<(), NoReply> {
    match process::may_wait_for_devices() {
        true => Ok(()),
        false => Err(NoReply::DirtyIo),
    }
}

/// `{error, Cause, Text}`.
pub(super) fn failed<'e>(env: Env<'e>, failure: &Failure) -> VmWord<'e> {
    env.tuple(&[
        KnownAtom::Error.word(),
        failure.cause.word(),
        env.binary(failure.text.as_bytes()),
    ])
}

/// `ok`, or why not.
fn told<'e>(env: Env<'e>, done: Result<(), Failure>) -> VmWord<'e> {
    match done {
        Ok(()) => KnownAtom::Ok.word(),
        Err(failure) => failed(env, &failure),
    }
}

/// A word that is `default` if the user has not said anything.
pub(super) fn given<'e, T>(
    env: Env<'e>,
    word: VmWord<'e>,
    read: impl FnOnce(VmTerm<'e>) -> Option<T>,
) -> Result<Option<T>, KnownAtom> {
    match KnownAtom::Default.is(word) {
        true => Ok(None),
        false => read(VmTerm::of(env, word)).ok_or(KnownAtom::None).map(Some),
    }
}

pub(super) fn size(term: VmTerm<'_>) -> Option<usize> {
    usize::try_from(term.as_small()?).ok()
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
    let directory = Path::new(OsStr::from_bytes(
        directory.as_bytes().ok_or(KnownAtom::None)?,
    ));
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
    let opened = match Opened::open(directory, &settings) {
        Ok(opened) => Arc::new(opened),
        Err(failure) => return Ok(failed(env, &failure)),
    };
    let protections = [
        (KnownAtom::True, Protection::Public),
        (KnownAtom::False, Protection::Protected),
    ];
    let protection = one_of(Term(is_writable), &protections)?;
    let store: Box<dyn Store> = match opened.program() {
        None => Box::new(Polite(Arc::clone(&opened))),
        Some(merge) => {
            let pending = Pending::new(Arc::clone(&opened), Arc::clone(merge));
            Box::new(Polite(Arc::new(pending)))
        }
    };
    let recipe = recipe(&opened, store, protection, owner.word());
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

/// The open directory of a table.
pub(super) fn opened(shared: &Shared) -> Result<Arc<Opened>, KnownAtom> {
    shared.disk.clone().ok_or(KnownAtom::TableType)
}

/// The open directory of a table, for a call that takes long.
fn held(env: Env<'_>, table: VmTerm<'_>) -> Result<Arc<Opened>, KnownAtom> {
    let guard = ats_sync::pin();
    opened(existing(env, table, &guard)?.ok_or(KnownAtom::Id)?)
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

/// `disk_sync(Table)`: makes all durable that was written before.
fn disk_sync<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let opened = held(env, table)?;
    let synced = opened.store().files().sync();
    Ok(told(env, synced.map_err(Failure::from)))
}

/// `disk_describe(Directory)`: `{ok, Type, KeyPos, Merge, Format}`, or why there is no table.
fn disk_describe<'e>(env: Env<'e>, [directory]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let directory = Path::new(OsStr::from_bytes(
        directory.as_bytes().ok_or(KnownAtom::None)?,
    ));
    let described = match describe(directory) {
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

/// `disk_snapshot(Table, Most)`: a table that is what this is at the moment, and belongs to the caller. Unless
/// `Most` is `default`, it is one of those of the table that are so many at most: of more, those that were not
/// used for longest expire.
fn disk_snapshot<'e>(env: Env<'e>, [table, most]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let opened = opened(shared)?;
    let caller = env.own_pid().ok_or(KnownAtom::None)?;
    let snapshot = opened.store().files().snapshot();
    let frozen = opened.store().freeze(snapshot.clone());
    let limited = given(env, most.word(), size)?.map(|most| {
        snapshot.limit(most);
        snapshot
    });
    let (store, frozen): (Box<dyn Store>, _) = match opened.program() {
        None => (Box::new(Polite(frozen)), None),
        Some(merge) => {
            let frozen = Arc::new(Pending::new(frozen, Arc::clone(merge)));
            (Box::new(Polite(Arc::clone(&frozen))), Some(frozen))
        }
    };
    let recipe = Recipe {
        frozen,
        limited,
        ..recipe(&opened, store, Protection::Private, caller)
    };
    let snapshot = lifetime::create(env, recipe, &guard)?;
    Ok(snapshot.id.term(env))
}

/// A longer value becomes terms on a dirty scheduler: so many bytes take a few hundred microseconds.
const LONG_VALUE: usize = 128 << 10;

/// Whether so many bytes may be copied, or become terms, on this scheduler.
pub(super) fn check_length(bytes: usize) -> Result<(), NoReply> {
    match bytes > LONG_VALUE && !process::on_dirty_scheduler() {
        true => Err(NoReply::DirtyCpu),
        false => Ok(()),
    }
}

/// The objects of a value, as a list of the caller.
fn terms<'e>(env: Env<'e>, value: &[u8]) -> NifResult<'e> {
    check_length(value.len())?;
    let objects = objects(value).map_err(Error::from)?;
    let words: Option<Vec<_>> = objects
        .into_iter()
        .map(|object| env.from_etf(object))
        .collect();
    Ok(env.list(&words.ok_or(KnownAtom::Damaged)?))
}

/// `disk_lookup(Table, Key)`: what `lookup` returns of an open table, made of the bytes of the store at once, and not of a
/// record that is made of them; or `{pending, Record}`, as `disk_record` does.
fn disk_lookup<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
    scratch::with_key(|bytes| {
        write_key(&shared.table, key, bytes)?;
        let mut found = None;
        let read = politely(|| {
            let mut see = |value: &[u8]| {
                let object = match opened.program() {
                    Some(_) => merged(value),
                    None => Some(value),
                };
                found = Some(match object {
                    Some(value) => terms(env, value),
                    None => tagged(env, KnownAtom::Pending, bytes, value),
                });
            };
            opened.store().keys().get(bytes, &mut see)
        });
        read.map_err(Error::from)?;
        found.unwrap_or_else(|| Ok(env.list(&[])))
    })
}

/// `disk_size(Table)`: the number of objects.
fn disk_size<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let objects = readable(env, table, &guard)?.table.len()?;
    Ok(env.uint(objects as u64))
}

/// `disk_kind(Table)`: `{Type, KeyPos, Fixed}`, the last as in `info(Table)`.
fn disk_kind<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = existing(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let table = &shared.table;
    Ok(env.tuple(&[
        type_word(table.table_type()),
        env.int(table.key_position() as i64),
        fixed(env, &shared.admin()),
    ]))
}

/// `disk_stats(Table)`: what the store tells of itself, as a map of integers.
fn disk_stats<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = existing(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let info = opened(shared)?.store().files().info();
    Ok(map_of(env, &numbers(&info)))
}

/// A map of atoms with these names, which are short and distinct, to integers.
fn map_of<'e>(env: Env<'e>, items: &[(&str, u64)]) -> VmWord<'e> {
    let words: Option<Vec<_>> = items
        .iter()
        .map(|(name, _)| atoms::of_text(env, name))
        .collect();
    let values: Vec<_> = items.iter().map(|(_, value)| env.uint(*value)).collect();
    let map = words.and_then(|words| env.map(&words, &values));
    map.expect("short names, which are distinct")
}

/// `disk_memory()`: the memory that tables share, as a map of integers.
fn disk_memory<'e>(env: Env<'e>, []: [VmTerm<'e>; 0]) -> NifResult<'e> {
    let memory = ats_disk::shared_memory();
    let items = [
        ("budget", memory.budget as u64),
        ("memtables", memory.memtables as u64),
        ("cache", memory.cache as u64),
    ];
    Ok(map_of(env, &items))
}

/// `disk_set_memory(Bytes)`: how much memory all tables share.
fn disk_set_memory<'e>(_env: Env<'e>, [bytes]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    ats_disk::set_shared_memory(size(bytes).ok_or(KnownAtom::None)?);
    Ok(KnownAtom::True.word())
}

fn numbers(info: &Info) -> [(&'static str, u64); 26] {
    let entries = info.runs.iter().map(|run| run.entries).sum();
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    [
        ("runs", info.runs.len() as u64),
        ("run_entries", entries),
        ("file_bytes", info.file_bytes),
        ("memtable_bytes", info.memtable_bytes as u64),
        ("memtable_keys", info.memtable_keys as u64),
        ("cache_bytes", info.cache_bytes),
        ("cache_hits", info.cache_hits),
        ("cache_misses", info.cache_misses),
        ("snapshots", info.snapshots as u64),
        ("pinned_bytes", info.pinned_bytes),
        ("pinned_memory", info.pinned_memory as u64),
        ("writes", info.batches),
        ("written_bytes", info.batch_bytes),
        ("journal_bytes", info.journal_bytes),
        ("syncs", info.syncs),
        ("flushes", info.flushes),
        ("flushed_bytes", info.flushed_bytes),
        ("merges", info.merges),
        ("merge_read_bytes", info.merge_read_bytes),
        ("merge_written_bytes", info.merge_written_bytes),
        ("debt", info.debt as u64),
        ("refused_merges", info.refused_merges),
        ("stalls", info.stalls),
        ("stalled_microseconds", micros(info.stalled)),
        ("reads", info.reads),
        ("background_errors", info.background_errors),
    ]
}

/// The key and the value of a pair, as bytes: the value as the objects of the key, behind its length.
fn with_pair<'e, R>(
    env: Env<'e>,
    table: &Table<Vm>,
    pair: VmTerm<'e>,
    work: impl FnOnce(&[u8], &[u8]) -> Result<R, NoReply>,
) -> Result<R, NoReply> {
    if table.key_position() > 1 {
        // The caller has a key and a value.
        return Err(KnownAtom::KeyPos.into());
    }
    table.check_object(pair)?;
    if !process::on_dirty_scheduler() && is_larger(pair, LONG_OBJECT) {
        return Err(NoReply::DirtyCpu);
    }
    let key = pair.tuple_words().and_then(|words| words.first());
    let key = VmTerm::of(env, *key.expect("it is an object"));
    let etf = Etf::of(pair.word());
    scratch::with_key(|bytes| {
        write_key(table, key, bytes)?;
        // The key of a table is not longer than its object.
        let at = bytes.len();
        let len = u32::try_from(etf.bytes().len()).map_err(|_| KnownAtom::TooLong)?;
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(etf.bytes());
        let (key, value) = bytes.split_at(at);
        work(key, value)
    })
}

/// `disk_write(Table, Object)`: merges an object with that of its key, without reading it:
/// `written`. If a program merges, `{ask, Name, Version}`: the program is to be asked first.
fn disk_write<'e>(env: Env<'e>, [table, object]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    with_writable(env, table, |shared, _| {
        let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
        if let Some(program) = opened.program() {
            let [module, version] = program_words(env, program);
            return Ok(env.tuple(&[KnownAtom::Ask.word(), module, version]));
        }
        let Some(merge) = opened.merge() else {
            if shared.table.key_position() > 1 {
                return Err(KnownAtom::KeyPos.into());
            }
            scratch::with_work(|work| shared.table.insert(object, work))?;
            return Ok(KnownAtom::Written.word());
        };
        with_pair(env, &shared.table, object, |key, value| {
            let operand = merge.operand(value).ok_or(KnownAtom::Operand)?;
            let merged = politely(|| Merges::merge(opened.store().records(), key, &operand));
            merged.map_err(Error::from)?;
            Ok(KnownAtom::Written.word())
        })
    })
}

/// The name of a program that merges, and its version.
fn program_words<'e>(env: Env<'e>, program: &ProgramMerge) -> [VmWord<'e>; 2] {
    let program = program.program();
    let name = name_word(env, &program.name);
    [name, env.uint(u64::from(program.version))]
}

/// The name of a program, which is of atoms and tuples.
fn name_word<'e>(env: Env<'e>, name: &ats_term::Term) -> VmWord<'e> {
    match name.as_tuple() {
        Some(names) => {
            let words: Vec<_> = names.iter().map(|name| name_word(env, name)).collect();
            env.tuple(&words)
        }
        None => {
            let atom = name.as_atom().expect("a name is of atoms and tuples");
            atoms::of_text(env, atom.as_str()).expect("it was the name of an atom")
        }
    }
}

/// The version of a program.
fn version_of(word: VmTerm<'_>) -> Result<u32, KnownAtom> {
    let version = size(word).and_then(|version| u32::try_from(version).ok());
    version.ok_or(KnownAtom::None)
}

/// `disk_program(Table)`: `{module, Name, Version, Id}`, the program that merges the values of a
/// table and a number of the table; `none` if none does.
fn disk_program<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = existing(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
    let Some(program) = opened.program() else {
        return Ok(KnownAtom::None.word());
    };
    let [module, version] = program_words(env, program);
    let id = env.uint(program.id());
    Ok(env.tuple(&[KnownAtom::Module.word(), module, version, id]))
}

/// `disk_format(Table)`: how the program makes bytes of keys and values, in the external term format;
/// `none` if it does not.
fn disk_format<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = existing(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
    Ok(match &opened.description().format[..] {
        [] => KnownAtom::None.word(),
        format => env.binary(format),
    })
}

/// `disk_operand(Table, Object, How, Version)`: writes an object to a key that is merged by a
/// program, without reading what is there. How: `object`, with which nothing older is merged; or an
/// operand that, alone, is `present`, or may be missing, `undefined`. Returns `written`; or, if
/// values of some key were put one behind the other that are many, `hot`, and if they are so many
/// that they should be merged before more is written, `long`. If the table has not this version of
/// the program, it returns `{other_version, Version}` with that of the table, and nothing is
/// written.
fn disk_operand<'e>(env: Env<'e>, [table, object, how, version]: [VmTerm<'e>; 4]) -> NifResult<'e> {
    let ways = [
        (KnownAtom::Object, Written::Object),
        (KnownAtom::Present, Written::Present),
        (KnownAtom::Undefined, Written::Unknown),
    ];
    let how = one_of(Term(how.word()), &ways)?;
    let version = version_of(version)?;
    with_writable(env, table, |shared, _| {
        let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
        let program = opened.program().ok_or(KnownAtom::TableType)?;
        with_pair(env, &shared.table, object, |key, value| {
            let (_len, object) = value.split_at(size_of::<u32>());
            let written = written(object, how).ok_or(KnownAtom::SystemLimit)?;
            let write = || match how {
                Written::Object => {
                    let put = opened.store().records().put_unread(key, &written);
                    put.map_err(ats_store::Error::from)
                }
                Written::Present | Written::Unknown => {
                    Merges::merge(opened.store().records(), key, &written)
                }
            };
            let done = politely(|| program.with_version(version, write));
            if done.map_err(Error::from)?.is_none() {
                let [_, version] = program_words(env, program);
                return Ok(env.tuple(&[KnownAtom::OtherVersion.word(), version]));
            }
            Ok(match program.take_longest() {
                Length::Short => KnownAtom::Written.word(),
                Length::Hot => KnownAtom::Hot.word(),
                Length::Long => KnownAtom::Long.word(),
            })
        })
    })
}

/// `{Key, Value}` of a key in the store, as binaries.
fn record<'e>(env: Env<'e>, key: &[u8], value: &[u8]) -> VmWord<'e> {
    env.tuple(&[env.binary(key), env.binary(value)])
}

/// `{Tag, Record}`.
fn tagged<'e>(env: Env<'e>, tag: KnownAtom, key: &[u8], value: &[u8]) -> NifResult<'e> {
    check_length(value.len())?;
    Ok(env.tuple(&[tag.word(), record(env, key, value)]))
}

/// `disk_pending(Snapshot)`: some pending keys of a snapshot, from the one on that a read has met last, as a list of
/// records `{Key, Value}`.
fn disk_pending<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let frozen = shared.frozen.clone().ok_or(KnownAtom::Pending)?;
    drop(guard);
    let records = frozen.next_window().map_err(Error::from)?;
    let words: Vec<_> = records
        .iter()
        .map(|(key, value)| record(env, key, value))
        .collect();
    Ok(env.list(&words))
}

/// The value that a key shall have, or nothing for `missing`.
fn value_bytes<'e>(value: VmTerm<'e>) -> Result<Option<&'e [u8]>, KnownAtom> {
    match KnownAtom::Missing.is(value.word()) {
        true => Ok(None),
        false => value.as_bytes().ok_or(KnownAtom::None).map(Some),
    }
}

/// `disk_resolve(Snapshot, [{Key, Value | missing}])`: says what pending keys of a snapshot have.
/// Values that were said before are forgotten.
fn disk_resolve<'e>(env: Env<'e>, [table, values]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let frozen = shared.frozen.as_ref().ok_or(KnownAtom::TableType)?;
    let (mut list, mut known, mut bytes) = (values, BTreeMap::new(), 0);
    while let Some((pair, rest)) = list.as_cons() {
        let Some(&[key, value]) = pair.tuple_words() else {
            return Err(KnownAtom::None.into());
        };
        let key = VmTerm::of(env, key);
        let value = value_bytes(VmTerm::of(env, value))?;
        let key = key.as_bytes().ok_or(KnownAtom::None)?;
        bytes += key.len() + value.map_or(0, <[u8]>::len);
        check_length(bytes)?;
        known.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        list = rest;
    }
    frozen.resolve(known);
    Ok(KnownAtom::True.word())
}

/// Does something with the value of a key in the store, if there is one.
fn with_value<R>(
    opened: &Opened,
    key: &[u8],
    work: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>, NoReply> {
    let (mut work, mut found) = (Some(work), None);
    let read = politely(|| {
        let mut see = |value: &[u8]| found = work.take().map(|work| work(value));
        opened.store().keys().get(key, &mut see)
    });
    read.map_err(Error::from)?;
    Ok(found)
}

/// `disk_record(Table, Key)`: `{object, Record}`, or `{pending, Record}` if its values are still to
/// be merged, of which the record is one of `disk_pending`; `none` if there is none.
fn disk_record<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = readable(env, table, &guard)?;
    let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
    scratch::with_key(|bytes| {
        write_key(&shared.table, key, bytes)?;
        let found = with_value(opened, bytes, |value| {
            let tag = match merged(value) {
                Some(_) => KnownAtom::Object,
                None => KnownAtom::Pending,
            };
            tagged(env, tag, bytes, value)
        });
        found?.unwrap_or_else(|| Ok(KnownAtom::None.word()))
    })
}

/// `disk_replace(Table, Key, Value, New, All)`: replaces the value of a key, if it still begins
/// with what is given, or is that if `All` is `true`, by another one, or by nothing if that is
/// `missing`. Whether it was.
fn disk_replace<'e>(env: Env<'e>, [table, key, value, new, all]: [VmTerm<'e>; 5]) -> NifResult<'e> {
    let expected = [
        (KnownAtom::True, Expected::All),
        (KnownAtom::False, Expected::Beginning),
    ];
    let expected = one_of(Term(all.word()), &expected)?;
    with_writable(env, table, |shared, _| {
        let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
        let key = key.as_bytes().ok_or(KnownAtom::None)?;
        let value = value.as_bytes().ok_or(KnownAtom::None)?;
        let new = value_bytes(new)?;
        check_length(value.len() + new.map_or(0, <[u8]>::len))?;
        let replaced = replace(opened, key, value, expected, new).map_err(Error::from)?;
        Ok(atoms::boolean(replaced))
    })
}

/// `disk_noted(Table, N)`: some keys that are pending, as records of `disk_pending`: `N` keys at
/// most, and not many bytes.
fn disk_noted<'e>(env: Env<'e>, [table, n]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    /// Memory that others need, one key apart.
    const MOST_BYTES: usize = 4 << 20;
    on_dirty_io()?;
    let most = size(n).ok_or(KnownAtom::None)?;
    let opened = held(env, table)?;
    let program = opened.program().ok_or(KnownAtom::TableType)?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while found.len() < most && bytes < MOST_BYTES {
        let Some(key) = program.take_noted(1).pop() else {
            break;
        };
        let pending = with_value(&opened, &key, |value| {
            merged(value).is_none().then(|| {
                bytes += key.len() + value.len();
                record(env, &key, value)
            })
        });
        // What reading it has noted: else a key that cannot be merged would come again and again.
        program.forget(&key);
        found.extend(pending?.flatten());
    }
    Ok(env.list(&found))
}

/// `disk_watch(Table, Pid)`: has a process told, by `{pending, Table}`, when keys are pending.
fn disk_watch<'e>(env: Env<'e>, [table, pid]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = existing(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
    let program = opened.program().ok_or(KnownAtom::TableType)?;
    if !pid.is_local_pid() {
        return Err(KnownAtom::None.into());
    }
    let (pid, id) = (pid.word().raw(), shared.id.clone());
    program.watch(Box::new(move || {
        // On a scheduler, the call that merges has a process, of which nothing is known here.
        process::is_own_thread()
            && process::tell(pid, |env| {
                env.tuple(&[KnownAtom::Pending.word(), id.term(env)])
            })
    }));
    Ok(KnownAtom::True.word())
}

/// `disk_gate(Table, Closed)`: refuses what `disk_operand` writes, or allows it again. None is
/// under way when this returns.
fn disk_gate<'e>(env: Env<'e>, [table, closed]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    on_dirty_io()?;
    let opened = held(env, table)?;
    let program = opened.program().ok_or(KnownAtom::TableType)?;
    program.close_gate(KnownAtom::True.is(closed.word()));
    Ok(KnownAtom::True.word())
}

/// `disk_set_program(Table, Name, Version)`: has another program merge from now on: `ok`, or
/// `{error, Cause, Text}`.
fn disk_set_program<'e>(env: Env<'e>, [table, name, version]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    on_dirty_io()?;
    let name = etf::decode(Etf::of(name.word()).bytes(), etf::Options::TRUSTED);
    let program = Program {
        name: name.map_err(|_| KnownAtom::None)?,
        version: version_of(version)?,
    };
    let opened = held(env, table)?;
    let merge = opened.program().ok_or(KnownAtom::TableType)?;
    Ok(told(env, opened.set_program(merge, program)))
}

/// `disk_delete(Table, Key)`: removes a key, also if what was written to it cannot be merged.
fn disk_delete<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    with_writable(env, table, |shared, _| {
        let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
        scratch::with_key(|bytes| {
            write_key(&shared.table, key, bytes)?;
            let deleted = politely(|| opened.store().records().delete_unread(bytes));
            deleted.map_err(|error| Error::from(ats_store::Error::from(error)))?;
            Ok(KnownAtom::True.word())
        })
    })
}

/// `disk_flush(Table)`: writes to runs what is in memory.
fn disk_flush<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let opened = held(env, table)?;
    let flushed = opened.store().files().flush();
    Ok(told(env, flushed.map_err(Failure::from)))
}

/// `disk_compact(Table)`: merges all runs into one.
fn disk_compact<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    on_dirty_io()?;
    let opened = held(env, table)?;
    Ok(told(env, opened.compact()))
}
