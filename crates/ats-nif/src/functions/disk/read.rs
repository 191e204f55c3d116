//! Reading a key of a table on disk.

use super::terms::{check_length, tagged_record_term};
use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::disk::OpenTable;
use crate::env::Env;
use crate::functions::access::find_readable;
use crate::functions::object_terms::write_key;
use crate::functions::objects;
use crate::vm_term::VmTerm;
use crate::{nif, process, scratch, sys};
use ats::terms::Error;
use ats::terms::program_merge::{merged_value, objects as objects_of};

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("disk_lookup", disk_lookup, 2),
        nif!("disk_record", disk_record, 2),
    ]
}

/// Builds the list of the objects in a value.
fn terms<'e>(env: Env<'e>, value: &[u8]) -> NifResult<'e> {
    check_length(value.len())?;
    let objects = objects_of(value).map_err(Error::from)?;
    let words: Option<Vec<_>> = objects
        .into_iter()
        .map(|object| env.from_etf(object))
        .collect();
    Ok(env.list(&words.ok_or(KnownAtom::Damaged)?))
}

/// `disk_lookup(Table, Key)`: the result of `lookup` on an open table, built directly from the
/// bytes of the store without a record in between; or `{pending, Record}`, like `disk_record`. A
/// snapshot held by a program answers like `lookup`.
fn disk_lookup<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    if shared.read_point.is_some() {
        return objects::lookup(env, [table, key]);
    }
    let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
    scratch::with_key(|bytes| {
        write_key(&shared.table, key, bytes)?;
        let mut found = None;
        let read = opened
            .store()
            .read(process::may_block(), bytes, &mut |value| {
                let object = match opened.program() {
                    Some(_) => merged_value(value),
                    None => Some(value),
                };
                found = Some(match object {
                    Some(value) => terms(env, value),
                    None => tagged_record_term(env, KnownAtom::Pending, bytes, value),
                });
            });
        read.map_err(Error::from)?;
        found.unwrap_or_else(|| Ok(env.list(&[])))
    })
}

/// Runs `work` on the value of a key in the store, if the key exists.
pub(super) fn with_value<R>(
    opened: &OpenTable,
    key: &[u8],
    work: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>, NoReply> {
    let (mut work, mut found) = (Some(work), None);
    let mut see = |value: &[u8]| found = work.take().map(|work| work(value));
    opened
        .store()
        .read(process::may_block(), key, &mut see)
        .map_err(Error::from)?;
    Ok(found)
}

/// `disk_record(Table, Key)`: `{object, Record}`, or `{pending, Record}` with a record like those
/// of `disk_pending` if its values are not merged yet; `none` if the key is absent.
fn disk_record<'e>(env: Env<'e>, [table, key]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_readable(env, table, &guard)?;
    let opened = shared.disk.as_ref().ok_or(KnownAtom::TableType)?;
    scratch::with_key(|bytes| {
        write_key(&shared.table, key, bytes)?;
        let found = with_value(opened, bytes, |value| {
            let tag = match merged_value(value) {
                Some(_) => KnownAtom::Object,
                None => KnownAtom::Pending,
            };
            tagged_record_term(env, tag, bytes, value)
        });
        found?.unwrap_or_else(|| Ok(KnownAtom::None.word()))
    })
}
