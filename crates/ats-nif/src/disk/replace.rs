//! Replacement of values by the results of a program that merges.

use ats_store::{BatchPlan, Change};

/// The part of the stored value that must still be the input of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The beginning: later operands are merged with the replacement.
    Beginning,
    /// The whole value.
    All,
}

/// A replacement of a value that a program has merged.
pub struct Replace<'r> {
    /// The input of the program.
    pub expected: &'r [u8],
    /// The part of the value that must still equal `expected`.
    pub how_much: Expected,
    /// The output of the program, which replaces that part; `None` removes it.
    pub by: Option<&'r [u8]>,
}

impl BatchPlan<[u8], Vec<u8>> for Replace<'_> {
    fn decide(&mut self, _index: usize, current: Option<&[u8]>) -> Change<Vec<u8>> {
        let rest = current.and_then(|current| current.strip_prefix(self.expected));
        match rest {
            None => Change::Abort,
            Some(rest) if self.how_much == Expected::All && !rest.is_empty() => Change::Abort,
            Some([]) if self.by.is_none() => Change::Remove,
            Some(rest) => Change::Put([self.by.unwrap_or_default(), rest].concat()),
        }
    }

    fn build(&mut self, index: usize, current: Option<&[u8]>) -> Change<Vec<u8>> {
        self.decide(index, current)
    }
}
