//! The store of a map in memory, which its maps, iterators and background threads share.

use crate::background::{self, FreeInSlices};
use crate::store::idle_joiner::{self, JoinIdle, Listed};
use ats_mem::{CaTree, HashTable, OnFirstSplit, Plain, Provided, Records};
use ats_sync::Guard;
use ats_sync::count::atomic::{AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

/// A store with at most this many records is freed at once, a larger one in the background.
const FREED_AT_ONCE: usize = 1_000;
/// Records freed in one slice, or given back in one go.
const SLICE: usize = 2_000;

/// A store of records without resources, which maps can have.
pub(crate) trait MapStore: Records<Plain> + Sized + 'static {
    /// An empty store that is shared.
    fn shared() -> Arc<Shared<Self>>;

    /// Frees some records; true when nothing is left.
    fn free_some(&mut self, budget: usize) -> bool;
}

/// A store, and the state by which it is visited in the background.
pub(crate) struct Shared<S> {
    store: S,
    listed: Listed,
}

impl<S> Shared<S> {
    fn new(store: S) -> Self {
        // What is retired is freed also when no thread works on maps any more.
        background::start();
        Shared {
            store,
            listed: Listed::new(),
        }
    }
}

impl MapStore for CaTree<Plain> {
    fn shared() -> Arc<Shared<Self>> {
        Arc::new_cyclic(|itself: &Weak<Shared<Self>>| {
            let mut tree = CaTree::new();
            tree.on_first_split(itself.clone());
            Shared::new(tree)
        })
    }

    fn free_some(&mut self, budget: usize) -> bool {
        CaTree::free_some(self, budget)
    }
}

impl MapStore for HashTable<Plain> {
    fn shared() -> Arc<Shared<Self>> {
        Arc::new(Shared::new(HashTable::new()))
    }

    fn free_some(&mut self, budget: usize) -> bool {
        HashTable::free_some(self, budget)
    }
}

impl<S: MapStore> Shared<S> {
    pub(crate) fn store(&self) -> &S {
        &self.store
    }

    /// Gives back some of what was kept for snapshots that have ended. True if nothing is left.
    fn cut(&self) -> bool {
        self.store.cut(SLICE, &ats_sync::pin())
    }
}

impl<S: MapStore> JoinIdle for Shared<S> {
    fn list_flag(&self) -> &Listed {
        &self.listed
    }

    fn join_idle(&self) -> bool {
        self.store.join_idle(&ats_sync::pin())
    }

    fn cut_slice(&self) -> bool {
        self.cut()
    }

    fn release(self: Arc<Self>) {
        if self.store.len() > FREED_AT_ONCE
            && let Some(shared) = Arc::into_inner(self)
        {
            background::free(Box::new(shared));
        }
    }
}

impl<S: MapStore> OnFirstSplit for Shared<S> {
    fn has_split(self: Arc<Self>) {
        // The writer that calls this has a reference besides, so this one is not the last.
        idle_joiner::notice(&self);
    }
}

impl<S: MapStore> FreeInSlices for Shared<S> {
    fn free_slice(&mut self) -> bool {
        self.store.free_some(SLICE)
    }
}

/// The reference of a map, or of a snapshot of it, to its store.
///
/// # Invariants
/// - STORE_OF_MAP-1. The pointer was made by [`Arc::into_raw`], and is this one's to give up.
/// - STORE_OF_MAP-2. A store that is exchanged is given up by retiring it. The last one is given up
///   when this is dropped.
pub(crate) struct StoreOfMap<S: MapStore> {
    /// Exchanged as a whole to clear the map: an operation works on the store that it finds, and
    /// one that still works on the old store counts as done before the exchange.
    current: AtomicPtr<Shared<S>>,
    owned: PhantomData<Arc<Shared<S>>>,
}

impl<S: MapStore> StoreOfMap<S> {
    /// An empty store.
    pub(crate) fn new() -> Self {
        Self::of(S::shared())
    }

    fn of(shared: Arc<Shared<S>>) -> Self {
        StoreOfMap {
            current: AtomicPtr::new(into_raw(shared)),
            owned: PhantomData,
        }
    }

    /// The store of this moment.
    #[inline]
    pub(crate) fn get<'g>(&'g self, _guard: &'g Guard) -> &'g S {
        // SAFETY: the pointer is one of `Arc::into_raw` (STORE_OF_MAP-1). What is found under a
        // guard is given up after that guard is gone at the earliest, since it is retired when it
        // was exchanged, or given up when nobody borrows this any more (STORE_OF_MAP-2).
        unsafe { &(*self.current.load(Ordering::Acquire)).store }
    }

    /// The store of this moment, to be used without a guard.
    pub(crate) fn keep(&self) -> Arc<Shared<S>> {
        let _guard = ats_sync::pin();
        let raw = self.current.load(Ordering::Acquire);
        // SAFETY: the pointer is one of `Arc::into_raw` (STORE_OF_MAP-1), whose reference is not
        // given up before the guard is gone (STORE_OF_MAP-2). Another one is made here.
        unsafe {
            Arc::increment_strong_count(raw);
            Arc::from_raw(raw)
        }
    }

    /// Another reference to the store of this moment.
    pub(crate) fn share(&self) -> Self {
        Self::of(self.keep())
    }

    /// Puts an empty store in the place of the one that is there. O(1).
    pub(crate) fn clear(&self) {
        let guard = ats_sync::pin();
        let raw = self.current.swap(into_raw(S::shared()), Ordering::AcqRel);
        // SAFETY: the pointer is ours (STORE_OF_MAP-1), was taken out by this thread only, and is
        // given up below.
        let bytes = size_of::<Shared<S>>() + unsafe { &(*raw).store }.bytes();
        // SAFETY: as above. Threads that have found it did so under guards (STORE_OF_MAP-2).
        unsafe { guard.retire(raw.cast(), bytes, free::<S>) };
    }

    /// Gives back what was kept for a snapshot that has just ended: a little now, and the rest in
    /// the background.
    pub(crate) fn cut(&self) {
        let shared = self.keep();
        if !shared.cut() {
            idle_joiner::notice_at_once(&shared);
        }
    }
}

impl<S: MapStore> Drop for StoreOfMap<S> {
    fn drop(&mut self) {
        let raw = *self.current.get_mut();
        // SAFETY: the pointer is ours (STORE_OF_MAP-1), and nobody borrows this any more.
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
    // SAFETY: the caller says that `raw` comes from `into_raw` and is given up once
    // (STORE_OF_MAP-1).
    let shared = unsafe { Arc::from_raw(raw.cast::<Shared<S>>().cast_const()) };
    shared.release();
}
