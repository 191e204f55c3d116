//! Stores for comparison as values of the option `backend`, besides the plain B-tree. Only in
//! builds with the feature `rivals`.

use crate::atoms::{self, KnownAtom};
use crate::env::{Env, VmWord};
use crate::vm_host::VmHost;
use crate::vm_term::VmTerm;
use ats::terms::{Rival, Table, TableType, Zeros};

/// Creates a table in the store with this name.
pub(super) fn on_rival<'e>(
    env: Env<'e>,
    backend: VmWord<'e>,
    kind: TableType,
    position: usize,
    zeros: Zeros,
) -> Result<Table<VmHost>, KnownAtom> {
    if !VmTerm::of(env, backend).is_atom() {
        return Err(KnownAtom::None);
    }
    let name = atoms::text(backend);
    let rival = Rival::ALL.into_iter().find(|rival| rival.name() == name);
    let rival = rival.ok_or(KnownAtom::Backend)?;
    Table::on_rival(rival, kind, position, zeros).ok_or(KnownAtom::None)
}

/// Returns the name of the rival store that a table is in, if it is in one.
pub(super) fn name<'e>(env: Env<'e>, table: &Table<VmHost>) -> Option<VmWord<'e>> {
    let rival = table.rival()?;
    atoms::of_text(env, rival.name())
}
