//! Numbers that look random and are the same each time.

use fastrand::Rng;

/// A generator. Equal seeds give equal numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(Rng::with_seed(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Returns a number below a bound, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }

    /// Returns `true` if a die of so many sides shows its first.
    pub(crate) fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    /// One of these, of which there are some.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Returns a generator for something else.
    pub(crate) fn fork(&mut self) -> Random {
        Random(self.0.fork())
    }
}
