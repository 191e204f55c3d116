//! The place to which a query has come.

use ats_store::Direction;

/// The progress of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything has been read.
    Done,
    /// Another slice shall go on at the cursor.
    More,
    /// Another slice can go on at the cursor when the values of the next key have been merged; see
    /// [`ats_store::Error::Pending`].
    Pending,
}

/// The place from which the next slice of a query goes on, as plain data: it can be kept for any
/// time, copied, and written down. In a table that it was not made for it leads somewhere, but does
/// no harm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The direction in which an ordered table is read.
    pub direction: Direction,
    /// The number of steps of the plan that are done.
    pub step: usize,
    /// The place in the next one.
    pub at: At,
}

/// A place within a step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// At its beginning.
    #[default]
    Start,
    /// Behind this key, in the direction of the cursor.
    Behind(Vec<u8>),
    /// At the object of this key which has this position, or behind it; of a cursor down before it.
    Within(Vec<u8>, u64),
    /// The place between keys at which a table without order was left.
    Between(u64),
}

impl Cursor {
    /// At the first key in a direction, if the table has an order; else at its beginning.
    #[must_use]
    pub fn new(direction: Direction) -> Self {
        Cursor {
            direction,
            ..Cursor::default()
        }
    }

    /// To the beginning of the next step.
    pub(super) fn advance(&mut self) {
        self.step += 1;
        self.at = At::Start;
    }
}
