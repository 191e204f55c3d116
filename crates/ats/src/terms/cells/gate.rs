//! The gate before the cells of a table, which queries of one moment close.
//!
//! The first query waits until all threads are done that may be changing a cell: less than a
//! microsecond if no thread is in the way, and some ten to hundred otherwise. The gate stays closed
//! when the query has ended, so that a query soon after it need not wait. Meanwhile elements are
//! changed by new records, which takes some hundred nanoseconds more each. So the gate opens again
//! after as many of them as take about the time of the last wait: whatever a program does, it loses
//! at most about twice as much as if its next call was known.
//!
//! # Invariants
//! - GATE-1. A thread that changes a cell is pinned, has found the gate open since, and has then
//!   found that no query runs.
//! - GATE-2. A query is registered, so that threads find that it runs, before it looks at the gate.
//! - GATE-3. The gate is closed by a thread that has seen it open, has noted that it is closing,
//!   and has waited for all threads that were pinned then. So no thread that found it open before
//!   still changes a cell when it is closed.

use super::wait_for_changes;
use ats_mem::Busy;
use ats_sync::count::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The gate of a table. A closed one has the number of changes until it opens in the lower half of
/// its word, and the number after a query in the upper one.
pub(crate) struct Gate(AtomicU64);

/// The table has no cells, and has had none.
const NO_CELLS: u64 = 0;
const OPEN: u64 = 1;
/// A query waits for threads that found the gate open.
const CLOSING: u64 = 2;
/// The first state of a closed gate. A state above it has so many changes more until it opens.
const CLOSED: u64 = 3;

/// The time that a change by a new record takes longer than one in place, in nanoseconds.
const CHANGE_NS: u128 = 150;
/// The most changes by new records after a query until the gate opens.
const MOST_CHANGES: u64 = if cfg!(feature = "forcing") { 3 } else { 1000 };

/// Returns the state of a gate that opens after so many changes from a query on.
fn closed(changes: u64) -> u64 {
    changes << u32::BITS | (CLOSED + changes)
}

/// Returns the number of changes from a query on until a closed gate opens.
fn changes_after_query(state: u64) -> u64 {
    state >> u32::BITS
}

/// Returns the number of changes until a closed gate opens, if it is closed.
fn changes_left(state: u64) -> Option<u64> {
    u64::from(state as u32).checked_sub(CLOSED)
}

impl Gate {
    pub(crate) const fn new() -> Self {
        Gate(AtomicU64::new(NO_CELLS))
    }

    /// Returns `true` if an object of the table may have cells.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed) != NO_CELLS
    }

    /// Notes that an object of the table is about to get cells.
    #[inline]
    pub(crate) fn make(&self) {
        if !self.is_there() {
            // Another thread may have made the gate, and a third one closed it.
            let _ = self.exchange(NO_CELLS, OPEN);
        }
    }

    /// Returns `true` if the gate is open. A thread that is going to change a cell looks then
    /// whether a query runs (GATE-1).
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        // Acquire: a thread that finds the gate open again finds the queries that were registered
        // before they found it closed.
        self.0.load(Ordering::Acquire) == OPEN
    }

    /// Counts a change that is made by a new record because the gate is closed, and opens the gate
    /// if there have been enough. Another thread may count at the same time instead.
    #[cold]
    pub(crate) fn count(&self) {
        let state = self.0.load(Ordering::Relaxed);
        match changes_left(state) {
            None => (),
            Some(0) => drop(self.exchange(state, OPEN)),
            Some(_) => drop(self.exchange(state, state - 1)),
        }
    }

    /// Ensures, for a query that is registered (GATE-2), that no cell changes while the query runs.
    /// Waits if the gate is open; the calling thread must not be pinned. Returns [`Busy`] if it
    /// must not wait that long.
    pub(crate) fn close(&self) -> Result<(), Busy> {
        loop {
            let state = self.0.load(Ordering::SeqCst);
            match state {
                NO_CELLS => return Ok(()),
                OPEN => {
                    if self.exchange(OPEN, CLOSING) {
                        let begin = Instant::now();
                        let waited = wait_for_changes();
                        let changes = begin.elapsed().as_nanos() / CHANGE_NS;
                        let changes = changes.min(u128::from(MOST_CHANGES)) as u64;
                        let next = waited.map_or(OPEN, |()| closed(changes));
                        self.0.store(next, Ordering::SeqCst);
                        return waited;
                    }
                }
                // The query that closes the gate may give up, so this one waits itself.
                CLOSING => return wait_for_changes(),
                // The exchange ensures that the gate has not been opened meanwhile, and that a
                // thread that opens it later passes on that this query is registered.
                _ => {
                    if self.exchange(state, closed(changes_after_query(state))) {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn exchange(&self, old: u64, new: u64) -> bool {
        let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
        (self.0.compare_exchange(old, new, success, failure)).is_ok()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_closed_gate_opens_after_some_changes() {
        let gate = Gate::new();
        assert!(!gate.is_there() && !gate.is_open());
        assert_eq!(gate.close(), Ok(()));
        gate.count();
        assert!(!gate.is_there());
        gate.make();
        for _ in 0..2 {
            assert!(gate.is_there() && gate.is_open());
            gate.count();
            assert!(gate.is_open());
            assert_eq!(gate.close(), Ok(()));
            let all = changes_left(gate.0.load(Ordering::Relaxed)).expect("it is closed");
            assert!(all <= MOST_CHANGES);
            // A second query gives all changes back.
            for changes in [all, all] {
                assert_eq!(gate.close(), Ok(()));
                for _ in 0..changes {
                    gate.count();
                    assert!(!gate.is_open());
                }
            }
            gate.count();
        }
    }

    /// Both the query that closes the gate and one that meets it wait for a pinned thread.
    #[test]
    fn each_query_waits_for_threads_that_may_change_a_cell() {
        let gate = &Gate::new();
        gate.make();
        let (closed, is_closed) = channel();
        thread::scope(|scope| {
            let guard = ats_sync::pin();
            for _ in 0..2 {
                let closed = closed.clone();
                scope.spawn(move || {
                    assert_eq!(gate.close(), Ok(()));
                    closed.send(()).expect("the test waits");
                });
            }
            let waited = is_closed.recv_timeout(Duration::from_millis(50));
            assert_eq!(waited, Err(RecvTimeoutError::Timeout));
            assert!(!gate.is_open());
            drop(guard);
            for _ in 0..2 {
                is_closed.recv().expect("both go on");
            }
        });
        assert!(gate.is_there() && !gate.is_open());
    }
}
