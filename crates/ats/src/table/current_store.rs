//! The store that a table is in at the time, and what must change together with it.

use crate::error::Error;
use crate::store::idle_joiner::JoinIdle;
use crate::store::store_ref::{LongBatch, StoreRef};
use crate::store::{Cleared, Store};
use ats_mem::batch::HeldKeyWait;
use ats_sync::Guard;
use ats_sync::count::atomic::{AtomicPtr, Ordering};
use ats_term::image::Host;
use std::mem;
use std::ops::Deref;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The store of a table, and the fixations of the table.
///
/// # Invariants
/// - CURRENT_STORE-1. The pointer was made by [`Arc::into_raw`], and is this one's to give up.
/// - CURRENT_STORE-2. A store that is exchanged is given up by retiring it. The last one is given
///   up when this is dropped, or [retired](CurrentStore::retire).
pub(crate) struct CurrentStore<H: Host> {
    /// Exchanged as a whole to clear the table: an operation works on the store it finds, and one
    /// that still works on the old store counts as done before the exchange.
    store: AtomicPtr<Store<H>>,
    fixations: Mutex<Fixations>,
}

/// The state of a store that goes over to the one that is exchanged for it.
#[derive(Default)]
struct Fixations {
    number: usize,
    /// `true` if the table was cleared since it was fixed: then keys that a walk remembers may be
    /// gone.
    cleared: bool,
    /// The argument of `force_adaptation`.
    #[cfg(feature = "forcing")]
    forcing: (u32, u32),
}

impl Fixations {
    fn allow_lost_keys(&mut self) {
        self.cleared |= self.number > 0;
    }
}

impl<H: Host> CurrentStore<H> {
    pub(crate) fn new(store: Arc<Store<H>>) -> Self {
        Self::of_raw(into_raw(store))
    }

    fn of_raw(store: *mut Store<H>) -> Self {
        CurrentStore {
            store: AtomicPtr::new(store),
            fixations: Mutex::default(),
        }
    }

    /// The store of this moment.
    #[inline]
    pub(crate) fn get<'g>(&'g self, _guard: &'g Guard) -> &'g Store<H> {
        // SAFETY: a store is retired after it was exchanged (CURRENT_STORE-2), so one found under a
        // guard lives as long as the guard; the last store is freed only when this, which is
        // borrowed, is dropped.
        unsafe { &*self.store.load(Ordering::Acquire) }
    }

    /// The store, for a call that reads it beyond one guard.
    pub(crate) fn reference(&self) -> StoreRef<H> {
        let guard = ats_sync::pin();
        // SAFETY: the pointer is one of `Arc::into_raw` (CURRENT_STORE-1), and its reference is
        // given up by retiring it after it was exchanged, or when this, which is borrowed, is
        // dropped (CURRENT_STORE-2).
        unsafe { StoreRef::new(self.store.load(Ordering::Acquire), &guard) }
    }

    /// Begins a batch that changes the store beyond one guard.
    ///
    /// # Errors
    /// [`Error::Busy`] if somebody waits for those that run.
    pub(crate) fn long_batch(&self) -> Result<LongBatch<H>, Error> {
        let mut wait = HeldKeyWait::new();
        loop {
            // One guard for both, so that a store that was taken is open again only after this.
            let guard = ats_sync::pin();
            if let Some(batch) = LongBatch::begin(self.reference(), &guard) {
                return Ok(batch);
            }
            drop(guard);
            wait.wait()?;
        }
    }

    /// Begins a fixation.
    pub(crate) fn fix(&self) {
        let guard = ats_sync::pin();
        let mut fixations = self.fixations();
        fixations.number += 1;
        if fixations.number == 1 {
            fixations.cleared = false;
            self.get(&guard).fix();
        }
    }

    /// Ends a fixation. Returns `false` if there is none.
    pub(crate) fn unfix(&self) -> bool {
        let guard = ats_sync::pin();
        let mut fixations = self.fixations();
        let Some(number) = fixations.number.checked_sub(1) else {
            return false;
        };
        fixations.number = number;
        if number == 0 {
            fixations.cleared = false;
            self.get(&guard).unfix();
        }
        true
    }

    /// The end of a walk whose key is gone, if the table was cleared since it was fixed.
    ///
    /// # Errors
    /// [`Error::BadKey`] if it was not.
    pub(crate) fn walk_of_lost_key(&self) -> Result<(), Error> {
        match self.fixations().cleared {
            true => Ok(()),
            false => Err(Error::BadKey),
        }
    }

    /// Lets keys that walks remember go without being removed one by one.
    pub(crate) fn allow_lost_keys(&self) {
        self.fixations().allow_lost_keys();
    }

    /// Takes all the objects out, and returns the store that they are in. In memory that is the one
    /// which they were in: an empty one is put in its place, and operations that found the old one
    /// under a guard may still be in it.
    pub(crate) fn take_out<'g>(&self, guard: &'g Guard) -> Result<DrainedStore<'g, H>, Error> {
        self.take_out_if(guard, |_| Ok(()))
    }

    /// Does what [`take_out`](Self::take_out) does when no long batch is in the store, so that it
    /// changes only as long as there are guards under which it was found before.
    ///
    /// # Errors
    /// [`Error::Busy`] if one is. Then none begins for a while, and nothing has been taken.
    pub(crate) fn take_out_whole<'g>(
        &self,
        guard: &'g Guard,
    ) -> Result<DrainedStore<'g, H>, Error> {
        self.take_out_if(guard, Store::close_to_long_batches)
    }

    /// `allow` is asked about the store that is to be exchanged.
    fn take_out_if<'g>(
        &self,
        guard: &'g Guard,
        allow: impl FnOnce(&Store<H>) -> Result<(), Error>,
    ) -> Result<DrainedStore<'g, H>, Error> {
        let mut fixations = self.fixations();
        let store = match self.get(guard).make_cleared()? {
            Cleared::Fresh(fresh) => {
                allow(self.get(guard))?;
                if fixations.number > 0 {
                    fresh.fix();
                }
                #[cfg(feature = "forcing")]
                fresh.force_adaptation(fixations.forcing.0, fixations.forcing.1);
                self.get(guard).set_taken_out();
                self.store.swap(into_raw(fresh), Ordering::AcqRel)
            }
            Cleared::Taken(taken) => into_raw(taken),
        };
        fixations.allow_lost_keys();
        Ok(DrainedStore { store, guard })
    }

    /// Has this store, and all that are exchanged for it, adapt by force.
    #[cfg(feature = "forcing")]
    pub(crate) fn force_adaptation(&self, splits: u32, joins: u32) {
        let guard = ats_sync::pin();
        let mut fixations = self.fixations();
        fixations.forcing = (splits, joins);
        // Under the lock, lest a store that has just been exchanged keeps the old numbers.
        self.get(&guard).force_adaptation(splits, joins);
    }

    /// Frees the store when no thread is in it any more.
    ///
    /// # Safety
    /// This is only dropped afterwards.
    pub(crate) unsafe fn retire(&mut self, guard: &Guard) {
        let store = mem::replace(self.store.get_mut(), ptr::null_mut());
        drop(DrainedStore { store, guard });
    }

    fn fixations(&self) -> MutexGuard<'_, Fixations> {
        // Plain numbers, valid at every moment, so a panic elsewhere does not spoil them.
        self.fixations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: Host> Drop for CurrentStore<H> {
    fn drop(&mut self) {
        let store = *self.store.get_mut();
        // It may have been retired before.
        if !store.is_null() {
            // SAFETY: the pointer is ours (CURRENT_STORE-1), and no thread finds it here any more.
            unsafe { free::<H>(store.cast()) };
        }
    }
}

/// A store that no thread finds in its table any more; some may have found it before. Dropping this
/// frees it when they are gone.
///
/// The pointer was made by [`Arc::into_raw`], and is this one's to give up.
pub(crate) struct DrainedStore<'g, H: Host> {
    store: *mut Store<H>,
    /// One that was there when the store was found in its table.
    guard: &'g Guard,
}

impl<H: Host> DrainedStore<'_, H> {
    /// The store as that of another table.
    pub(crate) fn into_current(self) -> CurrentStore<H> {
        let current = CurrentStore::of_raw(self.store);
        mem::forget(self);
        current
    }
}

impl<H: Host> Deref for DrainedStore<'_, H> {
    type Target = Store<H>;

    fn deref(&self) -> &Store<H> {
        // SAFETY: the pointer is ours, and is given up when this is dropped.
        unsafe { &*self.store }
    }
}

impl<H: Host> Drop for DrainedStore<'_, H> {
    fn drop(&mut self) {
        let bytes = size_of::<Store<H>>() + self.about_bytes();
        // SAFETY: the pointer is ours, and is given up here, once. No thread finds the store any
        // more.
        unsafe { self.guard.retire(self.store.cast(), bytes, free::<H>) };
    }
}

fn into_raw<H: Host>(store: Arc<Store<H>>) -> *mut Store<H> {
    Arc::into_raw(store).cast_mut()
}

/// Gives up the reference that a pointer stands for.
///
/// # Safety
/// `raw` was made by [`into_raw`], and is given up once.
unsafe fn free<H: Host>(raw: *mut u8) {
    // SAFETY: the caller says that `raw` comes from `into_raw` and is given up once
    // (CURRENT_STORE-1).
    let store = unsafe { Arc::from_raw(raw.cast::<Store<H>>().cast_const()) };
    store.release();
}
