//! Snapshots of tables in memory, as read-only tables.

use super::access::{find_readable, find_table};
use super::object_terms::object_list_unlimited;
use crate::atoms::{KnownAtom, boolean};
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::full_scan::{FullScan, FullScanPolicy};
use crate::handle::WriteConcurrency;
use crate::handle::{Handle, Protection, Recipe, ReportedOptions, Shared, Shown, SnapshotView};
use crate::owner::Owner;
use crate::resource::{self, Resource, ResourceRef, Slot};
use crate::sys::Word;
use crate::vm_host::VmHost;
use crate::vm_term::VmTerm;
use crate::{lifetime, nif, process, sys};
use ats::terms::{Ending, HeldReadPoint, Reader};
use ats_sync::Guard;
use std::ffi::CStr;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("snapshot", snapshot, 2),
        nif!("snapshots", snapshots, 1),
        nif!("snapshot_state", snapshot_state, 1),
        nif!("release", release, 1),
        nif!("end_when_freed", end_when_freed, 1),
        nif!("may_have_changed", may_have_changed, 2),
        nif!("changed_keys", changed_keys, 2),
        nif!("differences", differences, 4),
    ]
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the reason why the store has ended a snapshot, if it has.
pub(super) fn find_ending(shared: &Shared) -> Option<KnownAtom> {
    let why = match &shared.read_point.as_ref()?.shown {
        Shown::Disk(snapshot) => match snapshot.ending()? {
            ats_disk::Ending::Age => Some(KnownAtom::MaxAge),
            ats_disk::Ending::Memory => Some(KnownAtom::Memory),
            _ => None,
        },
        Shown::Memory(read_point) => match read_point.ending()? {
            Ending::Age => Some(KnownAtom::MaxAge),
            Ending::Memory => Some(KnownAtom::Memory),
            Ending::Released => None,
        },
    };
    why.or_else(|| shared.id.ending())
}

/// Resolves a table that is to be described; `None` if it does not exist, or is a snapshot that has
/// ended.
pub(super) fn find_described<'g>(
    env: Env<'_>,
    term: VmTerm<'g>,
    guard: &'g Guard,
) -> Result<Option<&'g Shared>, KnownAtom> {
    let found = find_table(env, term, guard)?;
    Ok(found.filter(|shared| find_ending(shared).is_none()))
}

/// `snapshot(Table, query | default | MaxAge)`: a snapshot of a table, as a table that ends with
/// the caller. With `query`, every process that may read the table may read it, nothing else ends
/// it, and the result is `none` if the store has no snapshots or the table is one itself. Every
/// process may read the other snapshots, which also end after `MaxAge` milliseconds, or if they
/// hold back too much memory.
fn snapshot<'e>(env: Env<'e>, [table, age]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let caller = env.own_pid().ok_or(KnownAtom::None)?;
    let is_query = KnownAtom::Query.is(age.word());
    // A snapshot must be taken by a thread that is not pinned.
    let shared = {
        let guard = ats_sync::pin();
        find_readable(env, table, &guard)?.to_arc()
    };
    let Some(read_point) = shared.table.begin()? else {
        return match shared.read_point {
            _ if is_query => Ok(KnownAtom::None.word()),
            Some(_) => Err(KnownAtom::Snapshot.into()),
            None => Err(KnownAtom::Backend.into()),
        };
    };
    let reader = if is_query {
        Reader::Query
    } else {
        Reader::Program
    };
    let shown = read_point.keep(&shared.table, reader);
    if !shared.is_found_by_id() {
        // A concurrent delete may have listed the queries before this one was added.
        return Err(KnownAtom::Id.into());
    }
    if let Some(age) = age.as_unsigned() {
        shown.read_point().keep_for(Duration::from_millis(age));
    }
    let (table, read_point) = shown.into_parts();
    read_point.set_holder(caller.raw());
    let guard = ats_sync::pin();
    let recipe = Recipe {
        table,
        disk: None,
        pending_snapshot: None,
        limited_snapshot: None,
        read_point: Some(SnapshotView {
            shown: Shown::Memory(read_point),
            source: shared.id.clone(),
        }),
        name: shared.name().raw(),
        named: false,
        protection: if is_query {
            Protection::OfSource
        } else {
            Protection::Snapshot
        },
        reported: ReportedOptions {
            write_concurrency: WriteConcurrency::False,
            read_concurrency: false,
            decentralized_counters: false,
        },
        full_scan: FullScanPolicy::new(FullScan::Allow),
        owner: Owner::Process(caller.raw()),
        heir: None,
    };
    let made = lifetime::create(env, recipe, &guard)?;
    if !is_query {
        made.id.begin_snapshot();
    }
    Ok(made.id.term(env))
}

/// Returns `true` if the process that holds a snapshot is alive.
pub(super) fn is_pid_alive(env: Env<'_>, pid: Word) -> bool {
    // SAFETY: the word is that of a local pid, which is an immediate and so a term in every
    // environment (ENV-2).
    process::is_alive(env, unsafe { VmWord::new(pid) })
}

/// `snapshots(Table)`: `{Number, Queries, Oldest, Memory, Evicted}` of the snapshots of a table and
/// of its running queries. `Oldest` is the age of the oldest in milliseconds, `Memory` is the
/// number of bytes held back for them, and `Evicted` is the number of snapshots ended by limits.
fn snapshots<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let Some(shared) = find_described(env, table, &guard)? else {
        return Ok(KnownAtom::Undefined.word());
    };
    // A dead owner keeps its snapshots until each is told of its exit, in the background.
    let kept = shared
        .table
        .kept_snapshots_of(&|holder| is_pid_alive(env, holder));
    let words: [VmWord<'e>; 5] = [
        env.uint(kept.count as u64),
        env.uint(kept.queries as u64),
        env.uint(milliseconds(kept.oldest)),
        env.uint(kept.bytes as u64),
        env.uint(kept.evicted),
    ];
    Ok(env.tuple(&words))
}

/// `snapshot_state(Term)`: `none` if the term is no snapshot held by a program; the reason of its
/// end, if it has ended; or `{disk | memory, Table, Owner, Age}` with its age in milliseconds.
fn snapshot_state<'e>(env: Env<'e>, [term]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let Some(handle) = resource::get::<Handle>(term) else {
        return Ok(KnownAtom::None.word());
    };
    let Some(why) = handle.ending() else {
        return Ok(KnownAtom::None.word());
    };
    let guard = ats_sync::pin();
    let Some(shared) = find_table(env, term, &guard)? else {
        return Ok(handle.ending().unwrap_or(why).word());
    };
    if let Some(why) = find_ending(shared) {
        return Ok(why.word());
    }
    let read_point = shared.read_point.as_ref().ok_or(KnownAtom::None)?;
    let owner = shared.owner().unwrap_or(KnownAtom::None.word());
    let age = env.uint(milliseconds(read_point.age()));
    let store = match &read_point.shown {
        Shown::Disk(_) => KnownAtom::Disk,
        Shown::Memory(_) => KnownAtom::Memory,
    };
    Ok(env.tuple(&[store.word(), read_point.source.term(env), owner, age]))
}

/// `release(Snapshot)`: ends a snapshot, of any owner: `true`, even if it had ended already.
fn release<'e>(env: Env<'e>, [term]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let handle = resource::get::<Handle>(term).ok_or(KnownAtom::Type)?;
    if handle.set_released().ok_or(KnownAtom::Id)? == KnownAtom::Released {
        return Err(KnownAtom::Id.into());
    }
    let guard = ats_sync::pin();
    if let Some(shared) = find_table(env, term, &guard)? {
        lifetime::delete(shared, &guard);
    }
    Ok(KnownAtom::True.word())
}

/// A snapshot that ends when the VM frees this resource.
pub(crate) struct HeldSnapshot(ResourceRef<Handle>);

impl Resource for HeldSnapshot {
    const NAME: &'static CStr = c"ats_held_snapshot";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }
}

impl Drop for HeldSnapshot {
    fn drop(&mut self) {
        let guard = ats_sync::pin();
        if let Some(shared) = self.0.get(&guard) {
            lifetime::delete(shared, &guard);
        }
    }
}

/// `end_when_freed(Snapshot)`: a reference whose garbage collection ends the snapshot of a query,
/// unless it has ended already.
fn end_when_freed<'e>(env: Env<'e>, [term]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let snapshot = ResourceRef::<Handle>::of_term(term).ok_or(KnownAtom::Type)?;
    Ok(ResourceRef::new(HeldSnapshot(snapshot)).term(env))
}

/// Keys that may differ between two snapshots.
pub(crate) struct ChangedKeys(Vec<Box<[u8]>>);

impl Resource for ChangedKeys {
    const NAME: &'static CStr = c"ats_changed_keys";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }
}

/// Resolves a snapshot of a table in memory, to be read without a guard.
fn find_snapshot(env: Env<'_>, term: VmTerm<'_>) -> Result<Arc<Shared>, KnownAtom> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, term, &guard)?;
    read_point_of(shared)?;
    Ok(shared.to_arc())
}

fn read_point_of(shared: &Shared) -> Result<&Arc<HeldReadPoint<VmHost>>, KnownAtom> {
    let read_point = shared.read_point.as_ref().and_then(SnapshotView::of_memory);
    read_point.ok_or(KnownAtom::NoSnapshot)
}

/// `may_have_changed(Table, Snapshot)`: `false` if the table is as it was when this snapshot of it
/// was made.
fn may_have_changed<'e>(env: Env<'e>, [table, snapshot]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    // The caller must not be pinned.
    let shared = {
        let guard = ats_sync::pin();
        find_readable(env, table, &guard)?.to_arc()
    };
    let may_have_changed = match find_snapshot(env, snapshot) {
        Ok(snapshot) => shared.table.may_have_changed(read_point_of(&snapshot)?)?,
        // A snapshot that has ended shows nothing.
        Err(_) => true,
    };
    Ok(boolean(may_have_changed))
}

/// `changed_keys(First, Second)`: a reference to the keys that changed between two snapshots of a
/// table.
fn changed_keys<'e>(env: Env<'e>, [first, second]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    // The call visits each version.
    if !process::on_dirty_scheduler() {
        return Err(NoReply::DirtyCpu);
    }
    let (first, second) = (find_snapshot(env, first)?, find_snapshot(env, second)?);
    let source = |shared: &Shared| Some(ptr::from_ref(&*shared.read_point.as_ref()?.source));
    if source(&first) != source(&second) {
        return Err(KnownAtom::OtherTable.into());
    }
    let keys = read_point_of(&first)?.changed_keys(read_point_of(&second)?)?;
    Ok(ResourceRef::new(ChangedKeys(keys)).term(env))
}

/// Approximate duration of a call that finds differences.
const SLICE: Duration = Duration::from_micros(500);

/// `differences(First, Second, Keys, From) -> {[{OfFirst, OfSecond}], Next | done}`: the objects of
/// the keys from index `From` on whose records differ between two snapshots.
fn differences<'e>(env: Env<'e>, [first, second, keys, from]: [VmTerm<'e>; 4]) -> NifResult<'e> {
    let keys = resource::get::<ChangedKeys>(keys).ok_or(KnownAtom::None)?;
    let from = from.as_unsigned().ok_or(KnownAtom::None)?;
    let from = usize::try_from(from).map_err(|_| KnownAtom::None)?;
    let guard = ats_sync::pin();
    let first = find_readable(env, first, &guard)?;
    let second = find_readable(env, second, &guard)?;
    let begun = Instant::now();
    let (mut pairs, mut next) = (Vec::new(), from);
    for key in keys.0.iter().skip(from) {
        if next > from && begun.elapsed() > SLICE {
            break;
        }
        next += 1;
        let old = first.table.lookup_bytes(key, &guard)?;
        let new = second.table.lookup_bytes(key, &guard)?;
        let is_same = match (&old, &new) {
            (Some(old), Some(new)) => old.is_same(new),
            (old, new) => old.is_none() && new.is_none(),
        };
        if !is_same {
            let list = |found| match found {
                Some(found) => object_list_unlimited(env, &found),
                None => VmWord::NIL,
            };
            pairs.push(env.tuple(&[list(old), list(new)]));
        }
    }
    process::consume(env, begun.elapsed().as_micros() / 10);
    let next = if next < keys.0.len() {
        env.uint(next as u64)
    } else {
        KnownAtom::Done.word()
    };
    Ok(env.tuple(&[env.list(&pairs), next]))
}
