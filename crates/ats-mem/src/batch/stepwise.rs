//! The steps for one key that a batch needs of a store.

use crate::change::{Busy, Change};
use crate::moments::{Moments, Query};
use crate::record::{Record, RecordBox, Release, Weight};
use ats_sync::Guard;

/// A thing that a store is asked to do with one key on the way to a [`Change`].
pub enum KeyStep<R: Release> {
    /// Leave the key as it is.
    Keep,
    /// Put a record; the store counts it and retires the old one.
    Put(RecordBox<R>),
    /// Put a stamped record. The batch counts its [weight](Release::weight), and retires the old
    /// one.
    Install(RecordBox<R>),
    /// Remove the record; the store counts it and retires it.
    Remove,
}

impl<R: Release> KeyStep<R> {
    /// The change of a single key.
    pub fn of(change: Change<R>) -> Self {
        match change {
            Change::Keep | Change::Abort => KeyStep::Keep,
            Change::Put(record) => KeyStep::Put(record),
            Change::Remove => KeyStep::Remove,
            Change::Later => unreachable!("only a plan can put a change off"),
        }
    }
}

/// The way of a writer through the parts of a store that have locks of their own, so that a store
/// that adapts can count operations that need several; and the query that makes the change.
#[derive(Default)]
pub struct Trip {
    /// The part where it was last.
    last: Option<usize>,
    by: Option<Query>,
}

impl Trip {
    /// A way that begins.
    pub fn new() -> Self {
        Trip::default()
    }

    /// That of a change which a query makes: see
    /// [`Provided::update_by`](crate::Provided::update_by).
    pub fn by(query: Query) -> Self {
        Trip {
            last: None,
            by: Some(query),
        }
    }

    /// The query that makes the change, if one does.
    #[inline]
    pub fn query(&self) -> Option<Query> {
        self.by
    }

    /// Notes that it has come to a part, of this identity. Returns `true` if it comes from another.
    pub fn comes_to(&mut self, part: usize) -> bool {
        self.last.replace(part).is_some_and(|last| last != part)
    }
}

/// The steps that batches are made of: all that they need of a store. [`Records`](crate::Records)
/// makes of them every change of one key, and of several.
pub trait Stepwise<R: Release> {
    /// Like [`Provided::update`](crate::Provided::update), one step of a batch included. `decide`
    /// also gets a record that says that the key was [removed](crate::moments).
    fn step<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        trip: &mut Trip,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> KeyStep<R>,
    ) -> Result<(), Busy>;

    /// The moments of the store, if its queries can read one moment.
    fn moments(&self) -> Option<&Moments<R>> {
        None
    }

    /// Asks the processor to fetch what steps for these keys will touch. A hint; does nothing
    /// unless the store does better.
    fn prefetch_batch(&self, keys: &[&[u8]], guard: &Guard) {
        let _ = (keys, guard);
    }

    /// Commits a batch by calling `commit`, and counts what that makes visible: the weight, and the
    /// number of records installed that stay. Both in one turn with the lock of `key`, so that a
    /// census has both or neither.
    fn commit(&self, key: &[u8], visible: (Weight, u32), guard: &Guard, commit: &mut dyn FnMut());

    /// Puts another record of the key, or nothing, in the place of `installed`, which is stamped
    /// and in the store. The other one has been given to the store now, and is stamped too, or was
    /// there before.
    /// Readers see no difference, so it counts nothing.
    fn exchange(&self, installed: &Record<R>, other: Option<&Record<R>>, guard: &Guard);

    /// Removes a key that is held, as [`KeyStep::Remove`] does, and retires the record before.
    fn remove_held(&self, hold: &Record<R>, before: Option<&Record<R>>, guard: &Guard);
}
