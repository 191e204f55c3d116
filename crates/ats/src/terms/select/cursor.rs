//! The position of a query in a table.

use ats_store::Direction;

/// The progress of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The query has read everything.
    Done,
    /// Another slice must continue at the cursor.
    More,
    /// Another slice can continue at the cursor after the values of the next key were merged; see
    /// [`ats_store::Error::Pending`].
    Pending,
}

/// The position at which the next slice of a query continues. It is plain data: it can be kept for
/// any time, copied, and serialized. In another table it leads to an arbitrary position, but does
/// no harm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The direction in which an ordered table is read.
    pub direction: Direction,
    /// The number of finished steps of the plan.
    pub step: usize,
    /// The position in the next step.
    pub at: At,
}

/// A position within a step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// The beginning of the step.
    #[default]
    Start,
    /// The position behind this key, in the direction of the cursor.
    Behind(Vec<u8>),
    /// The object of this key with this position, or the next one; in the direction down, the
    /// object before this position.
    Within(Vec<u8>, u64),
    /// The position between keys at which a walk left a table without order.
    Between(u64),
}

impl Cursor {
    /// Returns a cursor at the first key in a direction if the table has an order, else at its
    /// beginning.
    #[must_use]
    pub fn new(direction: Direction) -> Self {
        Cursor {
            direction,
            ..Cursor::default()
        }
    }

    /// Moves to the beginning of the next step.
    pub(super) fn advance(&mut self) {
        self.step += 1;
        self.at = At::Start;
    }
}
