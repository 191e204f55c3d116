//! What bags are.

use ats_term::Zeros;

/// What a table makes of equal objects, and which are equal.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// Whether no object comes twice under a key.
    pub(crate) distinct: bool,
    pub(crate) zeros: Zeros,
    /// Whether a key with many objects becomes a [large bag](super::large).
    pub(crate) grows: bool,
}

/// There is more to change than the caller has time for. Nothing has changed.
pub(crate) struct TooMany;
