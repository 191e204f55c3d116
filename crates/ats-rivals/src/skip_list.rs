//! The ordered store on a concurrent skip list: that of `crossbeam`, after M. Herlihy, Y. Lev, V.
//! Luchangco and N. Shavit, *A provably correct scalable concurrent skip list* (OPODIS 2006), and
//! K. Fraser, *Practical lock-freedom* (2004).
//!
//! Good for: writers of different keys, which meet only at neighbours in the list. Bad at: reads,
//! since a search takes some twenty steps, each to another cache line; memory, since each key is
//! stored twice; writers of one key, which exclude each other by a lock, since
//! [`SharedMap::change`] decides once.
//!
//! # Invariants
//! - SKIP_LIST-1. Only the holder of a key's lock inserts or removes the node of the key.
//! - SKIP_LIST-2. The word of a node leads to the record of the key. It is null once the key is
//!   removed, which happens before the node is removed. So a reader that has found a node which is
//!   removed meanwhile finds no record, and there was none at a moment since the reader began.

use super::key_locks::KeyLocks;
use super::shared_map::{Exchange, SharedMap};
use super::shared_store::SharedStore;
use ats_mem::record::{Record, Release};
use ats_sync::Guard;
use ats_sync::shim::atomic::{AtomicPtr, Ordering};
use crossbeam_skiplist::SkipMap;
use std::ops::Bound;
use std::ptr::{self, NonNull};

/// A concurrent skip list.
pub type SkipList<R> = SharedStore<R, List<R>>;

/// Approximate bytes of a node of the list without its key; its tower has two words on average.
const BYTES_EACH: usize = 64;

/// The keys in a skip list, each with a word that leads to its record.
pub struct List<R: Release> {
    nodes: SkipMap<Box<[u8]>, Word<R>>,
    locks: KeyLocks,
}

/// The address of a key's record, or null if the key was removed (SKIP_LIST-2).
struct Word<R: Release>(AtomicPtr<Record<R>>);

// SAFETY: it stands for a record, which any thread may read, and which any thread may free
// (RECORD-3).
unsafe impl<R: Release> Send for Word<R> {}
// SAFETY: a shared `Word` only lends its record to read, which any thread may do (RECORD-1), and
// the word itself is atomic.
unsafe impl<R: Release> Sync for Word<R> {}

impl<R: Release> Word<R> {
    fn new(record: &Record<R>) -> Self {
        Word(AtomicPtr::new(ptr::from_ref(record).cast_mut()))
    }

    fn set(&self, record: Option<&Record<R>>) {
        let record = record.map_or(ptr::null_mut(), |record| ptr::from_ref(record).cast_mut());
        self.0.store(record, Ordering::Release);
    }

    fn get<'g>(&self, _guard: &'g Guard) -> Option<&'g Record<R>> {
        // SAFETY: a record to which the word leads is in the map, so it lives as long as a guard
        // made before (SHARED_STORE-2).
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }
}

impl<R: Release> Default for List<R> {
    fn default() -> Self {
        List {
            nodes: SkipMap::new(),
            locks: KeyLocks::new(),
        }
    }
}

impl<R: Release> SharedMap<R> for List<R> {
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        self.nodes.get(key)?.value().get(guard)
    }

    fn change<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Exchange<'g, R>,
    ) {
        let _held = self.locks.lock(key);
        let node = self.nodes.get(key);
        let here = node.as_ref().and_then(|node| node.value().get(guard));
        match (decide(here), node) {
            (Exchange::Put(record), Some(node)) => node.value().set(Some(record)),
            (Exchange::Put(record), None) => {
                self.nodes.insert(key.into(), Word::new(record));
            }
            (Exchange::Take, Some(node)) => {
                node.value().set(None);
                node.remove();
            }
            (Exchange::Keep, _) | (Exchange::Take, None) => {}
        }
    }

    fn gather<'g>(
        &'g self,
        from: Bound<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    ) {
        let nodes = self.nodes.range::<[u8], _>((from, Bound::Unbounded));
        found.extend(nodes.filter_map(|node| node.value().get(guard)).take(most));
    }

    fn gather_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    ) {
        let below = below.map_or(Bound::Unbounded, Bound::Excluded);
        let nodes = self.nodes.range::<[u8], _>((Bound::Unbounded, below));
        let records = nodes.rev().filter_map(|node| node.value().get(guard));
        found.extend(records.take(most));
    }

    fn all(&mut self) -> Vec<NonNull<Record<R>>> {
        let records = self.nodes.iter();
        let records =
            records.filter_map(|node| NonNull::new(node.value().0.load(Ordering::Relaxed)));
        records.collect()
    }

    fn bytes(&self, records: usize, _guard: &Guard) -> usize {
        self.locks.bytes() + records * BYTES_EACH
    }
}
