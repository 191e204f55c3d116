//! Snapshots that queries of more than one call read.

use crate::call::NoReply;
use crate::env::{Env, VmWord};
use crate::handle::{Handle, Shared};
use crate::resource::{Resource, ResourceRef, Slot};
use crate::vm_host::VmHost;
use ats::terms::{Ending, Reader, Snapshot, TableReadPoint};
use ats_sync::Guard;
use std::ffi::CStr;
use std::time::Duration;

/// A snapshot read by a query that spans several calls. It ends with the query: when the query is
/// done, or when the process that runs it is gone and the VM frees its terms.
pub(crate) struct Reading {
    /// The table.
    pub(super) id: ResourceRef<Handle>,
    /// The snapshot.
    pub(super) snapshot: Snapshot<VmHost>,
}

impl Resource for Reading {
    const NAME: &'static CStr = c"ats_moment";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }
}

impl Reading {
    /// Lets the snapshot expire if the next chunk is not requested.
    pub(super) fn await_next_chunk(&self) {
        self.snapshot.read_point().keep_for(CHUNK_AGE);
    }
}

/// Time for which the snapshot of a continuation is kept between two chunks.
const CHUNK_AGE: Duration = Duration::from_secs(10);

/// The snapshot that a slice of a query reads.
pub(super) enum SliceSource<'r> {
    /// The live table: each key is read as it is when the walk reaches it.
    None,
    /// A snapshot that this call has taken.
    Begun(TableReadPoint<VmHost>),
    /// The snapshot of the earlier slices. The table that the query reads is a view of it.
    Kept(&'r Reading),
    /// The snapshot of the earlier slices. The query changes the table, so it needs the live table,
    /// too.
    Changed(&'r Reading),
}

impl SliceSource<'_> {
    /// Returns the snapshot, unless the table is already a view of it.
    pub(super) fn get<'g>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<&'g TableReadPoint<VmHost>>, NoReply> {
        Ok(match self {
            SliceSource::Begun(read_point) => Some(read_point),
            SliceSource::Changed(reading) => Some(reading.snapshot.read_point().read_point(guard)?),
            SliceSource::None | SliceSource::Kept(_) => None,
        })
    }

    /// Ends the snapshot when the query is done.
    pub(super) fn end(self) {
        if let SliceSource::Kept(reading) | SliceSource::Changed(reading) = self {
            reading.snapshot.read_point().end(Ending::Released);
        }
    }

    /// Keeps the snapshot for the next slice, or with `is_chunk` for the next chunk, which may
    /// never be requested. Returns the term by which the next call finds it, if this call has taken
    /// it.
    pub(super) fn keep<'e>(
        self,
        env: Env<'e>,
        shared: &Shared,
        is_chunk: bool,
    ) -> Option<VmWord<'e>> {
        let SliceSource::Begun(read_point) = self else {
            return None;
        };
        let reader = if is_chunk {
            Reader::Chunks
        } else {
            Reader::Query
        };
        let reading = Reading {
            id: shared.id.clone(),
            snapshot: read_point.keep(&shared.table, reader),
        };
        if is_chunk {
            reading.await_next_chunk();
        }
        if !shared.is_found_by_id() {
            // A concurrent delete may have listed the queries before this one was added.
            reading.snapshot.read_point().end(Ending::Released);
        }
        Some(ResourceRef::new(reading).term(env))
    }
}

/// Begins a query. The caller must not be pinned.
pub(super) fn begin<'r>(shared: &Shared) -> Result<SliceSource<'r>, NoReply> {
    Ok(match shared.table.begin()? {
        Some(read_point) => SliceSource::Begun(read_point),
        None => SliceSource::None,
    })
}
