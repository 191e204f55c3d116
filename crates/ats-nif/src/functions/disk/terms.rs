//! Arguments and results of functions on tables on disk.

use crate::atoms::KnownAtom;
use crate::call::{NifResult, NoReply};
use crate::disk::Failure;
use crate::env::{Env, VmWord};
use crate::process;
use crate::vm_term::VmTerm;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Reads a path from a binary.
pub(super) fn path(directory: VmTerm<'_>) -> Result<&Path, KnownAtom> {
    let bytes = directory.as_bytes().ok_or(KnownAtom::None)?;
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Builds `{error, Cause, Text}`.
pub(super) fn failure_term<'e>(env: Env<'e>, failure: &Failure) -> VmWord<'e> {
    env.tuple(&[
        KnownAtom::Error.word(),
        failure.cause.word(),
        env.binary(failure.text.as_bytes()),
    ])
}

/// Builds `ok`, or the failure.
pub(super) fn result_term(env: Env<'_>, done: Result<(), Failure>) -> VmWord<'_> {
    match done {
        Ok(()) => KnownAtom::Ok.word(),
        Err(failure) => failure_term(env, &failure),
    }
}

/// Reads a word that is `default` if the user gave no value.
pub(super) fn read_optional<'e, T>(
    term: VmTerm<'e>,
    read: impl FnOnce(VmTerm<'e>) -> Option<T>,
) -> Result<Option<T>, KnownAtom> {
    if KnownAtom::Default.is(term.word()) {
        Ok(None)
    } else {
        read(term).ok_or(KnownAtom::None).map(Some)
    }
}

pub(super) fn size(term: VmTerm<'_>) -> Option<usize> {
    usize::try_from(term.as_small()?).ok()
}

/// Reads the value for a key, or `None` for `missing`.
pub(super) fn value_bytes(value: VmTerm<'_>) -> Result<Option<&[u8]>, KnownAtom> {
    if KnownAtom::Missing.is(value.word()) {
        Ok(None)
    } else {
        value.as_bytes().ok_or(KnownAtom::None).map(Some)
    }
}

/// Length above which a value becomes terms on a dirty scheduler: this many bytes take a few
/// hundred microseconds.
const LONG_VALUE: usize = 128 << 10;

/// Checks that this scheduler may copy this many bytes, or build terms of them.
pub(super) fn check_length(bytes: usize) -> Result<(), NoReply> {
    if bytes > LONG_VALUE && !process::on_dirty_scheduler() {
        Err(NoReply::DirtyCpu)
    } else {
        Ok(())
    }
}

/// Builds `{Key, Value}` of a record of the store, as binaries.
pub(super) fn record_term<'e>(env: Env<'e>, key: &[u8], value: &[u8]) -> VmWord<'e> {
    env.tuple(&[env.binary(key), env.binary(value)])
}

/// Builds `{Tag, Record}`.
pub(super) fn tagged_record_term<'e>(
    env: Env<'e>,
    tag: KnownAtom,
    key: &[u8],
    value: &[u8],
) -> NifResult<'e> {
    check_length(value.len())?;
    Ok(env.tuple(&[tag.word(), record_term(env, key, value)]))
}
