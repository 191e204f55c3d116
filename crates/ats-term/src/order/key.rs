//! Construction of order keys, and visits of a term's maps in that order.

use super::format::{MAX_INT_KEY, Order, push_int};
use crate::Zeros;
use crate::keys::{self, Boundary, Format, MapRecorder};
use crate::term_ref::TermRef;

/// Appends the order key of a term. O(n log n) at most, where n is the size of the term, and O(n)
/// for a term without maps; without recursion.
///
/// `zeros` decides whether `0.0` and `-0.0` are different keys of maps; elsewhere they are equal.
#[inline]
pub fn order_key<T: TermRef>(term: T, out: &mut Vec<u8>, zeros: Zeros) {
    let _work = order_key_within(term, out, zeros, usize::MAX);
}

/// Appends the key like [`order_key`], but gives up after about `most` steps: then it appends
/// nothing and returns `None`. Otherwise returns the number of steps. For callers with limited
/// time. A step is a byte of the key, or about a nanosecond of sorting map keys.
#[inline]
pub fn order_key_within<T: TermRef>(
    term: T,
    out: &mut Vec<u8>,
    zeros: Zeros,
    most: usize,
) -> Option<usize> {
    // Most keys are small integers, which need no walk.
    match term.immediate() {
        Some(word) if word & 0xF == 0xF => {
            push_int(word as i64 >> 4, out);
            Some(MAX_INT_KEY)
        }
        _ => keys::write(term, &mut Order::new(zeros), out, most),
    }
}

/// Visits the non-empty maps of a term, inner ones before outer ones, each with its pairs in the
/// order of the keys. Map keys are compared exactly, at every depth. Maps captured by a fun are not
/// visited. O(n log n) at most, where n is the size of the term; without recursion.
pub fn for_each_map<T: TermRef>(term: T, zeros: Zeros, visit: impl FnMut(T, &[(T, T)])) {
    let mut visitor = Visitor {
        maps: Vec::new(),
        visit,
    };
    let mut order = Order::new(zeros);
    // Inside a map key, all numbers are compared exactly.
    order.map_keys(Boundary::Enter);
    keys::write_recorded(term, &mut order, &mut Vec::new(), usize::MAX, &mut visitor);
}

/// The listener by which [`for_each_map`] follows a walk.
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
