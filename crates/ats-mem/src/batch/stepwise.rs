//! Single-key steps by which a store supports batches.

use crate::change::{Busy, Change};
use crate::read_points::{Query, ReadPoints, RemovedAt};
use crate::record::{Record, RecordBox, Release, Weight};
use ats_sync::Guard;

/// A step on one key, on the way to a [`Change`].
pub enum KeyStep<R: Release> {
    /// Keep the key unchanged.
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
    /// Returns the step that makes the change of a single key.
    pub fn of(change: Change<R>) -> Self {
        match change {
            Change::Keep | Change::Abort => KeyStep::Keep,
            Change::Put(record) => KeyStep::Put(record),
            Change::Remove => KeyStep::Remove,
            Change::Later => unreachable!("only a plan can put a change off"),
        }
    }
}

/// A writer's way through the locked parts of a store, by which an adaptive store counts operations
/// that need several parts; and the query that makes the change.
#[derive(Default)]
pub struct Trip {
    /// The last part visited.
    last: Option<usize>,
    by: Option<Query>,
}

impl Trip {
    /// Creates a trip that has not begun.
    pub fn new() -> Self {
        Trip::default()
    }

    /// Creates the trip of a change which a query makes: see
    /// [`Provided::update_by`](crate::Provided::update_by).
    pub fn by(query: Query) -> Self {
        Trip {
            last: None,
            by: Some(query),
        }
    }

    /// Returns the query that makes the change, if there is one.
    #[inline]
    pub fn query(&self) -> Option<Query> {
        self.by
    }

    /// Records the visit of a part. Returns `true` if the last part was another one.
    pub fn comes_to(&mut self, part: usize) -> bool {
        self.last.replace(part).is_some_and(|last| last != part)
    }
}

/// The steps that batches are made of: all that they need of a store. [`Records`](crate::Records)
/// makes of them every change of one key, and of several.
pub trait Stepwise<R: Release> {
    /// Like [`Provided::update`](crate::Provided::update), one step of a batch included. `decide`
    /// also gets a record that says that the key was [removed](crate::read_points).
    fn step<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        trip: &mut Trip,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> KeyStep<R>,
    ) -> Result<(), Busy>;

    /// Returns the version state of the store, if it supports snapshots.
    fn read_points(&self) -> Option<&ReadPoints<R>> {
        None
    }

    /// Prefetches the memory that look-ups of these keys will touch. A hint; does nothing by
    /// default.
    fn prefetch_records(&self, keys: &[&[u8]], guard: &Guard) {
        let _ = (keys, guard);
    }

    /// Prefetches the memory that steps for these keys will touch.
    fn prefetch_batch(&self, keys: &[&[u8]], guard: &Guard) {
        self.prefetch_records(keys, guard);
    }

    /// Commits a batch by calling `commit`, and counts the records that become visible: their
    /// weight, and the number of installed records that stay. Both in one turn under the lock of
    /// `key`, so that a census sees both or neither.
    fn commit(&self, key: &[u8], visible: (Weight, u32), guard: &Guard, commit: &mut dyn FnMut());

    /// Replaces `installed`, which is stamped and in the store, by another record of the key, or by
    /// none. The other record now belongs to the store, and is stamped, too, or was in the store
    /// before. Readers see no difference, so nothing is counted.
    fn exchange(&self, installed: &Record<R>, other: Option<&Record<R>>, guard: &Guard);

    /// Removes a held key like [`KeyStep::Remove`], but as of `at`, and retires the record before.
    fn remove_held(
        &self,
        hold: &Record<R>,
        before: Option<&Record<R>>,
        at: RemovedAt,
        guard: &Guard,
    );
}
