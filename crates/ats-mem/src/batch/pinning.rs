//! Pinning of batches.

use ats_sync::{Guard, pin};

/// After so many keys a long batch pins anew: this many take well under a millisecond.
pub const PIECE: usize = 256;

/// The way in which a batch is pinned.
pub(crate) enum Pinning<'a> {
    /// By its caller, throughout.
    Callers(&'a Guard),
    /// By itself, for a piece at a time; `None` between two.
    Own(Option<Guard>),
}

impl Pinning<'_> {
    pub(super) fn guard(&mut self) -> &Guard {
        match self {
            Pinning::Callers(guard) => guard,
            Pinning::Own(guard) => guard.get_or_insert_with(pin),
        }
    }

    /// Lets the thread be unpinned until the guard is asked for again, if that is the batch's
    /// business.
    pub(super) fn pause(&mut self) {
        if let Pinning::Own(guard) = self {
            *guard = None;
        }
    }
}
