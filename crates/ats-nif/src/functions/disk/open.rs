//! Opening and closing of directories as tables.

use super::access::{on_dirty_io, open_table_of};
use super::endings::end_snapshots;
use super::terms::{failure_term, path, read_optional, result_term, size};
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::disk::{Access, Failure, OpenTable, Settings, describe};
use crate::env::{Env, VmWord};
use crate::full_scan::{self, FullScan};
use crate::functions::access::find_table;
use crate::functions::info::type_word;
use crate::functions::tables::{Term, one_of, table_type};
use crate::handle::{Protection, Recipe, ReportedOptions, WriteConcurrency};
use crate::owner::Owner;
use crate::vm_codec::VmCodec;
use crate::vm_term::VmTerm;
use crate::{lifetime, nif, otp_release, process, sys};
use ats::terms::Table;
use ats_disk::{Compression, Durability, Lifetime};
use ats_store::StoreHandle;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_open", disk_open, 3),
        nif!("disk_close", disk_close, 1),
        nif!("disk_publish", disk_publish, 1),
        nif!("disk_describe", disk_describe, 1),
    ]
}

/// The options of `disk_open`, a map that the Erlang side has checked.
struct Options<'e>(VmTerm<'e>);

impl<'e> Options<'e> {
    /// Reads a required option.
    fn get<T>(
        &self,
        key: KnownAtom,
        read: impl FnOnce(VmTerm<'e>) -> Option<T>,
    ) -> Result<T, KnownAtom> {
        let value = self.0.map_value(key.word());
        value.and_then(read).ok_or(KnownAtom::None)
    }

    /// Reads an option that may be `default`.
    fn get_optional<T>(
        &self,
        key: KnownAtom,
        read: impl FnOnce(VmTerm<'e>) -> Option<T>,
    ) -> Result<Option<T>, KnownAtom> {
        self.get(key, |value| read_optional(value, read).ok())
    }

    fn settings(&self) -> Result<Settings, KnownAtom> {
        let bytes = |value: VmTerm<'e>| value.as_bytes().map(<[u8]>::to_vec);
        let milliseconds = |value: VmTerm<'e>| value.as_unsigned().map(Duration::from_millis);
        Ok(Settings {
            create: self.get(KnownAtom::Create, boolean)?,
            temporary: self.get(KnownAtom::Temporary, boolean)?,
            access: self.get(KnownAtom::Access, |access| {
                let accesses = [
                    (KnownAtom::Read, Access::Read),
                    (KnownAtom::ReadWrite, Access::ReadWrite),
                ];
                one_of(Term(access.word()), &accesses).ok()
            })?,
            table_type: self
                .get_optional(KnownAtom::Type, |kind| table_type(Term(kind.word())).ok())?,
            key_position: self.get_optional(KnownAtom::KeyPos, size)?,
            merge: self.get_optional(KnownAtom::Merge, bytes)?,
            format: self.get_optional(KnownAtom::Formats, bytes)?,
            lifetime: self.get_optional(KnownAtom::Ttl, |ttl| {
                if KnownAtom::Infinity.is(ttl.word()) {
                    return Some(Lifetime::Forever);
                }
                milliseconds(ttl).map(Lifetime::For)
            })?,
            zeros: otp_release::zeros(),
            durability: self.get(KnownAtom::Durability, durability)?,
            block_bytes: self.get_optional(KnownAtom::BlockSize, size)?,
            memory: self.get_optional(KnownAtom::Memory, size)?,
            memtable_keys: self.get_optional(KnownAtom::MemtableKeys, size)?,
            compression: if self.get(KnownAtom::Compressed, boolean)? {
                Compression::Lz4
            } else {
                Compression::None
            },
            snapshot_memory: self.get(KnownAtom::SnapshotMemory, size)?,
            continuation_age: match self.get(KnownAtom::ContinuationAge, Some)? {
                age if KnownAtom::Infinity.is(age.word()) => None,
                age => Some(milliseconds(age).ok_or(KnownAtom::None)?),
            },
        })
    }
}

fn boolean(value: VmTerm<'_>) -> Option<bool> {
    let booleans = [(KnownAtom::True, true), (KnownAtom::False, false)];
    one_of(Term(value.word()), &booleans).ok()
}

/// Parses `sync`, `system`, or `{interval, Milliseconds}`.
fn durability(value: VmTerm<'_>) -> Option<Durability> {
    match value.tuple_words() {
        Some(&[tag, interval]) if KnownAtom::Interval.is(tag) => {
            let interval = VmTerm::of(value.env(), interval).as_unsigned()?;
            Some(Durability::Interval(Duration::from_millis(interval)))
        }
        _ => {
            let names = [
                (KnownAtom::Sync, Durability::Always),
                (KnownAtom::System, Durability::System),
            ];
            one_of(Term(value.word()), &names).ok()
        }
    }
}

/// `disk_open(Directory, Options, Owner)`: `{ok, Table}`, or `{error, Cause, Text}`. `Directory` is
/// a binary, and the options are a map, see [`Options`].
fn disk_open<'e>(env: Env<'e>, [directory, options, owner]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    on_dirty_io()?;
    let settings = Options(options).settings()?;
    if !owner.is_local_pid() {
        return Err(KnownAtom::None.into());
    }
    let opened = match OpenTable::open(path(directory)?, &settings) {
        Ok(opened) => Arc::new(opened),
        Err(failure) => return Ok(failure_term(env, &failure)),
    };
    let protection = match settings.access {
        Access::Read => Protection::Protected,
        Access::ReadWrite => Protection::Public,
    };
    let recipe = recipe(&opened, opened.as_table(), protection, owner.word());
    let guard = ats_sync::pin();
    match lifetime::create(env, recipe, &guard) {
        Ok(shared) => Ok(env.tuple(&[KnownAtom::Ok.word(), shared.id.term(env)])),
        Err(cause) => {
            // The owner has ended meanwhile. The opened table itself is intact.
            let _nothing_to_flush = opened.close();
            Err(cause.into())
        }
    }
}

/// Returns the parts of a table on the store of an open directory, or on a snapshot of one.
pub(super) fn recipe(
    opened: &Arc<OpenTable>,
    store: Box<dyn StoreHandle>,
    protection: Protection,
    owner: VmWord<'_>,
) -> Recipe {
    let description = opened.description();
    Recipe {
        table: Table::on_store(
            store,
            || process::may_block().is_some(),
            Arc::new(VmCodec),
            description.table_type,
            description.key_position,
            description.zeros,
        ),
        disk: Some(Arc::clone(opened)),
        pending_snapshot: None,
        limited_snapshot: None,
        read_point: None,
        name: KnownAtom::Dats.word().raw(),
        named: false,
        protection,
        reported: ReportedOptions {
            write_concurrency: WriteConcurrency::True,
            read_concurrency: true,
            decentralized_counters: false,
        },
        full_scan: full_scan::FullScanPolicy::new(FullScan::Allow),
        owner: Owner::Process(owner.raw()),
        heir: None,
    }
}

/// `disk_close(Table)`: closes a table for all processes: `ok`, or `{error, Cause, Text}`; it is
/// closed in both cases.
fn disk_close<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    close(env, table, |_| Ok(()))
}

/// `disk_publish(Table)`: closes a table that was made in a temporary directory, and moves it to
/// the directory that `disk_open` named: `ok`, or `{error, Cause, Text}`, after which the table is
/// gone.
fn disk_publish<'e>(env: Env<'e>, [table]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    close(env, table, OpenTable::publish)
}

/// Closes a table for all processes, and runs `then` on its files if that succeeded.
fn close<'e>(
    env: Env<'e>,
    table: VmTerm<'e>,
    finish: impl FnOnce(&OpenTable) -> Result<(), Failure>,
) -> NifResult<'e> {
    on_dirty_io()?;
    let guard = ats_sync::pin();
    let shared = find_table(env, table, &guard)?.ok_or(KnownAtom::Id)?;
    let opened = open_table_of(shared)?;
    if !lifetime::delete(shared, &guard) {
        return Err(KnownAtom::Id.into());
    }
    let has_walks = end_snapshots(env, &opened, &guard);
    drop(guard);
    let closed = opened.close().and_then(|()| finish(&opened));
    let files = opened.files();
    drop(opened);
    // Walks of processes may take arbitrarily long. The last one closes the files.
    if !has_walks {
        files.wait();
    }
    Ok(result_term(env, closed))
}

/// `disk_describe(Directory)`: `{ok, Type, KeyPos, Merge, Format}`, or the reason why there is no
/// table.
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
        Err(failure) => failure_term(env, &failure),
    })
}
