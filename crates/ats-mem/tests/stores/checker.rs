//! A linearizability checker: it searches an order of the operations, each at one moment between
//! its call and its return, that explains all their results.
//!
//! The search is that of Wing and Gong (1993) with the memory of Lowe (2017): it chooses an
//! operation that may be the next, applies it, and continues; never twice with the same operations
//! done and the same state.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

/// A call of a thread, with its result and its times.
#[derive(Clone, Debug)]
pub(crate) struct Event<O> {
    pub(crate) what: O,
    /// Time before the call.
    pub(crate) call: u64,
    /// Time after the return.
    pub(crate) end: u64,
}

/// The clock of a history: it only orders calls and returns.
#[derive(Default)]
pub(crate) struct Clock(AtomicU64);

impl Clock {
    /// Calls a function and records the call; the second function converts the result to a part of
    /// the event.
    pub(crate) fn record<R, O>(
        &self,
        call: impl FnOnce() -> R,
        what: impl FnOnce(R) -> O,
    ) -> Event<O> {
        let start = self.0.fetch_add(1, Ordering::SeqCst);
        let result = call();
        let end = self.0.fetch_add(1, Ordering::SeqCst);
        Event {
            what: what(result),
            call: start,
            end,
        }
    }
}

/// Returns `true` if the history is linearizable. `apply` gives the state after an operation, or
/// nothing if its result is impossible in that state. At most 64 events.
pub(crate) fn linearizable<O, S: Clone + Eq + Hash>(
    initial: S,
    events: &[Event<O>],
    apply: impl Fn(&S, &O) -> Option<S>,
) -> bool {
    assert!(events.len() <= 64, "the search is for short histories");
    let all = u64::MAX.checked_shr(64 - events.len() as u32).unwrap_or(0);
    let mut seen = HashSet::new();
    let mut todo = vec![(0, initial)];
    while let Some((done, state)) = todo.pop() {
        if done == all {
            return true;
        }
        let left = || (0..events.len()).filter(|at| done >> at & 1 == 0);
        // An operation that was called after another one had returned comes after it.
        let first_end = left().map(|at| events[at].end).min();
        for at in left().filter(|at| Some(events[*at].call) < first_end) {
            if let Some(after) = apply(&state, &events[at].what) {
                let next = (done | 1 << at, after);
                if seen.insert(next.clone()) {
                    todo.push(next);
                }
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An access to a register, with the value written or read.
    enum Access {
        Write(u32),
        Read(u32),
    }

    fn is_linearizable(history: &[(Access, u64, u64)]) -> bool {
        let event = |(what, call, end): &(Access, u64, u64)| Event {
            what: match what {
                Access::Write(value) => Access::Write(*value),
                Access::Read(value) => Access::Read(*value),
            },
            call: *call,
            end: *end,
        };
        let events: Vec<_> = history.iter().map(event).collect();
        linearizable(0, &events, |state, access| match access {
            Access::Write(value) => Some(*value),
            Access::Read(value) => (value == state).then_some(*state),
        })
    }

    use Access::{Read, Write};

    #[test]
    fn accepts_any_order_of_overlapping_calls() {
        assert!(is_linearizable(&[]));
        assert!(is_linearizable(&[
            (Write(1), 0, 9),
            (Read(0), 1, 2),
            (Read(1), 3, 4)
        ]));
        assert!(is_linearizable(&[
            (Write(1), 0, 9),
            (Write(2), 1, 8),
            (Read(1), 2, 3)
        ]));
    }

    #[test]
    fn refuses_reads_of_past_and_future_values() {
        assert!(!is_linearizable(&[(Write(1), 0, 1), (Read(0), 2, 3)]));
        assert!(!is_linearizable(&[(Read(1), 0, 1), (Write(1), 2, 3)]));
        let back = [(Write(1), 0, 9), (Read(1), 1, 2), (Read(0), 3, 4)];
        assert!(!is_linearizable(&back));
    }
}
