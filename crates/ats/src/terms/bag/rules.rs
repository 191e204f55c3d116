//! The rules of bags.

use ats_term::Zeros;

/// The rules of a table for equal objects.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// `true` if a key has no two equal objects.
    pub(crate) distinct: bool,
    pub(crate) zeros: Zeros,
    /// `true` if a key with many objects becomes a [large bag](super::large).
    pub(crate) grows: bool,
    /// `true` if replaced objects may still be read, by queries of an earlier moment.
    pub(crate) keeps_old: bool,
    /// `true` if any change may be undone: then the index of a large bag loses no entry.
    pub(crate) can_be_undone: bool,
}

/// The error of a change that exceeds the limit of its caller. Nothing has changed.
pub(crate) struct TooMany;
