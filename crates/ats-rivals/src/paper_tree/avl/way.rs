//! The way from the root to a node, so that a writer compares keys only once.

use crate::paper_tree::side::Side;

/// At which side to go on at each node. Valid until the tree changes.
///
/// Trees are never higher than 64: one that is has more nodes than there is memory.
#[derive(Clone, Copy, Default)]
pub(in crate::paper_tree) struct Way {
    /// From the lowest bit on, those that are set go to the right.
    turns: u64,
    len: u32,
}

impl Way {
    /// Goes on at its end.
    #[inline]
    pub(super) fn go(&mut self, side: Side) {
        debug_assert!(self.len < u64::BITS);
        self.turns |= u64::from(side == Side::Right) << self.len;
        self.len += 1;
    }

    /// The first turn, which is taken; none at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Side> {
        self.len = self.len.checked_sub(1)?;
        let side = match self.turns & 1 {
            0 => Side::Left,
            _ => Side::Right,
        };
        self.turns >>= 1;
        Some(side)
    }
}
