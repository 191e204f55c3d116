//! Functions on whole tables: create, delete, rename, fix, give away.

use super::access::{find_deletable, find_readable, find_table, find_writable};
use super::arguments::{index, milliseconds};
#[cfg(feature = "rivals")]
use super::rival::on_rival;
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::env::{Env, VmWord};
use crate::evicted::Evicted;
use crate::full_scan::{self, FullScan};
use crate::handle::{Protection, Recipe, ReportedOptions, WriteConcurrency};
use crate::names::Renaming;
use crate::owner::{Heir, Owner};
use crate::ownership::Changes;
use crate::vm_codec::VmCodec;
use crate::vm_host::VmHost;
use crate::vm_term::VmTerm;
use crate::{lifetime, nif, otp_release, process, registry, sys};
use ats::terms::{BTreeStore, Limits, Table, TableType, Ttl, Zeros};
use ats_store::StoreHandle;
use std::sync::Arc;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("new", new, 2),
        nif!("delete", delete, 1),
        nif!("delete_all_objects", delete_all_objects, 1),
        nif!("clear", clear, 1),
        nif!("whereis", whereis, 1),
        nif!("rename", rename, 2),
        nif!("all", all, 0),
        nif!("safe_fixtable", safe_fixtable, 2),
        nif!("give_away", give_away, 4),
        nif!("setopts", setopts, 3),
        nif!("collect", collect, 0),
    ]
}

/// `new(Name, {Type, Protection, KeyPos, Named, Heir, HeirData, WriteConcurrency, ReadConcurrency,
/// DecentralizedCounters, Compressed, FullScan, Owner, Backend, SnapshotMemory, Limits, Evicted})`,
/// checked by the Erlang side.
fn new<'e>(env: Env<'e>, [name, options]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let words = options.tuple_words().ok_or(KnownAtom::None)?;
    let words: &[VmWord<'e>; 16] = words.try_into().map_err(|_| KnownAtom::None)?;
    let [
        kind,
        protection,
        position,
        named,
        heir,
        data,
        wc,
        rc,
        dc,
        compressed,
        scans,
        owner,
        backend,
        snapshot_memory,
        limits,
        evicted,
    ] = words.map(Term);
    let position = index(VmTerm::of(env, position.0))? + 1;
    if !name.is_atom() {
        return Err(KnownAtom::None.into());
    }
    let guard = ats_sync::pin();
    let named = named.boolean();
    let table = empty(env, table_type(kind)?, position, backend)?.compressed(compressed.boolean());
    let is_told = VmTerm::of(env, evicted.0).is_local_pid();
    let evicted = is_told.then(|| Evicted::new(evicted.0.raw()));
    let table = match (limits_of(env, limits)?, evicted.clone()) {
        (Some(limits), Some(evicted)) => table.telling(limits, evicted)?,
        (Some(limits), None) => table.limited(limits)?,
        (None, _) => table,
    };
    if let Some(bytes) = most_of(env, snapshot_memory) {
        table.set_snapshot_memory(bytes);
    }
    let shared = lifetime::create(
        env,
        Recipe {
            table,
            disk: None,
            pending_snapshot: None,
            limited_snapshot: None,
            read_point: None,
            name: name.word().raw(),
            named,
            protection: protection_of(protection)?,
            reported: ReportedOptions {
                write_concurrency: write_concurrency(env, wc)?,
                read_concurrency: rc.boolean(),
                decentralized_counters: dc.boolean(),
            },
            full_scan: full_scan::FullScanPolicy::new(full_scan_of(scans)?),
            owner: owner_of(env, owner)?,
            heir: heir_of(env, heir, data),
        },
        &guard,
    )?;
    if let Some(evicted) = evicted {
        evicted.set_table(shared.id.clone());
    }
    // Another process may have renamed the table already.
    Ok(if named {
        name.word()
    } else {
        shared.id.term(env)
    })
}

/// Reads a number of bytes or objects: `usize::MAX` for `infinity`, `None` for `default`.
fn most_of(env: Env<'_>, term: Term<'_>) -> Option<usize> {
    if KnownAtom::Infinity.is(term.0) {
        return Some(usize::MAX);
    }
    let bytes = VmTerm::of(env, term.0).as_unsigned()?;
    Some(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Reads the limits of a table: `false`, or `{Ttl, MaxObjects, MaxMemory}`, of which each may be
/// `infinity`.
fn limits_of(env: Env<'_>, term: Term<'_>) -> Result<Option<Limits>, KnownAtom> {
    if KnownAtom::False.is(term.0) {
        return Ok(None);
    }
    let words = VmTerm::of(env, term.0).tuple_words();
    let [ttl, objects, bytes] = words.ok_or(KnownAtom::None)? else {
        return Err(KnownAtom::None);
    };
    Ok(Some(Limits {
        ttl: ttl_of(env, Term(*ttl))?,
        objects: most_of(env, Term(*objects)).filter(|most| *most != usize::MAX),
        bytes: most_of(env, Term(*bytes)).filter(|most| *most != usize::MAX),
    }))
}

/// Reads the time after which objects expire: milliseconds, `{idle, Milliseconds}`, `{spread,
/// Milliseconds, Percent}`, or `infinity`.
fn ttl_of(env: Env<'_>, term: Term<'_>) -> Result<Ttl, KnownAtom> {
    if KnownAtom::Infinity.is(term.0) {
        return Ok(Ttl::Never);
    }
    let term = VmTerm::of(env, term.0);
    let time_of = |time: VmWord<'_>| milliseconds(VmTerm::of(env, time));
    match term.tuple_words() {
        Some([idle, time]) if KnownAtom::Idle.is(*idle) => Ok(Ttl::Idle(time_of(*time)?)),
        Some([spread, time, percent]) if KnownAtom::Spread.is(*spread) => {
            let percent = VmTerm::of(env, *percent).as_unsigned();
            let percent = percent.and_then(|percent| u8::try_from(percent).ok());
            Ok(Ttl::Spread(
                time_of(*time)?,
                percent.ok_or(KnownAtom::None)?,
            ))
        }
        _ => Ok(Ttl::Written(milliseconds(term)?)),
    }
}

/// Creates an empty table in the store named by the option `backend`.
fn empty<'e>(
    env: Env<'e>,
    kind: TableType,
    position: usize,
    backend: Term<'e>,
) -> Result<Table<VmHost>, KnownAtom> {
    let zeros = otp_release::zeros();
    if let Some(store) = store_for_tests(env, backend, kind, zeros)? {
        return Ok(Table::on_store(
            store,
            || process::may_block().is_some(),
            Arc::new(VmCodec),
            kind,
            position,
            zeros,
        ));
    }
    if KnownAtom::Default.is(backend.0) {
        return Ok(Table::with_zeros(kind, position, zeros));
    }
    if cfg!(feature = "rivals") && KnownAtom::Btree.is(backend.0) {
        let (store, codec) = (Box::new(BTreeStore::new()), Arc::new(VmCodec));
        return Ok(Table::on_store(
            store,
            || process::may_block().is_some(),
            codec,
            kind,
            position,
            zeros,
        ));
    }
    on_rival(env, backend.0, kind, position, zeros)
}

/// Refuses other values of the option `backend`: they name stores that this build does not have.
#[cfg(not(feature = "rivals"))]
fn on_rival(
    _env: Env<'_>,
    _backend: VmWord<'_>,
    _kind: TableType,
    _position: usize,
    _zeros: Zeros,
) -> Result<Table<VmHost>, KnownAtom> {
    Err(KnownAtom::Backend)
}

/// Creates a store that only tests can ask for.
#[cfg(feature = "forcing")]
fn store_for_tests(
    env: Env<'_>,
    backend: Term<'_>,
    kind: TableType,
    zeros: Zeros,
) -> Result<Option<Box<dyn StoreHandle>>, KnownAtom> {
    super::forcing::store_of(env, backend.0, kind, zeros)
}

#[cfg(not(feature = "forcing"))]
fn store_for_tests(
    _env: Env<'_>,
    _backend: Term<'_>,
    _kind: TableType,
    _zeros: Zeros,
) -> Result<Option<Box<dyn StoreHandle>>, KnownAtom> {
    Ok(None)
}

/// A word of the options, to be read.
#[derive(Clone, Copy)]
pub(super) struct Term<'e>(pub(super) VmWord<'e>);

impl Term<'_> {
    fn boolean(self) -> bool {
        KnownAtom::True.is(self.0)
    }
}

pub(super) fn table_type(term: Term<'_>) -> Result<TableType, KnownAtom> {
    let types = [
        (KnownAtom::Set, TableType::Set),
        (KnownAtom::OrderedSet, TableType::OrderedSet),
        (KnownAtom::Bag, TableType::Bag),
        (KnownAtom::DuplicateBag, TableType::DuplicateBag),
        (KnownAtom::OrderedBag, TableType::OrderedBag),
        (
            KnownAtom::OrderedDuplicateBag,
            TableType::OrderedDuplicateBag,
        ),
    ];
    one_of(term, &types)
}

fn protection_of(term: Term<'_>) -> Result<Protection, KnownAtom> {
    let protections = [
        (KnownAtom::Public, Protection::Public),
        (KnownAtom::Protected, Protection::Protected),
        (KnownAtom::Private, Protection::Private),
    ];
    one_of(term, &protections)
}

fn full_scan_of(term: Term<'_>) -> Result<FullScan, KnownAtom> {
    let choices = [
        (KnownAtom::Allow, FullScan::Allow),
        (KnownAtom::Warn, FullScan::Warn),
        (KnownAtom::Refuse, FullScan::Refuse),
    ];
    one_of(term, &choices)
}

pub(super) fn one_of<T: Copy>(term: Term<'_>, choices: &[(KnownAtom, T)]) -> Result<T, KnownAtom> {
    let found = choices.iter().find(|(atom, _)| atom.is(term.0));
    found.map(|(_, value)| *value).ok_or(KnownAtom::None)
}

fn write_concurrency(env: Env<'_>, term: Term<'_>) -> Result<WriteConcurrency, KnownAtom> {
    if let Some([_, locks]) = VmTerm::of(env, term.0).tuple_words() {
        let locks = VmTerm::of(env, *locks).as_small().ok_or(KnownAtom::None)?;
        return Ok(WriteConcurrency::Locks(locks));
    }
    let choices = [
        (KnownAtom::False, WriteConcurrency::False),
        (KnownAtom::True, WriteConcurrency::True),
        (KnownAtom::Auto, WriteConcurrency::Auto),
    ];
    one_of(term, &choices)
}

/// Reads the heir; `None` if there is none or it is dead.
fn heir_of(env: Env<'_>, heir: Term<'_>, data: Term<'_>) -> Option<Heir> {
    let is_pid = VmTerm::of(env, heir.0).is_local_pid();
    (is_pid && process::is_alive(env, heir.0)).then(|| Heir::new(heir.0.raw(), data.0))
}

/// Reads the owner: `process` for the caller, `none`, or the pid that stands for an application.
fn owner_of(env: Env<'_>, owner: Term<'_>) -> Result<Owner, KnownAtom> {
    if KnownAtom::None.is(owner.0) {
        Ok(Owner::Nobody)
    } else if VmTerm::of(env, owner.0).is_local_pid() {
        Ok(Owner::Application(owner.0.raw()))
    } else {
        let caller = env.own_pid().ok_or(KnownAtom::None)?;
        Ok(Owner::Process(caller.raw()))
    }
}

/// `give_away(Table, Pid, Gift, GroupLeader)`, with the group leader of the caller.
fn give_away<'e>(env: Env<'e>, [table, to, gift, leader]: [VmTerm<'e>; 4]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_writable(env, table, &guard)?;
    if !to.is_local_pid() {
        return Err(KnownAtom::None.into());
    }
    shared.give_away(env, to.word(), gift.word(), leader.word())?;
    Ok(KnownAtom::True.word())
}

/// `setopts(Table, {Heir, HeirData, Protection, Owner}, GroupLeader)`, with `false` for each
/// unchanged option. Any other term stands for wrong options, because errors of the table take
/// precedence.
fn setopts<'e>(env: Env<'e>, [table, options, leader]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_writable(env, table, &guard)?;
    let words = options.tuple_words().ok_or(KnownAtom::None)?;
    let words: &[VmWord<'e>; 4] = words.try_into().map_err(|_| KnownAtom::None)?;
    let [heir, data, protection, owner] = words.map(Term);
    let given = |term: Term<'e>| Some(term).filter(|term| !KnownAtom::False.is(term.0));
    let changes = Changes {
        heir: given(heir).map(|heir| heir_of(env, heir, data)),
        protection: given(protection).map(protection_of).transpose()?,
        owner: given(owner).map(|owner| owner_of(env, owner)).transpose()?,
    };
    shared.change(env, changes, leader.word())?;
    Ok(KnownAtom::True.word())
}

fn delete<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_deletable(env, table, &guard)?;
    // A transaction over several tables ends before one of them is gone.
    shared.table.close()?;
    let _earlier_reason = shared.id.set_released();
    if lifetime::delete(shared, &guard) {
        Ok(KnownAtom::True.word())
    } else {
        Err(KnownAtom::Id.into())
    }
}

fn delete_all_objects<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    find_writable(env, table, &guard)?.table.delete_all()?;
    Ok(KnownAtom::True.word())
}

/// `clear(Table) -> N`: deletes all objects in one step, and returns their number.
fn clear<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let objects = find_writable(env, table, &guard)?.table.clear()?;
    Ok(env.uint(objects as u64))
}

fn whereis<'e>(env: Env<'e>, [name]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    if !name.is_atom() {
        return Err(KnownAtom::None.into());
    }
    let guard = ats_sync::pin();
    Ok(match find_table(env, name, &guard)? {
        Some(shared) => shared.id.term(env),
        None => KnownAtom::Undefined.word(),
    })
}

fn rename<'e>(env: Env<'e>, [table, name]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_writable(env, table, &guard)?;
    if !name.is_atom() {
        return Err(KnownAtom::None.into());
    }
    let word = name.word().raw();
    if !shared.named {
        shared
            .name
            .store(word, std::sync::atomic::Ordering::Release);
        return Ok(shared.id.term(env));
    }
    let old = table.is_atom().then(|| table.word().raw());
    match lifetime::rename(env, shared, old, word, &guard) {
        Renaming::Done => Ok(name.word()),
        Renaming::Taken => Err(KnownAtom::AlreadyExists.into()),
        Renaming::Gone => Err(KnownAtom::Id.into()),
    }
}

fn all<'e>(env: Env<'e>, []: [VmTerm<'e>; 0]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let mut list = VmWord::NIL;
    for (shared, name) in registry::list_all(&guard) {
        // Tables on disk are known by other names, and to another module; snapshots only to their
        // creators.
        let is_listed = shared.disk.is_none() && shared.read_point.is_none();
        if is_listed && lifetime::ensure_alive(env, shared, &guard) {
            let user_term = if shared.named {
                // SAFETY: the word is an atom, which is an immediate and so a term in every
                // environment (ENV-2).
                unsafe { VmWord::new(name) }
            } else {
                shared.id.term(env)
            };
            list = env.cons(user_term, list);
        }
    }
    Ok(list)
}

fn safe_fixtable<'e>(env: Env<'e>, [table, on]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    match on.word() {
        on if KnownAtom::True.is(on) => shared.fix(env)?,
        on if KnownAtom::False.is(on) => shared.unfix(env)?,
        _ => return Err(KnownAtom::None.into()),
    }
    Ok(KnownAtom::True.word())
}

/// `collect() -> Freed`: frees memory that no reader can use any more, and returns free memory to
/// the system.
fn collect<'e>(env: Env<'e>, []: [VmTerm<'e>; 0]) -> NifResult<'e> {
    let freed = ats_sync::collect();
    ats::trim();
    Ok(env.int(freed as i64))
}
