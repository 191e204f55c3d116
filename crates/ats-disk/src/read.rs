//! Reading keys.
//!
//! A reader gathers the entries of a key from memtables and runs, from the newest to the oldest,
//! until older ones do not matter, and merges them.

mod diff;
mod lending_scan;
mod median;
mod pinned;
mod scan;
mod snapshot;
mod snapshot_store;

pub use diff::{Diff, Difference};
pub(crate) use lending_scan::look_for_gap;
pub use lending_scan::{LendingScan, Record};
pub use scan::Scan;
pub use snapshot::Snapshot;
pub(crate) use snapshot_store::{SnapshotStore, SnapshotView, visit_each};

use crate::entry::Kind;
use crate::entry::collapse::{Chain, is_base};
use crate::error::Error;
use crate::ids::Seq;
use crate::memtable::Lookup;
use crate::run_file::key_hash;
use crate::state::{State, StoredRun, Version};
use ats_store::MayBlock;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

thread_local! {
    /// Used again, so that reading a key allocates nothing.
    static CHAIN: RefCell<Chain> = RefCell::new(Chain::new());
}

/// The number of the last change that a reader sees.
#[derive(Clone, Copy)]
pub(crate) enum ReadPoint {
    /// The read point of the last published write.
    Latest,
    /// The read point of a snapshot, which is in the list of snapshots, and its moment.
    At(Seq, u64),
}

/// Lends the value of a key to `read`. Returns `true` if there is one.
pub(crate) fn get(
    may_block: Option<MayBlock>,
    state: &State,
    key: &[u8],
    read: &mut dyn FnMut(&[u8]),
) -> Result<bool, Error> {
    let version = state.versions.current();
    get_in(may_block, state, &version, key, ReadPoint::Latest, read)
}

/// Like [`get`], in a version.
pub(crate) fn get_in(
    may_block: Option<MayBlock>,
    state: &State,
    version: &Version,
    key: &[u8],
    read_point: ReadPoint,
    read: &mut dyn FnMut(&[u8]),
) -> Result<bool, Error> {
    if state.lifetimes.is_none() {
        return get_stored(may_block, state, version, key, read_point, read);
    }
    let mut found = Ok(false);
    get_stored(may_block, state, version, key, read_point, &mut |value| {
        let moment = match read_point {
            ReadPoint::Latest => state.moment(),
            ReadPoint::At(_, moment) => moment,
        };
        found = state.content(value, moment).map(|content| {
            content.map(&mut *read);
            content.is_some()
        });
    })?;
    found
}

/// Like [`get`], but lends the value as it is in files: with its deadline, if records expire, and
/// also past that.
pub(crate) fn get_with_deadline(
    may_block: Option<MayBlock>,
    state: &State,
    key: &[u8],
    read: &mut dyn FnMut(&[u8]),
) -> Result<bool, Error> {
    let version = state.versions.current();
    get_stored(may_block, state, &version, key, ReadPoint::Latest, read)
}

/// Lends the value of a key to `read` as it is in files. Returns `true` if there is one.
fn get_stored(
    may_block: Option<MayBlock>,
    state: &State,
    version: &Version,
    key: &[u8],
    read_point: ReadPoint,
    read: &mut dyn FnMut(&[u8]),
) -> Result<bool, Error> {
    // The chain is taken out, since `read` may read, too.
    state.stats.reads.add(1);
    let mut chain = CHAIN.try_with(RefCell::take).unwrap_or_default();
    let found = gather(may_block, state, version, key, read_point, &mut chain);
    let result = found.and_then(|()| {
        let operator = state.options.operator.as_deref();
        state.stats.on_read(chain.len());
        match chain.value(key, operator)? {
            Some(value) => {
                read(&value);
                Ok(true)
            }
            None => Ok(false),
        }
    });
    chain.clear();
    let _ = CHAIN.try_with(|kept| kept.replace(chain));
    result
}

/// Gathers the entries of a key.
fn gather(
    may_block: Option<MayBlock>,
    state: &State,
    version: &Version,
    key: &[u8],
    read_point: ReadPoint,
    chain: &mut Chain,
) -> Result<(), Error> {
    let is_complete = loop {
        chain.clear();
        // After the version was loaded: see VERSION-2.
        let (seq, is_snapshot) = match read_point {
            ReadPoint::Latest => (state.snapshots.visible(), false),
            ReadPoint::At(seq, _) => (seq, true),
        };
        let lookup = version.memtables().find_map(|memtable| {
            let lookup = memtable.get(key, seq, is_snapshot, chain);
            (lookup != Lookup::GoesOn).then_some(lookup)
        });
        match lookup {
            None => break false,
            Some(Lookup::TooOld) => {}
            Some(_) => break true,
        }
    };
    if is_complete || version.runs.is_empty() || is_enough(state, key, chain) {
        return Ok(());
    }
    let hash = key_hash(key);
    for run in &version.runs {
        gather_from(may_block, run, key, hash, chain)?;
        if chain.is_complete() || is_enough(state, key, chain) {
            break;
        }
    }
    Ok(())
}

/// Gathers the entries that a run has of a key.
fn gather_from(
    may_block: Option<MayBlock>,
    run: &Arc<StoredRun>,
    key: &[u8],
    hash: u64,
    chain: &mut Chain,
) -> Result<(), Error> {
    run.run.get(may_block, key, hash, &mut |kind, value| {
        chain.push(kind, value);
        if kind.is_base() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    if !chain.is_complete() && run.run.covers(key) {
        chain.push(Kind::Delete, &[]);
    }
    Ok(())
}

/// Returns `true` if the oldest entry, an operand, makes all that is older irrelevant.
fn is_enough(state: &State, key: &[u8], chain: &Chain) -> bool {
    let Some(operator) = &state.options.operator else {
        return false;
    };
    // One that cannot say is found out when the values are merged.
    let oldest = chain.len().checked_sub(1).map(|oldest| chain.entry(oldest));
    matches!(oldest, Some((Kind::Operand, value))
        if is_base(&**operator, key, value).unwrap_or(false))
}
