//! The store of a map in memory, which the map, its iterators and background threads share.

use super::store::{MapStore, Owner};
use crate::background::{self, FreeInSlices};
use crate::idle_joiner::{self, JoinIdle, Listed};
use crate::terms::store::limited::OnFirstEntry;
use ats_mem::OnFirstSplit;
use ats_sync::Guard;
use ats_sync::count::atomic::{AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::sync::Arc;

/// Maximum number of records of a store that is freed at once; a larger store is freed in the
/// background.
const FREED_AT_ONCE: usize = 1_000;
/// Number of records that are freed in one slice.
const SLICE: usize = 2_000;

/// A store, and the state for its visits in the background.
pub(crate) struct Shared<S> {
    store: S,
    listed: Listed,
}

impl<S: MapStore> Shared<S> {
    /// Shares an empty store, with its visits in the background.
    fn new(mut store: S) -> Arc<Self> {
        // The thread also frees retired records when no other thread works on maps any more.
        background::start();
        Arc::new_cyclic(|itself| {
            store.set_owner(itself.clone());
            Shared {
                store,
                listed: Listed::new(),
            }
        })
    }

    pub(crate) fn store(&self) -> &S {
        &self.store
    }

    /// Frees some of the records that were kept for snapshots that have ended. Returns `true` if
    /// none is left.
    fn reclaim(&self) -> bool {
        self.store.reclaim(SLICE, &ats_sync::pin())
    }
}

impl<S: MapStore> JoinIdle for Shared<S> {
    fn list_flag(&self) -> &Listed {
        &self.listed
    }

    fn join_idle(&self) -> bool {
        self.store.join_idle(&ats_sync::pin())
    }

    fn reclaim_slice(&self) -> bool {
        self.reclaim()
    }

    fn release(self: Arc<Self>) {
        if self.store.about_len() > FREED_AT_ONCE
            && let Some(shared) = Arc::into_inner(self)
        {
            background::free(Box::new(shared));
        }
    }
}

impl<S: MapStore> OnFirstSplit for Shared<S> {
    fn has_split(self: Arc<Self>) {
        // The writer that calls this has another reference, so this one is not the last.
        idle_joiner::notice(&self);
    }
}

impl<S: MapStore> OnFirstEntry for Shared<S> {
    fn has_entries(self: Arc<Self>) {
        // The writer that calls this has another reference, so this one is not the last.
        idle_joiner::notice(&self);
    }
}

impl<S: MapStore> Owner for Shared<S> {}

impl<S: MapStore> FreeInSlices for Shared<S> {
    fn free_slice(&mut self) -> bool {
        self.store.free_some(SLICE)
    }
}

/// The reference of a map, or of a snapshot of it, to its store.
///
/// # Invariants
/// - STORE_OF_MAP-1. The pointer was made by [`Arc::into_raw`], and this type owns its reference.
/// - STORE_OF_MAP-2. The reference to an exchanged store is given up by retiring it. The reference
///   to the last store is given up when this is dropped.
pub(crate) struct StoreOfMap<S: MapStore> {
    /// The current store. Clearing the map exchanges it: an operation works on the store that it
    /// has found, and an operation that still works on the old store counts as done before the
    /// exchange.
    current: AtomicPtr<Shared<S>>,
    owned: PhantomData<Arc<Shared<S>>>,
}

impl<S: MapStore> StoreOfMap<S> {
    /// Returns a reference to this store, which is empty.
    pub(crate) fn new(store: S) -> Self {
        Self::of(Shared::new(store))
    }

    fn of(shared: Arc<Shared<S>>) -> Self {
        StoreOfMap {
            current: AtomicPtr::new(into_raw(shared)),
            owned: PhantomData,
        }
    }

    /// Returns the current store.
    #[inline]
    pub(crate) fn get<'g>(&'g self, _guard: &'g Guard) -> &'g S {
        // SAFETY: the pointer comes from `Arc::into_raw` (STORE_OF_MAP-1). A store that is found
        // under a guard lives as long as the guard, since its reference is retired after it was
        // exchanged, or given up when `self` is not borrowed any more (STORE_OF_MAP-2).
        unsafe { &(*self.current.load(Ordering::Acquire)).store }
    }

    /// Returns the current store, for use without a guard.
    pub(crate) fn keep(&self) -> Arc<Shared<S>> {
        let _guard = ats_sync::pin();
        let raw = self.current.load(Ordering::Acquire);
        // SAFETY: the pointer comes from `Arc::into_raw` (STORE_OF_MAP-1), and its reference is not
        // given up before the guard is dropped (STORE_OF_MAP-2). This call makes another reference.
        unsafe {
            Arc::increment_strong_count(raw);
            Arc::from_raw(raw)
        }
    }

    /// Returns another reference to the current store.
    pub(crate) fn share(&self) -> Self {
        Self::of(self.keep())
    }

    /// Replaces the store by an empty one. O(1).
    pub(crate) fn clear(&self) {
        let guard = ats_sync::pin();
        let fresh = Shared::new(self.get(&guard).another());
        let raw = self.current.swap(into_raw(fresh), Ordering::AcqRel);
        // SAFETY: `self` owned the reference (STORE_OF_MAP-1), only this thread has taken the
        // pointer out, and the reference is given up below.
        let bytes = size_of::<Shared<S>>() + unsafe { &(*raw).store }.bytes();
        // SAFETY: only this thread has taken the pointer out. Threads that have found the store did
        // so under guards (STORE_OF_MAP-2).
        unsafe { guard.retire(raw.cast(), bytes, free::<S>) };
    }

    /// Frees records that were kept for a snapshot that has just ended: some at once, and the rest
    /// in the background.
    pub(crate) fn reclaim(&self) {
        let shared = self.keep();
        if !shared.reclaim() {
            idle_joiner::notice_at_once(&shared);
        }
    }
}

impl<S: MapStore> Drop for StoreOfMap<S> {
    fn drop(&mut self) {
        let raw = *self.current.get_mut();
        // SAFETY: `self` owns the reference (STORE_OF_MAP-1), and is not borrowed any more.
        unsafe { free::<S>(raw.cast()) };
    }
}

fn into_raw<S>(shared: Arc<Shared<S>>) -> *mut Shared<S> {
    Arc::into_raw(shared).cast_mut()
}

/// Gives up the reference that a pointer stands for.
///
/// # Safety
/// `raw` was made by [`into_raw`], and is given up once.
unsafe fn free<S: MapStore>(raw: *mut u8) {
    // SAFETY: the caller promises that `raw` comes from `into_raw` and is given up once
    // (STORE_OF_MAP-1).
    let shared = unsafe { Arc::from_raw(raw.cast::<Shared<S>>().cast_const()) };
    shared.release();
}
