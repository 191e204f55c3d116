//! Working on a store beyond one guard.

use super::Store;
use super::idle_joiner::{self, JoinIdle};
use ats_sync::Guard;
use ats_term::image::Host;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A reference to a store, by which a call works on it beyond one guard.
///
/// A store that was taken out of its table is at rest when all guards are gone under which it could
/// be found, and then all references: a reference is made under such a guard, so none is
/// overlooked.
pub(crate) struct StoreRef<H: Host> {
    /// Until the end.
    store: Option<Arc<Store<H>>>,
}

impl<H: Host> StoreRef<H> {
    /// # Safety
    /// `store` was made by [`Arc::into_raw`], and is found under the guard in a place that gives
    /// its reference up by retiring it.
    pub(crate) unsafe fn new(store: *const Store<H>, _guard: &Guard) -> Self {
        // SAFETY: the caller says that `store` comes from `Arc::into_raw` and is given up by
        // retiring it, so the reference that the place has outlives the guard (CURRENT_STORE-2).
        let store = unsafe {
            Arc::increment_strong_count(store);
            Arc::from_raw(store)
        };
        // The end of the guard publishes this.
        store.references.fetch_add(1, Ordering::Relaxed);
        StoreRef { store: Some(store) }
    }
}

impl<H: Host> StoreRef<H> {
    /// Another reference to the same store.
    pub(crate) fn another(&self) -> Self {
        self.references.fetch_add(1, Ordering::Relaxed);
        StoreRef {
            store: self.store.clone(),
        }
    }

    /// Has what was kept for queries given back in the background.
    pub(crate) fn cut_in_background(&self) {
        if let Some(store) = &self.store {
            idle_joiner::notice_at_once(store);
        }
    }
}

impl<H: Host> std::ops::Deref for StoreRef<H> {
    type Target = Store<H>;

    fn deref(&self) -> &Store<H> {
        self.store
            .as_deref()
            .expect("it is given up in the end only")
    }
}

impl<H: Host> Drop for StoreRef<H> {
    fn drop(&mut self) {
        if let Some(store) = self.store.take() {
            // Release: a thread that finds no reference finds all that was done by one.
            store.references.fetch_sub(1, Ordering::Release);
            store.release();
        }
    }
}
