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
    pub(crate) old_version: OldVersion,
}

/// The fate of the version of a key that a change replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldVersion {
    /// The old version ends, and its nodes may be taken over.
    Ends,
    /// Queries of an earlier moment may still read the old version.
    IsRead,
    /// The change may be undone, so the index of a large bag loses no entry.
    MayComeBack,
}

/// The error of a change that exceeds the limit of its caller. Nothing has changed.
pub(crate) struct TooMany;
