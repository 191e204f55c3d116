//! Writing the order key of a term, and visiting its maps in that order.

use super::format::{MAX_INT_KEY, Order, push_int};
use crate::Zeros;
use crate::keys::{self, Boundary, Format, MapRecorder};
use crate::term_ref::TermRef;

/// Appends the order key of a term. O(n log n) at most, where n is the size of the term, and O(n)
/// for a term without maps; without recursion.
///
/// `zeros` says whether `0.0` and `-0.0` are different keys of maps; elsewhere they are equal.
#[inline]
pub fn order_key<T: TermRef>(term: T, out: &mut Vec<u8>, zeros: Zeros) {
    let _work = order_key_within(term, out, zeros, usize::MAX);
}

/// Does what [`order_key`] does, but gives up when that takes more than about `most` steps: then it
/// appends nothing and returns `None`. For callers that must not work for long. Else returns the
/// number of steps. A byte of the key is a step, and so is about a nanosecond's work of sorting the
/// keys of maps.
#[inline]
pub fn order_key_within<T: TermRef>(
    term: T,
    out: &mut Vec<u8>,
    zeros: Zeros,
    most: usize,
) -> Option<usize> {
    // Most keys are small integers: those need no walk.
    match term.immediate() {
        Some(word) if word & 0xF == 0xF => {
            push_int(word as i64 >> 4, out);
            Some(MAX_INT_KEY)
        }
        _ => keys::write(term, &mut Order::new(zeros), out, most),
    }
}

/// Visits the maps in a term that have pairs, inner ones before those around them, each with its
/// pairs in the order of the keys. Map keys are compared exactly, at every depth. Values that a fun
/// has captured do not count. O(n log n) at most, where n is the size of the term; without
/// recursion.
pub fn for_each_map<T: TermRef>(term: T, zeros: Zeros, visit: impl FnMut(T, &[(T, T)])) {
    let mut visitor = Visitor {
        maps: Vec::new(),
        visit,
    };
    let mut order = Order::new(zeros);
    // Within a key all is compared exactly.
    order.map_keys(Boundary::Enter);
    keys::write_recorded(term, &mut order, &mut Vec::new(), usize::MAX, &mut visitor);
}

/// The listener with which [`for_each_map`] follows a walk.
struct Visitor<T, F> {
    maps: Vec<T>,
    visit: F,
}

impl<T: TermRef, F: FnMut(T, &[(T, T)])> MapRecorder<T> for Visitor<T, F> {
    type Mark = usize;

    fn mark(&self) -> usize {
        self.maps.len()
    }

    fn begin(&mut self, map: T) {
        self.maps.push(map);
    }

    fn end(&mut self, begun: usize, pairs: &[(T, T)], _: &[(usize, usize)]) {
        (self.visit)(self.maps[begun], pairs);
    }
}
