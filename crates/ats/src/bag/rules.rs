//! The rules of bags.

use ats_term::Zeros;

/// The rule of a table for equal objects, and the rule that says which are equal.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// `true` if no object comes twice under a key.
    pub(crate) distinct: bool,
    pub(crate) zeros: Zeros,
    /// `true` if a key with many objects becomes a [large bag](super::large).
    pub(crate) grows: bool,
    /// `true` if the objects that were there may be read after they have been replaced: by queries
    /// of an earlier moment.
    pub(crate) keeps_old: bool,
}

/// There is more to change than the caller has time for. Nothing has changed.
pub(crate) struct TooMany;
