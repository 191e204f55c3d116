//! The keys of a transaction while it is being decided: their records, as its steps leave them.
//!
//! The steps run as operations of a table on these records, one after the other. The records of the
//! store stay as they are, and new ones belong to the overlay until the decision is made.
//!
//! # Invariants
//! - OVERLAY-1. The record of a key before the transaction lives until the overlay is
//!   [emptied](Overlay::finish), or dropped: the transaction holds the key.
//! - OVERLAY-2. A new record is owned by the overlay, and lent to a guard when another one replaces
//!   it.

use super::records::{Decide, TableRecords, Visit, Walked};
use crate::terms::error::Error;
use crate::terms::note::Dating;
use crate::terms::value::{Rec, Values};
use ats_mem::read_points::Query;
use ats_mem::{BatchPlan, Change, NoSuchKey, RecordBox, Walk};
use ats_store::{End, Error as StoreError};
use ats_sync::Guard;
use ats_term::image::Host;
use std::ops::ControlFlow;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The records of some keys.
pub(crate) struct Overlay<H: Host> {
    is_ordered: bool,
    /// `true` if the objects of the table expire.
    expires: bool,
    /// The keys, ascending.
    keys: Vec<Box<[u8]>>,
    slots: Mutex<Vec<Slot<H>>>,
}

struct Slot<H: Host> {
    /// The record in the store, or null.
    before: *const Rec<H>,
    now: Now<H>,
    /// The dating of the new record.
    dating: Option<Dating>,
}

enum Now<H: Host> {
    Before,
    Gone,
    New(RecordBox<Values<H>>),
}

// SAFETY: any thread may read the records behind the pointers, which live as long as they are used
// (OVERLAY-1).
unsafe impl<H: Host> Send for Slot<H> {}

impl<H: Host> Slot<H> {
    fn current(&self) -> *const Rec<H> {
        match &self.now {
            Now::Before => self.before,
            Now::Gone => ptr::null(),
            Now::New(record) => ptr::from_ref(&**record),
        }
    }

    /// Replaces a record that the overlay has made. A reader may still have it.
    fn set(&mut self, now: Now<H>, guard: &Guard) {
        if let Now::New(old) = std::mem::replace(&mut self.now, now) {
            old.lend(guard);
        }
    }

    fn apply(&mut self, change: Change<Values<H>>, expires: bool, guard: &Guard) {
        match change {
            Change::Put(record) => {
                let of_table = || matches!(self.now, Now::Gone).then_some(Dating::OfTable);
                if expires {
                    self.dating = Dating::of(&record).or(self.dating).or_else(of_table);
                }
                self.set(Now::New(record), guard);
            }
            Change::Remove => {
                self.dating = None;
                self.set(Now::Gone, guard);
            }
            Change::Keep | Change::Abort | Change::Later => {}
        }
    }
}

impl<H: Host> Overlay<H> {
    /// Returns an overlay of these keys, which ascend.
    pub(crate) fn new(keys: Vec<Box<[u8]>>, is_ordered: bool, expires: bool) -> Self {
        Overlay {
            is_ordered,
            expires,
            keys,
            slots: Mutex::default(),
        }
    }

    /// Returns the keys.
    pub(crate) fn keys(&self) -> &[Box<[u8]>] {
        &self.keys
    }

    /// Sets the records of the keys before the transaction.
    ///
    /// # Safety
    /// They live until the overlay is [emptied](Self::finish), or not used any more.
    pub(crate) unsafe fn begin<'b>(&self, found: &'b dyn Fn(usize) -> Option<&'b Rec<H>>) {
        let slot = |index| Slot {
            before: found(index).map_or(ptr::null(), ptr::from_ref),
            now: Now::Before,
            dating: None,
        };
        *self.slots() = (0..self.keys.len()).map(slot).collect();
    }

    /// Empties the overlay. Returns the change of each key.
    pub(crate) fn finish(&self) -> Vec<Change<Values<H>>> {
        let slots = std::mem::take(&mut *self.slots());
        let change = |slot: Slot<H>| match slot.now {
            Now::Before => Change::Keep,
            Now::Gone => Change::Remove,
            Now::New(record) => Dating::of_change(slot.dating, Change::Put(record)),
        };
        slots.into_iter().map(change).collect()
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot<H>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn index(&self, key: &[u8]) -> Result<usize, Error> {
        let found = self.keys.binary_search_by(|other| (**other).cmp(key));
        found.map_err(|_| Error::Storage(StoreError::Unsupported))
    }

    fn record<'g>(&'g self, index: usize, _guard: &'g Guard) -> Option<&'g Rec<H>> {
        let current = self.slots().get(index)?.current();
        // SAFETY: a record before lives as long as the overlay is in use (OVERLAY-1), and a new one
        // is lent to a guard when it is replaced, so it lives as long as this earlier guard, too
        // (OVERLAY-2).
        unsafe { current.as_ref() }
    }
}

impl<H: Host> TableRecords<H> for Overlay<H> {
    fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        Ok(self.record(self.index(key)?, guard))
    }

    /// Refuses: the steps of a transaction do not walk.
    fn walk<'g>(
        &'g self,
        _walk: Walk<'_>,
        _guard: &'g Guard,
        _visit: &mut Visit<'_, 'g, H>,
        _pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Walked, Error> {
        Ok(Err(NoSuchKey))
    }

    fn update_by<'g>(
        &'g self,
        key: &[u8],
        _by: Option<Query>,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        let index = self.index(key)?;
        let change = decide(self.record(index, guard));
        if let Some(slot) = self.slots().get_mut(index) {
            slot.apply(change, self.expires, guard);
        }
        Ok(())
    }

    /// Changes keys for one operation. An operation whose plan aborts has changed nothing, because
    /// operations of several keys are no steps.
    fn update_batch(
        &self,
        keys: &[&[u8]],
        _guard: Option<&Guard>,
        plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        let guard = ats_sync::pin();
        for (at, key) in keys.iter().enumerate() {
            let index = self.index(key)?;
            let change = plan.decide_and_build(at, self.record(index, &guard));
            if let Change::Abort = change {
                return Ok(false);
            }
            if let Some(slot) = self.slots().get_mut(index) {
                slot.apply(change, self.expires, &guard);
            }
        }
        Ok(true)
    }

    fn update_end<'g>(
        &'g self,
        _end: End,
        _guard: &'g Guard,
        _decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        Err(Error::Storage(StoreError::Unsupported))
    }

    fn objects(&self) -> Result<usize, Error> {
        Ok(self
            .slots()
            .iter()
            .filter(|slot| !slot.current().is_null())
            .count())
    }

    fn about_bytes(&self) -> usize {
        size_of::<Self>()
    }
}
