//! The interface that a store needs of a map that several threads change at the same time.
//!
//! The invariants (SHARED_STORE-1 and so on) are those of [`shared_store`](super::shared_store).

use ats_mem::record::{Record, Release};
use ats_sync::Guard;
use std::ops::Bound;
use std::ptr::NonNull;

/// The decision about a key.
pub enum Exchange<'g, R: Release> {
    /// Keep the key as it is.
    Keep,
    /// Put this record, which replaces the current one if there is one. It has the same key, byte
    /// for byte, and belongs to the map from now on.
    Put(&'g Record<R>),
    /// Take out the record of the key, which is present.
    Take,
}

/// A map of records in the order of their keys, used by any number of threads.
///
/// Records belong to the [store](super::shared_store::SharedStore): it retires those that a change
/// has taken out (SHARED_STORE-2), and frees the rest when it is dropped. Nodes belong to the map:
/// it retires those that it replaces, through the guard of the call.
pub trait SharedMap<R: Release>: Default + Send + Sync {
    /// Returns the record of a key, as of some moment of the call.
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>>;

    /// Changes one key: calls `decide` once, with its record, and carries out the decision.
    ///
    /// No two threads are in `decide` of the same key at the same time. The record that `decide`
    /// has seen is still in the map when the change is made, which is one step for readers
    /// (SHARED_STORE-1). If `decide` panics, nothing has changed.
    fn change<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Exchange<'g, R>,
    );

    /// Finds the next records from a bound on, ascending: at most `most`, which is not 0. Each is
    /// as of some moment of the call. If it finds fewer than `most`, no more follow. A key that is
    /// present throughout the call is found unless it is above the last one found.
    fn gather<'g>(
        &'g self,
        from: Bound<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    );

    /// Gathers like [`gather`](SharedMap::gather), but descending, from the last key below `below`,
    /// or from the last of all for `None`.
    fn gather_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    );

    /// Returns all records, for a caller that has exclusive access and will free them.
    fn all(&mut self) -> Vec<NonNull<Record<R>>>;

    /// Returns the approximate memory use of the map in bytes, without the records and `self`.
    /// `records` is the approximate number of records.
    fn bytes(&self, records: usize, guard: &Guard) -> usize;

    /// Like [`Records::force_adaptation`](ats_mem::Records::force_adaptation).
    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        let _ = (splits, joins);
    }
}
