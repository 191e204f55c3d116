//! Identities of stores, for threads that remember parts of a store between calls.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The identity of a store among all that ever existed.
pub(crate) struct Identity(u64);

impl Identity {
    pub(crate) fn new() -> Self {
        // An atomic outside the shim: it orders nothing.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        /// Number of identities that a thread takes at once, so that threads that make stores all
        /// the time do not contend.
        const TAKEN: u64 = 64;
        std::thread_local! {
            static OWN: Cell<u64> = const { Cell::new(0) };
        }
        let own = OWN.get();
        let identity = if own.is_multiple_of(TAKEN) {
            NEXT.fetch_add(1, Ordering::Relaxed) * TAKEN
        } else {
            own
        };
        OWN.set(identity + 1);
        Identity(identity)
    }

    /// Returns the number, which no other store has, and which is never 0.
    #[inline(always)]
    pub(crate) fn number(&self) -> u64 {
        self.0
    }
}
