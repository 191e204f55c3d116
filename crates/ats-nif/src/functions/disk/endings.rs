//! The end of snapshots of tables on disk, held by programs.

use crate::atoms::KnownAtom;
use crate::disk::OpenTable;
use crate::env::Env;
use crate::functions::snapshot::find_ending;
use crate::handle::Shared;
use crate::{lifetime, registry};
use ats_sync::Guard;
use std::sync::Arc;

/// Ends one snapshot when its table is closed.
pub(super) fn end_snapshot(read_point: &Shared, guard: &Guard) {
    let why = find_ending(read_point).unwrap_or(KnownAtom::Closed);
    read_point.id.set_ending(why);
    lifetime::delete(read_point, guard);
}

/// Ends all snapshots when their table is closed. Returns `true` if a process still walks through
/// the table.
pub(super) fn end_snapshots(env: Env<'_>, opened: &Arc<OpenTable>, guard: &Guard) -> bool {
    let mut has_walks = false;
    for (shared, _name) in registry::list_all(guard) {
        let disk = shared.disk.as_ref();
        if !disk.is_some_and(|disk| Arc::ptr_eq(disk, opened)) {
            continue;
        }
        if shared.read_point.is_some() {
            end_snapshot(shared, guard);
        } else {
            has_walks |= shared.has_living_owner(env);
        }
    }
    has_walks
}
