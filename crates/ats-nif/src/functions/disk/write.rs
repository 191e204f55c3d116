//! Writes to a table on disk that do not read the key first, and replacements of values read
//! before.

use super::merge::{program_words, version_of};
use super::terms::{check_length, value_bytes};
use crate::atoms::{self, KnownAtom};
use crate::call::{NifResult, NoReply};
use crate::disk::{Expected, Replace};
use crate::env::Env;
use crate::etf::Etf;
use crate::functions::access::{check_not_bag, with_writable};
use crate::functions::object_terms::write_key;
use crate::functions::tables::{Term, one_of};
use crate::handle::Shared;
use crate::scratch::LONG_OBJECT;
use crate::vm_host::VmHost;
use crate::vm_term::VmTerm;
use crate::{nif, process, scratch, sys};
use ats::terms::program_merge::{Length, Written, encode_value};
use ats::terms::{Error, Table};
use ats_term::term_ref::is_larger;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_write", disk_write, 2),
        nif!("disk_operand", disk_operand, 4),
        nif!("disk_delete", disk_delete, 2),
        nif!("disk_delete_unread", disk_delete_unread, 2),
        nif!("disk_replace", disk_replace, 5),
    ]
}

/// Lends the encoded key and value of a pair. The value is the list of the key's objects, after its
/// length.
fn with_pair<'e, R>(
    env: Env<'e>,
    table: &Table<VmHost>,
    pair: VmTerm<'e>,
    work: impl FnOnce(&[u8], &[u8]) -> Result<R, NoReply>,
) -> Result<R, NoReply> {
    if table.key_position() > 1 {
        // A pair consists of a key and a value.
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
        // A key is not longer than its object, so this check covers it.
        let at = bytes.len();
        let len = u32::try_from(etf.bytes().len()).map_err(|_| KnownAtom::TooLong)?;
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(etf.bytes());
        let (key, value) = bytes.split_at(at);
        work(key, value)
    })
}

/// `disk_write(Table, Object)`: writes an object as a merge operand of its key, without reading the
/// key: `written`; `operand` if it cannot be merged; `{ask, Name, Version}` if a program merges,
/// which must be asked first. Not for bags.
fn disk_write<'e>(env: Env<'e>, [table, object]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    with_writable(env, table, |shared, _| {
        let shared = check_not_bag(shared)?;
        let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
        if let Some(program) = opened.program() {
            let [module, version] = program_words(env, program);
            return Ok(env.tuple(&[KnownAtom::Ask.word(), module, version]));
        }
        let Some(merge) = opened.merge() else {
            if shared.table.key_position() > 1 {
                return Err(KnownAtom::KeyPos.into());
            }
            scratch::with_workspace(|work| shared.table.insert(object, work))?;
            return Ok(KnownAtom::Written.word());
        };
        with_pair(env, &shared.table, object, |key, value| {
            let Some(operand) = merge.operand(value) else {
                return Ok(KnownAtom::Operand.word());
            };
            opened
                .store()
                .merge(process::may_block(), key, &operand)
                .map_err(Error::from)?;
            Ok(KnownAtom::Written.word())
        })
    })
}

/// `disk_operand(Table, Object, How, Version)`: writes an object to a key that a program merges,
/// without reading the key. `How` is `object` for a full value, which hides older ones; an operand
/// is `present` if it counts as an object by itself, and `undefined` if the key may be missing.
/// Returns `written`; `hot` if a key has many unmerged operands; `long` if it has so many that they
/// should be merged before further writes. If the table has another version of the program, it
/// returns `{other_version, Version}` with that version, and writes nothing.
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
            let written = encode_value(object, how).ok_or(KnownAtom::SystemLimit)?;
            let write = || match how {
                Written::Object => opened
                    .store()
                    .put_unread(process::may_block(), key, &written),
                Written::Present | Written::Unknown => {
                    opened.store().merge(process::may_block(), key, &written)
                }
            };
            let done = program.with_version(version, write);
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

/// `disk_delete(Table, Key)`: removes the objects of a key, even if its operands cannot be merged,
/// or are not merged yet.
fn disk_delete<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    with_writable(env, table, |shared, _| {
        let is_deleted = scratch::with_workspace(|work| match shared.table.delete(key, work) {
            Err(Error::Storage(ats_store::Error::Pending | ats_store::Error::Merge)) => Ok(false),
            deleted => deleted.map(|()| true),
        })?;
        if !is_deleted {
            delete_unread(shared, key)?;
        }
        Ok(KnownAtom::True.word())
    })
}

/// `disk_delete_unread(Table, Key)`: removes a key without reading it. Not for bags.
fn disk_delete_unread<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    with_writable(env, table, |shared, _| {
        delete_unread(shared, key)?;
        Ok(KnownAtom::True.word())
    })
}

fn delete_unread(shared: &Shared, key: VmTerm<'_>) -> Result<(), NoReply> {
    let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
    scratch::with_key(|bytes| {
        write_key(&shared.table, key, bytes)?;
        Ok(opened
            .store()
            .delete_unread(process::may_block(), bytes)
            .map_err(Error::from)?)
    })
}

/// `disk_replace(Table, Key, Value, New, all | beginning)`: replaces the value of a key by `New`,
/// or removes the key if that is `missing`, provided that the value, or its beginning, still equals
/// `Value`. Returns `true` on success.
fn disk_replace<'e>(
    env: Env<'e>,
    [table, key, value, new, how_much]: [VmTerm<'e>; 5],
) -> NifResult<'e> {
    let expected = [
        (KnownAtom::All, Expected::All),
        (KnownAtom::Beginning, Expected::Beginning),
    ];
    let expected = one_of(Term(how_much.word()), &expected)?;
    with_writable(env, table, |shared, _| {
        let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
        let key = key.as_bytes().ok_or(KnownAtom::None)?;
        let value = value.as_bytes().ok_or(KnownAtom::None)?;
        let new = value_bytes(new)?;
        check_length(value.len() + new.map_or(0, <[u8]>::len))?;
        let by = Replace {
            expected: value,
            how_much: expected,
            by: new,
        };
        let replaced = opened
            .store()
            .replace(process::may_block(), key, by)
            .map_err(Error::from)?;
        Ok(atoms::boolean(replaced))
    })
}
