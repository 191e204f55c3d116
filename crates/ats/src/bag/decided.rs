//! Decisions about keys of bags.

use super::large::Large;
use crate::value::{Rec, Values, form, list as list_of};
use ats_mem::sequence::Leftovers;
use ats_mem::{Change, RecordBox};
use ats_term::image::{Form, Host, ObjectList};

/// The decision about a key, and the part of its version before that is to be retired when that has
/// happened.
pub(crate) type Decided<H> = (Change<Values<H>>, Option<Leftovers<Values<H>>>);

/// The objects of a record of a bag.
pub(super) enum Objects<'a, H: Host> {
    List(ObjectList<'a, H>),
    Large(&'a Large<H>),
}

impl<'a, H: Host> Objects<'a, H> {
    pub(super) fn of(record: &'a Rec<H>) -> Self {
        match form(record) {
            Form::Large => Objects::Large(Large::of(record)),
            _ => Objects::List(list_of(record)),
        }
    }
}

pub(crate) fn keep<H: Host>() -> Decided<H> {
    (Change::Keep, None)
}

pub(crate) fn remove<H: Host>() -> Decided<H> {
    (Change::Remove, None)
}

pub(super) fn put<H: Host>(record: RecordBox<Values<H>>) -> Decided<H> {
    (Change::Put(record), None)
}

/// Puts a version that has taken over parts of the one before.
pub(super) fn put_with_leftovers<H: Host>(
    record: RecordBox<Values<H>>,
    leftovers: Leftovers<Values<H>>,
) -> Decided<H> {
    (Change::Put(record), Some(leftovers))
}
