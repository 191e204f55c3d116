//! Starts of walks, and the outcomes of visiting slots and of skipping objects.

/// The start of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkFrom<'k> {
    /// The first record in the direction of the walk.
    Start,
    /// The record of this key or, if it is absent, the next one in the direction of the walk. The
    /// store must be ordered.
    Key(&'k [u8]),
    /// The record beyond this key. An unordered store requires that the key is present, or was
    /// removed since the store was fixed.
    Known(&'k [u8]),
    /// The record beyond this key. The key may be absent.
    Behind(&'k [u8]),
    /// The position at which another walk has paused.
    Position(u64),
}

/// The answer to a visit of the slot with a given index. The slots divide a store, and are numbered
/// from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotAnswer {
    /// The slot exists, and its records were visited. It may be empty.
    Here,
    /// The index equals the number of slots.
    End,
    /// The index is greater than the number of slots.
    Beyond,
}

/// The outcome of skipping a number of objects of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skipped<T> {
    /// The record with the next object, behind the number of objects to skip. The second field
    /// counts the skipped objects that belong to this record; it is 0 if each record is one object.
    At(T, usize),
    /// The range has no further object. The field counts the objects of the range.
    All(usize),
    /// The caller's `pause` has ended the call early.
    Paused {
        /// Number of objects skipped so far.
        skipped: usize,
        /// The end of the skipped part. A call that goes on takes it as the new low end of the
        /// range on the way up, and as the new high end on the way down.
        bound: Vec<u8>,
    },
}

impl<T> Skipped<T> {
    /// Returns the answer to a visit of slot `index`, given the outcome of skipping `index`
    /// objects. It is for stores in which the slot of an object is its rank.
    ///
    /// The objects of a record are all in the slot of the first one. So this visits the next record
    /// only if its first object has rank `index`.
    pub fn slot(self, index: usize, visit: &mut dyn FnMut(T)) -> SlotAnswer {
        match self {
            Skipped::At(_, 1..) => SlotAnswer::Here,
            Skipped::At(next, 0) => {
                visit(next);
                SlotAnswer::Here
            }
            Skipped::All(slots) if slots == index => SlotAnswer::End,
            _ => SlotAnswer::Beyond,
        }
    }

    /// Converts the next record, if there is one, and leaves the rest as it is.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Skipped<U> {
        match self {
            Skipped::At(next, within) => Skipped::At(f(next), within),
            Skipped::All(skipped) => Skipped::All(skipped),
            Skipped::Paused { skipped, bound } => Skipped::Paused { skipped, bound },
        }
    }
}
