//! Changes of records, and the reason why a change fails.

use crate::record::{Record, RecordBox, Release};

/// The change that an update makes to a key. A new value is a record whose key equals that of the
/// update, byte for byte.
pub type Change<R> = ats_store::Change<RecordBox<R>>;

/// The changes that a [batch](crate::Provided::update_batch) makes of its keys. No decision may be
/// [`Remove`](ats_store::Change::Remove). A record that is [built](ats_store::BatchPlan::build) is
/// built with no lock but that of the key.
pub trait BatchPlan<R: Release>: ats_store::BatchPlan<Record<R>, RecordBox<R>> {}

impl<R: Release, P: ats_store::BatchPlan<Record<R>, RecordBox<R>> + ?Sized> BatchPlan<R> for P {}

/// A [`BatchPlan`] without deferred records.
pub type DecideMany<'a, R> = dyn FnMut(usize, Option<&Record<R>>) -> Change<R> + 'a;

/// The key is held by a batch, or by an [`update_alone`](crate::Provided::update_alone), that did
/// not finish within the patience of the store; or a lock was held for longer than the calling
/// thread [may wait](ats_sync::lock::set_may_wait). Nothing was changed. Try again later, best
/// after giving the processor away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl From<Busy> for ats_store::Error {
    fn from(_: Busy) -> Self {
        ats_store::Error::Busy
    }
}
