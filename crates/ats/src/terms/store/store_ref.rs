//! References to a store that outlive a guard.

use super::Store;
use crate::idle_joiner::{self, JoinIdle};
use crate::terms::error::Error;
use crate::terms::value::Values;
use ats_mem::BatchPlan;
use ats_sync::Guard;
use ats_term::image::Host;
use std::sync::Arc;

/// A reference to a store, with which a call reads it beyond one guard. No thread waits for its
/// end, because calls that write beyond one guard use a [`LongBatch`].
pub(crate) struct StoreRef<H: Host> {
    /// The store, until the reference is given up.
    store: Option<Arc<Store<H>>>,
}

impl<H: Host> StoreRef<H> {
    /// Takes a reference to a store.
    ///
    /// # Safety
    /// `store` was made by [`Arc::into_raw`], and the guard covers the load of the pointer from an
    /// owner that gives up its reference by retiring it.
    pub(crate) unsafe fn new(store: *const Store<H>, _guard: &Guard) -> Self {
        // SAFETY: the caller promises that `store` comes from `Arc::into_raw` and is given up by
        // retiring it, so the owner's reference outlives the guard (CURRENT_STORE-2).
        let store = unsafe {
            Arc::increment_strong_count(store);
            Arc::from_raw(store)
        };
        StoreRef { store: Some(store) }
    }
}

impl<H: Host> StoreRef<H> {
    /// Returns another reference to the same store.
    pub(crate) fn another(&self) -> Self {
        StoreRef {
            store: self.store.clone(),
        }
    }

    /// Frees the records that were kept for queries in the background.
    pub(crate) fn reclaim_in_background(&self) {
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
            store.release();
        }
    }
}

/// A batch that changes a store beyond one guard. The store counts it until it is dropped.
pub(crate) struct LongBatch<H: Host> {
    store: StoreRef<H>,
    number: u64,
    /// `true` if the batch also changes other stores.
    spans: bool,
}

impl<H: Host> LongBatch<H> {
    /// Begins a batch, under the guard under which the store was found. Returns `None` if a thread
    /// waits for running batches, or if the store was taken out of its table.
    pub(crate) fn begin(store: StoreRef<H>, spans: bool, _guard: &Guard) -> Option<Self> {
        let number = store.long_batches.begin(spans)?;
        Some(LongBatch {
            store,
            number,
            spans,
        })
    }

    /// Updates the keys: see [`Provided::update_long_batch`](ats_mem::Provided::update_long_batch).
    /// The thread is not pinned.
    pub(crate) fn update(
        self,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        self.store.update_batch(keys, None, plan)
    }

    /// Returns the store.
    pub(crate) fn store(&self) -> &Store<H> {
        &self.store
    }
}

impl<H: Host> Drop for LongBatch<H> {
    fn drop(&mut self) {
        self.store.long_batches.end(self.number, self.spans);
    }
}

impl<H: Host> Store<H> {
    /// Allows long batches again, in a store that no thread finds any more in its former table.
    pub(crate) fn set_open_to_long_batches(&self) {
        self.long_batches.open();
    }

    /// Lets no [`LongBatch`] begin any more.
    ///
    /// # Errors
    /// [`Error::Busy`] if a batch runs. Then no batch begins for a while.
    pub(crate) fn close_to_long_batches(&self) -> Result<(), Error> {
        if self.long_batches.close(false) {
            Ok(())
        } else {
            Err(Error::Busy)
        }
    }

    /// Lets no [`LongBatch`] begin any more, like
    /// [`close_to_long_batches`](Self::close_to_long_batches), but lets those go on that change no
    /// other store: they count as done before the store leaves its table.
    ///
    /// # Errors
    /// [`Error::Busy`] if a batch runs that changes several stores. The others would show its
    /// changes later.
    pub(crate) fn close_to_spanning_batches(&self) -> Result<(), Error> {
        if self.long_batches.close(true) {
            Ok(())
        } else {
            Err(Error::Busy)
        }
    }
}
