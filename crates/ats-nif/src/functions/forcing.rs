//! Events that tests force on tables. Only in builds with the feature `forcing`.

use super::access::find_writable;
use crate::atoms::KnownAtom;
use crate::call::NifResult;
use crate::disk::StressStore;
use crate::env::{Env, VmWord};
use crate::vm_codec::VmCodec;
use crate::vm_term::VmTerm;
use crate::{nif, sys};
use ats::terms::select::Slice;
use ats::terms::{BagValues, ObjectIdentity, TableType, Zeros};
use ats_store::StoreHandle;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("force_adaptation", force_adaptation, 3),
        nif!("force_slices", force_slices, 1),
        nif!("advance_clock", advance_clock, 1),
    ]
}

/// `force_adaptation(Table, Splits, Joins)`: see [`ats::terms::Table::force_adaptation`].
fn force_adaptation<'e>(env: Env<'e>, [table, splits, joins]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    let guard = ats_sync::pin();
    let shared = find_writable(env, table, &guard)?;
    shared
        .table
        .force_adaptation(number(splits)?, number(joins)?);
    Ok(KnownAtom::True.word())
}

/// Amount of work after which slices end by force; 0 if they end by time.
static TICKS: AtomicU32 = AtomicU32::new(0);

/// `force_slices(Ticks)`: makes later slices end after this much work, see [`Slice::of_work`]; 0
/// undoes that.
fn force_slices<'e>(_env: Env<'e>, [ticks]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    TICKS.store(number(ticks)?, Ordering::Relaxed);
    Ok(KnownAtom::True.word())
}

/// `advance_clock(Ms)`: see [`ats::terms::advance_clock`]; the same for tables on disk.
fn advance_clock<'e>(_env: Env<'e>, [time]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let ms = u64::from(number(time)?);
    ats::terms::advance_clock(Duration::from_millis(ms));
    ats_disk::fs::advance_wall_clock(ms);
    Ok(KnownAtom::True.word())
}

/// Creates the store on disk of the test option `{backend, {disk, Directory}}`.
pub(super) fn store_of(
    env: Env<'_>,
    backend: VmWord<'_>,
    kind: TableType,
    zeros: Zeros,
) -> Result<Option<Box<dyn StoreHandle>>, KnownAtom> {
    let Some([_disk, directory]) = VmTerm::of(env, backend).tuple_words() else {
        return Ok(None);
    };
    let directory = VmTerm::of(env, *directory)
        .as_bytes()
        .ok_or(KnownAtom::None)?;
    let identity = || ObjectIdentity::new(Arc::new(VmCodec), zeros);
    let identity = kind
        .is_bag()
        .then(|| Arc::new(identity()) as Arc<dyn BagValues>);
    let store = StressStore::new(Path::new(OsStr::from_bytes(directory)), identity);
    let store = store.map_err(|_| KnownAtom::Storage)?;
    Ok(Some(Box::new(store)))
}

fn number(term: VmTerm<'_>) -> Result<u32, KnownAtom> {
    let small = term.as_small().ok_or(KnownAtom::None)?;
    u32::try_from(small).map_err(|_| KnownAtom::None)
}

/// Returns the forced slice, if one is set.
pub(super) fn forced_slice() -> Option<Slice> {
    let ticks = TICKS.load(Ordering::Relaxed).checked_sub(1)?;
    Some(Slice::of_work(ticks))
}
