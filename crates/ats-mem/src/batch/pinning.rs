//! Pinning of batches.

use ats_sync::{Guard, pin};

/// Number of keys after which a long batch repins: this many take well under a millisecond.
pub const PIECE: usize = 256;

/// The owner of a batch's guard.
pub(crate) enum Pinning<'a> {
    /// Pinned by the caller, throughout.
    Callers(&'a Guard),
    /// Pinned by the batch itself, piece by piece; `None` between two pieces.
    Own(Option<Guard>),
}

impl Pinning<'_> {
    pub(super) fn guard(&mut self) -> &Guard {
        match self {
            Pinning::Callers(guard) => guard,
            Pinning::Own(guard) => guard.get_or_insert_with(pin),
        }
    }

    /// Unpins the thread until the guard is requested again, if the batch pins for itself.
    pub(super) fn pause(&mut self) {
        if let Pinning::Own(guard) = self {
            *guard = None;
        }
    }
}
