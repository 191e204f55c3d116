//! Moments of tables that queries read which take more than one call.

use crate::atoms::KnownAtom;
use crate::call::NoReply;
use crate::env::{Env, VmWord};
use crate::handle::{Handle, Shared};
use crate::resource::{Resource, ResourceRef, Slot};
use crate::vm_host::VmHost;
use ats::Moment;
use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A moment of a table that a query on its way reads. It ends with the query: when this is told so,
/// or when the process that runs the query is gone and the VM frees its terms.
pub(crate) struct Reading {
    /// The table.
    pub(super) id: ResourceRef<Handle>,
    moment: Mutex<Option<Moment<VmHost>>>,
}

impl Resource for Reading {
    const NAME: &'static CStr = c"ats_moment";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }
}

impl Reading {
    /// The moment; none if it has ended.
    fn lock(&self) -> MutexGuard<'_, Option<Moment<VmHost>>> {
        self.moment.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The moment that a slice of a query reads.
pub(super) enum AtMoment<'r> {
    /// Each key as of the moment at which it is come to.
    None,
    /// One that was begun for this query.
    Begun(Moment<VmHost>),
    /// That of the slices before.
    Kept(MutexGuard<'r, Option<Moment<VmHost>>>),
}

impl<'r> AtMoment<'r> {
    /// That of the slices before.
    pub(super) fn of(reading: &'r Reading) -> Result<Self, KnownAtom> {
        let moment = reading.lock();
        match &*moment {
            Some(_) => Ok(AtMoment::Kept(moment)),
            None => Err(KnownAtom::None),
        }
    }

    pub(super) fn get(&self) -> Option<&Moment<VmHost>> {
        match self {
            AtMoment::None => None,
            AtMoment::Begun(moment) => Some(moment),
            AtMoment::Kept(moment) => moment.as_ref(),
        }
    }

    /// Ends the moment: the query is done.
    pub(super) fn end(self) {
        if let AtMoment::Kept(mut moment) = self {
            *moment = None;
        }
    }

    /// The term by which the next slice finds the moment, if that was begun for this query.
    pub(super) fn keep<'e>(self, env: Env<'e>, shared: &Shared) -> Option<VmWord<'e>> {
        let AtMoment::Begun(moment) = self else {
            return None;
        };
        let reading = Reading {
            id: shared.id.clone(),
            moment: Mutex::new(Some(moment)),
        };
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
