//! Moments of tables that queries read which take more than one call.

use crate::call::NoReply;
use crate::env::{Env, VmWord};
use crate::handle::{Handle, Shared};
use crate::resource::{Resource, ResourceRef, Slot};
use crate::vm_host::VmHost;
use ats::{Ending, Moment, Reader, Snapshot};
use ats_sync::Guard;
use std::ffi::CStr;
use std::time::Duration;

/// A moment of a table that a query on its way reads. It ends with the query: when this is told so,
/// or when the process that runs the query is gone and the VM frees its terms.
pub(crate) struct Reading {
    /// The table.
    pub(super) id: ResourceRef<Handle>,
    /// The table at the moment.
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
    /// Has the moment end if the next chunk is not asked for.
    pub(super) fn await_next_chunk(&self) {
        self.snapshot.moment().keep_for(CHUNK_AGE);
    }
}

/// The time for which the moment of a continuation is kept, from one chunk to the next.
const CHUNK_AGE: Duration = Duration::from_secs(10);

/// The moment that a slice of a query reads.
pub(super) enum AtMoment<'r> {
    /// Each key as of the moment at which it is come to.
    None,
    /// One that was begun for this query.
    Begun(Moment<VmHost>),
    /// That of the slices before, which the table shows.
    Kept(&'r Reading),
    /// That of the slices before, of a query that changes the table.
    Changed(&'r Reading),
}

impl AtMoment<'_> {
    /// The moment, if the table does not show it.
    pub(super) fn get<'g>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<&'g Moment<VmHost>>, NoReply> {
        Ok(match self {
            AtMoment::Begun(moment) => Some(moment),
            AtMoment::Changed(reading) => Some(reading.snapshot.moment().moment(guard)?),
            AtMoment::None | AtMoment::Kept(_) => None,
        })
    }

    /// Ends the moment: the query is done.
    pub(super) fn end(self) {
        if let AtMoment::Kept(reading) | AtMoment::Changed(reading) = self {
            reading.snapshot.moment().end(Ending::Released);
        }
    }

    /// Keeps the moment for the next slice, or for the next chunk if it `is_chunk`, which may not
    /// come. Returns the term by which that finds it, if the moment was begun for this query.
    pub(super) fn keep<'e>(
        self,
        env: Env<'e>,
        shared: &Shared,
        is_chunk: bool,
    ) -> Option<VmWord<'e>> {
        let AtMoment::Begun(moment) = self else {
            return None;
        };
        let reader = match is_chunk {
            true => Reader::Chunks,
            false => Reader::Query,
        };
        let reading = Reading {
            id: shared.id.clone(),
            snapshot: moment.keep(&shared.table, reader),
        };
        if is_chunk {
            reading.await_next_chunk();
        }
        if !shared.is_found_by_id() {
            // Whoever deletes the table may have looked for its queries before.
            reading.snapshot.moment().end(Ending::Released);
        }
        Some(ResourceRef::new(reading).term(env))
    }
}

/// Begins a query. For a caller that is not pinned, or if no counter of the table changes in place.
pub(super) fn begin<'r>(shared: &Shared) -> Result<AtMoment<'r>, NoReply> {
    Ok(match shared.table.begin()? {
        Some(moment) => AtMoment::Begun(moment),
        None => AtMoment::None,
    })
}
