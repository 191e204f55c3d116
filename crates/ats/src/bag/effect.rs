//! What the change of a key of a bag does, to the key and besides.

use super::large::Large;
use crate::value::{Rec, Values, form, list as list_of};
use ats_mem::sequence::Leftovers;
use ats_mem::{Change, RecordBox};
use ats_sync::Guard;
use ats_term::image::{Form, Host, ObjectList};

/// What becomes of a key.
pub(crate) type Decided<H> = (Change<Values<H>>, Effect<H>);

/// What the change of a key does besides.
#[must_use = "the table counts, and the leftovers are to be retired"]
pub(crate) struct Effect<H: Host> {
    /// How many more objects there are than one for each record.
    pub(crate) extra: i64,
    /// How many more bytes large bags take.
    pub(crate) bytes: i64,
    leftovers: Option<Leftovers<Values<H>>>,
}

impl<H: Host> Effect<H> {
    pub(crate) fn none() -> Self {
        Effect {
            extra: 0,
            bytes: 0,
            leftovers: None,
        }
    }

    /// That so many objects are added to a list, or removed from it.
    pub(super) fn of_list(extra: i64) -> Self {
        Effect {
            extra,
            ..Effect::none()
        }
    }

    /// What the removal of a key does, of a bag or not.
    pub(crate) fn of_removal(record: &Rec<H>) -> Self {
        match form(record) {
            Form::List | Form::Large => Effect {
                extra: -extra(record),
                bytes: -large_bytes(record),
                leftovers: None,
            },
            _ => Effect::none(),
        }
    }

    /// What it does that a key which had these objects gets those.
    fn of_change(before: Option<&Rec<H>>, after: &Rec<H>) -> Self {
        Effect {
            extra: extra(after) - before.map_or(0, extra),
            bytes: large_bytes(after) - before.map_or(0, large_bytes),
            leftovers: None,
        }
    }

    /// Adds the effect of the change of another key, of a batch.
    pub(crate) fn add(&mut self, other: Effect<H>) {
        debug_assert!(other.leftovers.is_none(), "batches take nothing over");
        self.extra += other.extra;
        self.bytes += other.bytes;
    }

    /// Retires what the change left.
    ///
    /// # Safety
    /// The change has been made.
    pub(crate) unsafe fn retire(self, guard: &Guard) {
        if let Some(leftovers) = self.leftovers {
            // SAFETY: the record of the old version has been replaced, so no reader finds it any more.
            unsafe { leftovers.retire(guard) };
        }
    }
}

/// The objects of a record of a bag beyond the first.
fn extra<H: Host>(record: &Rec<H>) -> i64 {
    let len = match Objects::of(record) {
        Objects::List(list) => list.iter().count(),
        Objects::Large(large) => large.len(),
    };
    len as i64 - 1
}

fn large_bytes<H: Host>(record: &Rec<H>) -> i64 {
    match Objects::of(record) {
        Objects::List(_) => 0,
        Objects::Large(large) => large.bytes() as i64,
    }
}

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

pub(super) fn keep<H: Host>() -> Decided<H> {
    (Change::Keep, Effect::none())
}

/// Puts a record in the place of another, or of none.
pub(super) fn put<H: Host>(before: Option<&Rec<H>>, after: RecordBox<Values<H>>) -> Decided<H> {
    let effect = Effect::of_change(before, &after);
    (Change::Put(after), effect)
}

/// The same, with what is left of the version before.
pub(super) fn with_leftovers<H: Host>(
    decided: Decided<H>,
    leftovers: Leftovers<Values<H>>,
) -> Decided<H> {
    let (change, effect) = decided;
    let leftovers = Some(leftovers);
    (
        change,
        Effect {
            leftovers,
            ..effect
        },
    )
}
