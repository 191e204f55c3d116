//! The abilities that a store needs of a map of records that several threads change at a time.
//!
//! The invariants (SHARED_STORE-1 and so on) are those of [`shared_store`](super::shared_store).

use ats_mem::record::{Record, Release};
use ats_sync::Guard;
use std::ops::Bound;
use std::ptr::NonNull;

/// The decision about a key.
pub enum Exchange<'g, R: Release> {
    /// The key stays as it is.
    Keep,
    /// A new record, in the place of the one that was there or as the first one of the key. It has
    /// the same key, byte for byte, and belongs to the map from now on.
    Put(&'g Record<R>),
    /// The record, which is there, goes.
    Take,
}

/// A map of records in the order of their keys, used by any number of threads.
///
/// Records are the [store](super::shared_store::SharedStore)'s: it retires what a change has taken
/// out (SHARED_STORE-2), and frees what is there at the end. Nodes are the map's: it retires those
/// that it replaces, through the guard of the call.
pub trait SharedMap<R: Release>: Default + Send + Sync {
    /// The record of a key, as it was at some moment of the call.
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>>;

    /// Changes one key: calls `decide` once, with its record, and carries out the decision.
    ///
    /// No other thread is in `decide` of the same key, and what it has seen is what is there until
    /// the change has been made, in one step for readers (SHARED_STORE-1). If `decide` panics,
    /// nothing has changed.
    fn change<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Exchange<'g, R>,
    );

    /// Finds the next records from a bound on, at most `most` (which is not 0), ascending: each as
    /// of some moment of the call. If it finds fewer there are no more. A key that is there
    /// throughout the call is among those found unless it is above the last of them.
    fn gather<'g>(
        &'g self,
        from: Bound<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    );

    /// Gathers like [`gather`](SharedMap::gather), but from below `below` (from the end, if `None`)
    /// downwards: descending.
    fn gather_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    );

    /// All records, for a caller that has the map alone and will free them.
    fn all(&mut self) -> Vec<NonNull<Record<R>>>;

    /// About how many bytes of memory the map takes besides the records and itself. `records` is
    /// about how many there are.
    fn bytes(&self, records: usize, guard: &Guard) -> usize;

    /// Like [`Records::force_adaptation`](ats_mem::Records::force_adaptation).
    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        let _ = (splits, joins);
    }
}
