//! The description of a table, and its adaptation.

use super::access::find_table;
use super::snapshot::{find_described, find_ending};
use crate::atoms::{KnownAtom, boolean};
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::full_scan::FullScan;
use crate::handle::{Admin, Protection, Shared, WriteConcurrency};
use crate::owner::Heir;
use crate::vm_term::VmTerm;
use crate::{nif, process, sys};
use ats::terms::{Limits, TableType, Ttl};
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("info", info, 1),
        nif!("size", size, 1),
        nif!("memory", memory, 1),
        nif!("stats", stats, 1),
        nif!("count_retry", count_retry, 1),
        nif!("shape", shape, 1),
    ]
}

/// `info(Table)`: `undefined`, or the properties of the table as one tuple, which the Erlang side
/// formats. Leaves out numbers that could make writers wait.
fn info<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let Some(shared) = find_described(env, table, &guard)? else {
        return Ok(KnownAtom::Undefined.word());
    };
    let reported = &shared.reported;
    let admin = shared.admin();
    let heir = admin
        .heir
        .as_ref()
        .map_or(KnownAtom::None.word(), Heir::pid);
    let fixed = fixation_term(env, &admin);
    drop(admin);
    let protection = match shared.protection() {
        Protection::Public => KnownAtom::Public,
        Protection::Protected | Protection::Snapshot => KnownAtom::Protected,
        Protection::Private | Protection::OfSource => KnownAtom::Private,
    };
    let full_scan = match shared.full_scan.answer() {
        FullScan::Allow => KnownAtom::Allow,
        FullScan::Warn => KnownAtom::Warn,
        FullScan::Refuse => KnownAtom::Refuse,
    };
    let backend = if shared.table.has_byte_store() {
        KnownAtom::Btree.word()
    } else {
        KnownAtom::Default.word()
    };
    #[cfg(feature = "rivals")]
    let backend = super::rival::name(env, &shared.table).unwrap_or(backend);
    let wc = match reported.write_concurrency {
        WriteConcurrency::False => KnownAtom::False.word(),
        WriteConcurrency::True => KnownAtom::True.word(),
        WriteConcurrency::Auto => KnownAtom::Auto.word(),
        WriteConcurrency::Locks(locks) => {
            let tag = KnownAtom::DebugHashFixedNumberOfLocks.word();
            env.tuple(&[tag, env.int(locks)])
        }
    };
    let (hits, misses) = shared.table.hits_and_misses();
    Ok(env.tuple(&[
        shared.id.term(env),
        boolean(reported.decentralized_counters),
        boolean(reported.read_concurrency),
        wc,
        boolean(shared.table.is_compressed()),
        shared.owner().unwrap_or(KnownAtom::None.word()),
        heir,
        shared.name(),
        boolean(shared.named),
        type_word(shared.table.table_type()),
        env.int(shared.table.key_position() as i64),
        protection.word(),
        fixed,
        full_scan.word(),
        backend,
        limits_word(env, shared.table.limits()),
        env.uint(shared.table.expired()),
        env.uint(shared.table.evicted()),
        env.uint(hits),
        env.uint(misses),
    ]))
}

/// Builds the limits of a table as [`new`](super::tables) reads them.
fn limits_word(env: Env<'_>, limits: Option<Limits>) -> VmWord<'_> {
    let Some(limits) = limits else {
        return KnownAtom::False.word();
    };
    let milliseconds = |time: Duration| env.uint(time.as_millis() as u64);
    let ttl = match limits.ttl {
        Ttl::Never => KnownAtom::Infinity.word(),
        Ttl::Written(time) => milliseconds(time),
        Ttl::Spread(time, percent) => {
            let percent = env.uint(percent.into());
            env.tuple(&[KnownAtom::Spread.word(), milliseconds(time), percent])
        }
        Ttl::Idle(time) => env.tuple(&[KnownAtom::Idle.word(), milliseconds(time)]),
    };
    let most = |most: Option<usize>| {
        let infinity = KnownAtom::Infinity.word();
        most.map_or(infinity, |most| env.uint(most as u64))
    };
    env.tuple(&[ttl, most(limits.objects), most(limits.bytes)])
}

/// `size(Table)`: `undefined`, or the number of objects.
fn size<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    number(env, table, |shared| Ok(shared.table.len()?))
}

/// `memory(Table)`: `undefined`, or the number of words of memory in use.
fn memory<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    number(env, table, |shared| {
        Ok(shared.table.bytes()?.div_ceil(size_of::<usize>()))
    })
}

/// Returns `undefined`, or the number that `read` returns for the table.
fn number<'e>(
    env: Env<'e>,
    table: VmTerm<'e>,
    read: impl FnOnce(&Shared) -> Result<usize, NoReply>,
) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let Some(shared) = find_described(env, table, &guard)? else {
        return Ok(KnownAtom::Undefined.word());
    };
    match read(shared) {
        // A snapshot may end while it is read.
        Err(_) if find_ending(shared).is_some() => Ok(KnownAtom::Undefined.word()),
        number => Ok(env.int(number? as i64)),
    }
}

/// `stats(Table)`: `undefined`, or statistics of the adaptation to contention. Apart from `info`
/// because it visits every base node of an `ordered_set`, and every lock of the other types.
fn stats<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let Some(shared) = find_described(env, table, &guard)? else {
        return Ok(KnownAtom::Undefined.word());
    };
    let (shape, contended, uncontended) = if let Some(tree) = shared.table.adaptation() {
        let shape = [
            (KnownAtom::RouteNodes, tree.route_nodes as u64),
            (KnownAtom::BaseNodes, tree.base_nodes as u64),
            (KnownAtom::Depth, tree.depth as u64),
            (KnownAtom::Splits, tree.splits),
            (KnownAtom::Joins, tree.joins),
        ];
        (shape, tree.contended, tree.uncontended)
    } else if let Some(buckets) = shared.table.buckets() {
        let shape = [
            (KnownAtom::Buckets, buckets.buckets as u64),
            (KnownAtom::Lines, buckets.lines as u64),
            (KnownAtom::Locks, buckets.locks as u64),
            (KnownAtom::Doublings, buckets.doublings),
            (KnownAtom::Halvings, buckets.halvings),
        ];
        (shape, buckets.contended, buckets.uncontended)
    } else {
        return Ok(KnownAtom::False.word());
    };
    let contention = [
        (KnownAtom::Contended, contended),
        (KnownAtom::Uncontended, uncontended),
        (
            KnownAtom::Retries,
            shared.retries.load(Ordering::Relaxed).into(),
        ),
    ];
    let items = shape.into_iter().chain(contention);
    let (keys, values): (Vec<_>, Vec<_>) = items
        .map(|(key, value)| (key.word(), env.uint(value)))
        .unzip();
    Ok(env.map(&keys, &values).expect("the keys are distinct"))
}

/// `count_retry(Table)`: `ok`, after counting an attempt of an update that was in vain.
fn count_retry<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    if let Some(shared) = find_table(env, table, &guard)? {
        shared.retries.fetch_add(1, Ordering::Relaxed);
    }
    Ok(KnownAtom::Ok.word())
}

/// `shape(Table)`: `undefined`, `false` for a table without order, or its route nodes and base
/// nodes in key order, a route node before its children: `Depth` or `{Depth, Statistics, Contended,
/// Uncontended}`.
fn shape<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let Some(shared) = find_described(env, table, &guard)? else {
        return Ok(KnownAtom::Undefined.word());
    };
    let Some(nodes) = shared.table.shape() else {
        return Ok(KnownAtom::False.word());
    };
    let words = nodes.into_iter().map(|node| {
        let depth = env.uint(node.depth as u64);
        match node.base {
            None => depth,
            Some(base) => env.tuple(&[
                depth,
                env.int(base.statistics.into()),
                env.uint(base.contended),
                env.uint(base.uncontended),
            ]),
        }
    });
    Ok(env.list(&words.collect::<Vec<_>>()))
}

/// Returns the name of a type.
pub(super) fn type_word(table_type: TableType) -> VmWord<'static> {
    let name = match table_type {
        TableType::Set => KnownAtom::Set,
        TableType::OrderedSet => KnownAtom::OrderedSet,
        TableType::Bag => KnownAtom::Bag,
        TableType::DuplicateBag => KnownAtom::DuplicateBag,
        TableType::OrderedBag => KnownAtom::OrderedBag,
        TableType::OrderedDuplicateBag => KnownAtom::OrderedDuplicateBag,
    };
    name.word()
}

/// Builds `false`, or `{Timestamp, MonotonicTime, [{Pid, Count}]}`. Leaves out dead processes,
/// whose fixations end only when the VM reports their exit.
pub(super) fn fixation_term<'e>(env: Env<'e>, admin: &Admin) -> VmWord<'e> {
    let Some(since) = admin.fixed_since else {
        return KnownAtom::False.word();
    };
    let pair = |(pid, count): &(sys::Word, usize)| {
        // SAFETY: the word is a local pid, which is an immediate and so a term in every
        // environment (ENV-2).
        let pid = unsafe { VmWord::new(*pid) };
        process::is_alive(env, pid).then(|| env.tuple(&[pid, env.int(*count as i64)]))
    };
    let fixers: Vec<VmWord<'e>> = admin.fixes.iter().filter_map(pair).collect();
    if fixers.is_empty() {
        return KnownAtom::False.word();
    }
    let micros = since.system_micros;
    let timestamp = [
        micros / 1_000_000_000_000,
        micros / 1_000_000 % 1_000_000,
        micros % 1_000_000,
    ];
    let timestamp = env.tuple(&timestamp.map(|part| env.int(part)));
    env.tuple(&[timestamp, env.int(since.monotonic_nanos), env.list(&fixers)])
}
