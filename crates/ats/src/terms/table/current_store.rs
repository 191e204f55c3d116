//! The current store of a table, and the state that changes together with it.

use crate::idle_joiner::JoinIdle;
use crate::terms::error::Error;
use crate::terms::store::store_ref::{LongBatch, StoreRef};
use crate::terms::store::{Cleared, Store};
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
/// - CURRENT_STORE-1. The pointer was made by [`Arc::into_raw`], and this type owns its reference.
/// - CURRENT_STORE-2. The reference to an exchanged store is given up by retiring it. The reference
///   to the last store is given up when this is dropped, or [retired](CurrentStore::retire).
pub(crate) struct CurrentStore<H: Host> {
    /// The current store. Clearing the table exchanges it: an operation works on the store that it
    /// has found, and an operation that still works on the old store counts as done before the
    /// exchange.
    store: AtomicPtr<Store<H>>,
    fixations: Mutex<Fixations>,
}

/// The state that passes from a store to its replacement.
#[derive(Default)]
struct Fixations {
    number: usize,
    /// `true` if the table was cleared since it was fixed: then keys that a walk remembers may be
    /// gone.
    cleared: bool,
    /// The arguments of `force_adaptation`.
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

    /// Returns the current store.
    #[inline]
    pub(crate) fn get<'g>(&'g self, _guard: &'g Guard) -> &'g Store<H> {
        // SAFETY: a store is retired after it was exchanged (CURRENT_STORE-2), so a store that is
        // found under a guard lives as long as the guard; the last store is freed only when `self`,
        // which is borrowed, is dropped.
        unsafe { &*self.store.load(Ordering::Acquire) }
    }

    /// Returns a reference to the store, for a call that reads it beyond one guard.
    pub(crate) fn reference(&self) -> StoreRef<H> {
        let guard = ats_sync::pin();
        // SAFETY: the pointer comes from `Arc::into_raw` (CURRENT_STORE-1), and its reference is
        // given up by retiring it after it was exchanged, or when `self`, which is borrowed, is
        // dropped (CURRENT_STORE-2).
        unsafe { StoreRef::new(self.store.load(Ordering::Acquire), &guard) }
    }

    /// Begins a batch that changes the store beyond one guard.
    ///
    /// # Errors
    /// [`Error::Busy`] if another thread waits for the end of running batches.
    pub(crate) fn long_batch(&self) -> Result<LongBatch<H>, Error> {
        self.long_batch_of(false)
    }

    /// Begins a batch like [`long_batch`](Self::long_batch); one that `spans` several stores
    /// changes others as well.
    pub(crate) fn long_batch_of(&self, spans: bool) -> Result<LongBatch<H>, Error> {
        let mut wait = HeldKeyWait::new();
        loop {
            // One guard covers the search and the begin, so that a drained store allows batches
            // again only after both.
            let guard = ats_sync::pin();
            if let Some(batch) = LongBatch::begin(self.reference(), spans, &guard) {
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

    /// Ends a fixation. Returns `false` if the table is not fixed.
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

    /// Ends a walk whose key is gone, which is allowed if the table was cleared since it was fixed.
    ///
    /// # Errors
    /// [`Error::BadKey`] if it was not cleared.
    pub(crate) fn walk_of_lost_key(&self) -> Result<(), Error> {
        if self.fixations().cleared {
            Ok(())
        } else {
            Err(Error::BadKey)
        }
    }

    /// Allows that keys which walks remember are lost.
    pub(crate) fn allow_lost_keys(&self) {
        self.fixations().allow_lost_keys();
    }

    /// Removes all objects, and returns the store that holds them. In memory this is the old store,
    /// which an empty store replaces; operations that found the old store under a guard may still
    /// use it.
    ///
    /// # Errors
    /// [`Error::Busy`] while a transaction over several tables runs, whose changes in the other
    /// tables would be seen later.
    pub(crate) fn take_out<'g>(&self, guard: &'g Guard) -> Result<DrainedStore<'g, H>, Error> {
        self.take_out_if(guard, Store::close_to_spanning_batches)
    }

    /// Removes all objects like [`take_out`](Self::take_out), if the store has no long batch. Then
    /// only operations under guards that exist now can still change the old store.
    ///
    /// # Errors
    /// [`Error::Busy`] if the store has a long batch. Then no further one begins for a while, and
    /// nothing has been removed.
    pub(crate) fn take_out_whole<'g>(
        &self,
        guard: &'g Guard,
    ) -> Result<DrainedStore<'g, H>, Error> {
        self.take_out_if(guard, Store::close_to_long_batches)
    }

    /// Removes all objects if `allow` succeeds for the store that is to be exchanged.
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
                let current = Arc::clone(&fresh);
                let old = self.store.swap(into_raw(fresh), Ordering::AcqRel);
                current.set_current();
                old
            }
            Cleared::Taken(taken) => into_raw(taken),
        };
        fixations.allow_lost_keys();
        Ok(DrainedStore { store, guard })
    }

    /// Forces adaptations in this store, and in all that replace it.
    #[cfg(feature = "forcing")]
    pub(crate) fn force_adaptation(&self, splits: u32, joins: u32) {
        let guard = ats_sync::pin();
        let mut fixations = self.fixations();
        fixations.forcing = (splits, joins);
        // The lock is held, so that a store that is exchanged concurrently gets the new numbers.
        self.get(&guard).force_adaptation(splits, joins);
    }

    /// Frees the store when no thread uses it any more.
    ///
    /// # Safety
    /// The caller does nothing with `self` afterwards but drop it.
    pub(crate) unsafe fn retire(&mut self, guard: &Guard) {
        let store = mem::replace(self.store.get_mut(), ptr::null_mut());
        drop(DrainedStore { store, guard });
    }

    fn fixations(&self) -> MutexGuard<'_, Fixations> {
        // The fields are plain numbers, valid at every moment, so a panic elsewhere does not spoil
        // them.
        self.fixations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: Host> Drop for CurrentStore<H> {
    fn drop(&mut self) {
        let store = *self.store.get_mut();
        // The pointer is null if the store was retired before.
        if !store.is_null() {
            // SAFETY: `self` owns the reference (CURRENT_STORE-1), and no thread finds the store
            // here any more.
            unsafe { free::<H>(store.cast()) };
        }
    }
}

/// A store that no thread finds in its table any more; some threads may have found it before.
/// Dropping this frees the store when these threads have unpinned.
///
/// The pointer was made by [`Arc::into_raw`], and this type owns its reference.
pub(crate) struct DrainedStore<'g, H: Host> {
    store: *mut Store<H>,
    /// A guard that existed when the store was found in its table.
    guard: &'g Guard,
}

impl<H: Host> DrainedStore<'_, H> {
    /// Makes the store that of another table.
    pub(crate) fn into_current(self) -> CurrentStore<H> {
        let current = CurrentStore::of_raw(self.store);
        mem::forget(self);
        current
    }
}

impl<H: Host> Deref for DrainedStore<'_, H> {
    type Target = Store<H>;

    fn deref(&self) -> &Store<H> {
        // SAFETY: `self` owns the reference, and gives it up only when it is dropped.
        unsafe { &*self.store }
    }
}

impl<H: Host> Drop for DrainedStore<'_, H> {
    fn drop(&mut self) {
        let bytes = size_of::<Store<H>>() + self.about_bytes();
        // SAFETY: `self` owns the reference, and gives it up here, once. No thread finds the store
        // any more.
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
    // SAFETY: the caller promises that `raw` comes from `into_raw` and is given up once
    // (CURRENT_STORE-1).
    let store = unsafe { Arc::from_raw(raw.cast::<Store<H>>().cast_const()) };
    store.release();
}
