//! A walk over the records of a store.

use crate::read_points::When;
use ats_store::{Direction, KeyRange, WalkFrom};

/// A walk: its beginning, its direction, and the moment that it shows. An order by keys is needed
/// for a walk downwards, or from a key that need not be there.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'k> {
    /// The beginning.
    pub from: WalkFrom<'k>,
    /// The direction in the order of the store.
    pub direction: Direction,
    /// One moment, or for each record the moment at which it is visited.
    pub when: When,
}

impl<'k> Walk<'k> {
    /// Makes a walk upwards that shows each record as of now.
    #[must_use]
    pub const fn up(from: WalkFrom<'k>) -> Self {
        Walk {
            from,
            direction: Direction::Up,
            when: When::NOW,
        }
    }

    /// Makes a walk downwards that shows each record as of now.
    #[must_use]
    pub const fn down(from: WalkFrom<'k>) -> Self {
        Walk {
            direction: Direction::Down,
            ..Walk::up(from)
        }
    }

    /// Makes a walk from the near end of a range, which shows each record as of now. It does not
    /// know the far end.
    #[must_use]
    pub fn of_range(range: KeyRange<'k>, direction: Direction) -> Self {
        match direction {
            Direction::Up => Walk::up(range.low.map_or(WalkFrom::Start, WalkFrom::Key)),
            Direction::Down => Walk::down(range.high.map_or(WalkFrom::Start, WalkFrom::Behind)),
        }
    }

    /// Returns the same walk at a moment.
    #[must_use]
    pub const fn at(self, when: When) -> Self {
        Walk { when, ..self }
    }
}
