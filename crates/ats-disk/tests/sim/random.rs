//! Numbers that look random and are the same each time: splitmix64 (Steele, Lea and Flood, 2014).

/// A generator. Equal seeds give equal numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Whether a die of so many sides shows its first.
    pub(crate) fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    /// One of these, of which there are some.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A generator for something else.
    pub(crate) fn fork(&mut self) -> Random {
        Random(self.next())
    }
}
