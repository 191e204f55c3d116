//! Descriptions of tables on disk, and the memory that they share.

use super::access::open_table_of;
use super::terms::size;
use crate::atoms::{self, KnownAtom};
use crate::call::NifResult;
use crate::env::{Env, VmWord};
use crate::functions::access::{find_readable, find_table};
use crate::functions::info::{fixation_term, type_word};
use crate::handle::SnapshotView;
use crate::vm_term::VmTerm;
use crate::{nif, sys};
use ats_disk::{Info, Lifetime};
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_kind", disk_kind, 1),
        nif!("disk_size", disk_size, 1),
        nif!("disk_format", disk_format, 1),
        nif!("disk_ttl", disk_ttl, 1),
        nif!("disk_stats", disk_stats, 1),
        nif!("disk_memory", disk_memory, 0),
        nif!("disk_set_memory", disk_set_memory, 1),
    ]
}

/// `disk_kind(Table)`: `{Type, KeyPos, Fixed}`, with `Fixed` as in `info(Table)`.
fn disk_kind<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_table(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let table = &shared.table;
    Ok(env.tuple(&[
        type_word(table.table_type()),
        env.int(table.key_position() as i64),
        fixation_term(env, &shared.admin()),
    ]))
}

/// `disk_size(Table)`: the number of objects.
fn disk_size<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let snapshot = shared.read_point.as_ref().and_then(SnapshotView::of_disk);
    let known = match (snapshot, &shared.disk) {
        (Some(snapshot), Some(opened)) => opened.known_len(snapshot),
        _ => None,
    };
    let objects = known.map_or_else(|| shared.table.len(), Ok)?;
    Ok(env.uint(objects as u64))
}

/// `disk_format(Table)`: the program's formats of keys and values, in the external term format;
/// `none` if it has none.
fn disk_format<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_table(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
    Ok(match &opened.description().format[..] {
        [] => KnownAtom::None.word(),
        format => env.binary(format),
    })
}

/// `disk_ttl(Table)`: the time after which objects expire, in milliseconds; `infinity` if those do
/// that have a time of their own, `false` if none does.
fn disk_ttl<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_table(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
    Ok(match opened.description().lifetime {
        None => KnownAtom::False.word(),
        Some(Lifetime::For(time)) => env.uint(time.as_millis() as u64),
        Some(_) => KnownAtom::Infinity.word(),
    })
}

/// `disk_stats(Table)`: the statistics of the store, as a map of integers.
fn disk_stats<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_table(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let info = open_table_of(shared)?.info();
    let retries = shared.retries.load(Ordering::Relaxed);
    let all = numbers(&info)
        .into_iter()
        .chain([("retries", retries.into())]);
    Ok(map_of(env, &all.collect::<Vec<_>>()))
}

fn numbers(info: &Info) -> [(&'static str, u64); 27] {
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
        ("merges", info.compactions),
        ("merge_read_bytes", info.compaction_read_bytes),
        ("merge_written_bytes", info.compaction_written_bytes),
        ("debt", info.debt as u64),
        ("refused_merges", info.refused_merges),
        ("expired", info.expired),
        ("stalls", info.stalls),
        ("stalled_microseconds", micros(info.stalled)),
        ("reads", info.reads),
        ("background_errors", info.background_errors),
    ]
}

/// Builds a map of integers. The names are short and distinct.
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

/// `disk_set_memory(Bytes)`: sets the memory that all tables share.
fn disk_set_memory<'e>(_env: Env<'e>, [bytes]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    ats_disk::set_shared_memory(size(bytes).ok_or(KnownAtom::None)?);
    Ok(KnownAtom::True.word())
}
