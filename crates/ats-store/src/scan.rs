//! Places in a store, and the outcomes of going there.

/// The beginning of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkFrom<'k> {
    /// The first record in the direction of the walk.
    Start,
    /// A key, or the one next to it if it is not there, in a store that has the order of its keys.
    Key(&'k [u8]),
    /// The record next to a key that a store without order must know: it is there, or was
    /// removed since the store was fixed.
    Known(&'k [u8]),
    /// The record next to a key, which need not be there.
    Behind(&'k [u8]),
    /// The place at which another walk paused.
    Place(u64),
}

/// The content of a numbered slot. The slots divide a store, and are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotAnswer {
    /// A slot, whose records were visited; there may be none.
    Here,
    /// The number of slots.
    End,
    /// A larger number.
    Beyond,
}

/// The outcome of skipping objects of a range: passing over a number of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skipped<T> {
    /// The record of the next object, when as many as wanted were passed; and the number of its own
    /// objects that are among those: 0 where each record is one object.
    At(T, usize),
    /// All records were passed, of which this is the number.
    All(usize),
    /// Paused, as it was told.
    Paused {
        /// The number of records that were passed.
        skipped: usize,
        /// The end of the part that was passed: the new low end of the range on the way up, or the
        /// new high end on the way down.
        bound: Vec<u8>,
    },
}

impl<T> Skipped<T> {
    /// The slot with this number, of a store whose slots are the places of its objects, if so many
    /// objects were to be passed. Visits the next record, if its first object is at that place:
    /// the objects of a record are all in the slot of its first one.
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

    /// The same, with the next one seen in another way.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Skipped<U> {
        match self {
            Skipped::At(next, within) => Skipped::At(f(next), within),
            Skipped::All(skipped) => Skipped::All(skipped),
            Skipped::Paused { skipped, bound } => Skipped::Paused { skipped, bound },
        }
    }
}
