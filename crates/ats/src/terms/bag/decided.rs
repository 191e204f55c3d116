//! Decisions about keys of bags.

use crate::terms::value::Values;
use ats_mem::sequence::Leftovers;
use ats_mem::{Change, RecordBox};
use ats_term::image::Host;

/// The decision about a key, and the parts of its previous version that are retired after the
/// change.
pub(crate) type Decided<H> = (Change<Values<H>>, Option<Leftovers<Values<H>>>);

pub(crate) fn keep<H: Host>() -> Decided<H> {
    (Change::Keep, None)
}

pub(crate) fn remove<H: Host>() -> Decided<H> {
    (Change::Remove, None)
}

pub(super) fn put<H: Host>(record: RecordBox<Values<H>>) -> Decided<H> {
    (Change::Put(record), None)
}
