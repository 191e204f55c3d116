//! Working on a store beyond one guard.

use super::Store;
use super::idle_joiner::JoinIdle;
use ats_sync::Guard;
use ats_term::image::Host;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A reference to a store, by which a call works on it beyond one guard.
///
/// A store that was taken out of its table is at rest when all guards are gone under which it could be found,
/// and then all visits: a visit begins under such a guard, so none is overlooked.
pub(crate) struct Visit<H: Host> {
    /// Until the end.
    store: Option<Arc<Store<H>>>,
}

impl<H: Host> Visit<H> {
    /// # Safety
    /// `store` was made by [`Arc::into_raw`], and is found under the guard in a place that gives its reference
    /// up by retiring it.
    pub(crate) unsafe fn new(store: *const Store<H>, _guard: &Guard) -> Self {
        // SAFETY: the contract; the reference that the place has outlives the guard.
        let store = unsafe {
            Arc::increment_strong_count(store);
            Arc::from_raw(store)
        };
        // The end of the guard publishes this.
        store.visits.fetch_add(1, Ordering::Relaxed);
        Visit { store: Some(store) }
    }
}

impl<H: Host> std::ops::Deref for Visit<H> {
    type Target = Store<H>;

    fn deref(&self) -> &Store<H> {
        self.store.as_deref().expect("the visit has not ended")
    }
}

impl<H: Host> Drop for Visit<H> {
    fn drop(&mut self) {
        if let Some(store) = self.store.take() {
            // Release: a thread that finds no visit finds all that was done in it.
            store.visits.fetch_sub(1, Ordering::Release);
            store.release();
        }
    }
}
