//! Insertion of a new version of a key, and the choice of the older ones that remain.
//!
//! The list of a key is put together anew, from the oldest version that a write has to look at to
//! the newest: each version in turn is put on those that are older. A version of the same stripe
//! below it is dropped or merged, or left because it is much longer. Most writes look at one older
//! version, or at two.
//!
//! The invariants (MEMTABLE-1 to MEMTABLE-5) are those of [`memtable`](super).

use super::retention::Retention;
use super::versions::{History, KeyVersion, Link, Node, Stamp, Tags};
use crate::entry::Kind;
use crate::entry::collapse;
use ats_store::{MergeOperator, Merged};
use ats_sync::Guard;
use smallvec::SmallVec;
use std::borrow::Cow;

/// A value of at most so many bytes is merged with a newer one, however short that is. Copying it
/// costs less than another version does.
const SHORT: usize = 256;
/// A write looks at so many older versions, and at more if there are more stripes than points.
const SURVEY: usize = 8;

/// A new version on its way into the list of its key.
pub(super) struct Insertion<'a> {
    pub history: History<'a>,
    pub key: &'a [u8],
    pub retention: &'a Retention<'a>,
    pub operator: Option<&'a dyn MergeOperator>,
    pub guard: &'a Guard,
}

/// The outcome for the list of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Bytes of new nodes.
    pub added: usize,
    /// Bytes of nodes that were taken out.
    pub removed: usize,
    /// The number of times that the operator has refused.
    pub refusals: usize,
}

/// A version as it is to be in the list.
struct Piece<'a> {
    stamp: Stamp,
    bytes: Cow<'a, [u8]>,
    /// The tags of the link to the next older version.
    tags: Tags,
    /// The version, if it is in the list already, as it is.
    origin: Option<KeyVersion<'a>>,
}

/// A list in the making.
struct List<'a> {
    /// The pieces, from the oldest to the newest.
    pieces: SmallVec<[Piece<'a>; 4]>,
    /// The versions behind them, which stay.
    tail: Link,
    gone: SmallVec<[KeyVersion<'a>; 4]>,
    outcome: Outcome,
}

impl<'a> Insertion<'a> {
    /// Gives the key its newest version.
    ///
    /// # Safety
    /// The caller holds the lock of writers (MEMTABLE-3).
    pub(super) unsafe fn run(&self, stamp: Stamp, bytes: &'a [u8]) -> Outcome {
        let mut list = List {
            pieces: SmallVec::new(),
            tail: self.history.newest().without_tags(),
            gone: SmallVec::new(),
            outcome: Outcome::default(),
        };
        let mut seen: SmallVec<[Piece<'a>; 4]> = SmallVec::new();
        while let Some(version) = self.at(list.tail) {
            let stripes = version.stripes() as usize;
            let points = self.retention.points_below(version.stamp.seq());
            if stripes == 1 || (seen.len() >= SURVEY && stripes <= points + 1) {
                break;
            }
            seen.push(Piece::of(version));
            list.tail = version.older().without_tags();
        }
        while let Some(piece) = seen.pop() {
            self.push(&mut list, piece);
        }
        let new = Piece {
            stamp,
            bytes: Cow::Borrowed(bytes),
            tags: Tags::default(),
            origin: None,
        };
        self.push(&mut list, new);
        // SAFETY: the caller holds the lock of writers (MEMTABLE-3).
        unsafe { self.publish(&list) }
    }

    /// Returns the version that a link of this list leads to.
    fn at(&self, link: Link) -> Option<KeyVersion<'a>> {
        // SAFETY: all links here are from the list, and were read under its guard.
        unsafe { self.history.at(link) }
    }

    /// Returns the newest piece, taken from the tail if there is no other.
    fn top<'l>(&self, list: &'l mut List<'a>) -> Option<&'l Piece<'a>> {
        if list.pieces.is_empty() {
            let version = self.at(list.tail)?;
            list.tail = version.older().without_tags();
            list.pieces.push(Piece::of(version));
        }
        list.pieces.last()
    }

    /// Pushes a version on the list of those that are older.
    fn push(&self, list: &mut List<'a>, mut new: Piece<'a>) {
        let stripe = self.retention.points_below(new.stamp.seq());
        while let Some(top) = self.top(list) {
            if new.stamp.kind() == Kind::Operand && top.stamp.kind() == Kind::Delete {
                let stamp = new.stamp.with_kind(Kind::Put);
                list.change(&mut new, |new| new.stamp = stamp);
                continue;
            }
            if self.retention.points_below(top.stamp.seq()) != stripe {
                break;
            }
            if new.stamp.kind() == Kind::Operand {
                if new.tags.has(Tags::REFUSED) {
                    break;
                }
                if top.bytes.len() > SHORT
                    && !collapse::is_similar(top.bytes.len(), new.bytes.len())
                {
                    new.tags.set(Tags::APART, true);
                    break;
                }
                let Some((merged, kind)) = self.merge(top, &new) else {
                    new.tags.set(Tags::REFUSED, true);
                    list.outcome.refusals += 1;
                    break;
                };
                let stamp = new.stamp.with_kind(kind);
                let merged = match merged {
                    Merged::Later => None,
                    Merged::Earlier => Some(top.bytes.clone()),
                    Merged::New(value) => Some(Cow::Owned(value)),
                };
                list.change(&mut new, |new| {
                    new.stamp = stamp;
                    if let Some(merged) = merged {
                        new.bytes = merged;
                    }
                });
            }
            self.drop_top(list, &mut new);
        }
        list.pieces.push(new);
    }

    /// Drops the version below one that says the same without it.
    fn drop_top(&self, list: &mut List<'a>, new: &mut Piece<'a>) {
        let Some(top) = list.pieces.pop() else { return };
        let was_visible = top.stamp.seq() <= self.retention.visible;
        let mut tags = top.tags;
        tags.set(
            Tags::LOST,
            was_visible || tags.has(Tags::LOST) || new.tags.has(Tags::LOST),
        );
        new.tags = tags;
        if let Some(version) = top.origin {
            list.gone.push(version);
        }
    }

    /// Merges an operand with the version below it. Returns `None` if the operator refuses, or
    /// there is none.
    fn merge(&self, earlier: &Piece<'a>, later: &Piece<'a>) -> Option<(Merged, Kind)> {
        let operator = self.operator?;
        let merged = collapse::merge(operator, self.key, &earlier.bytes, &later.bytes).ok()?;
        let value = match &merged {
            Merged::Earlier => &*earlier.bytes,
            Merged::Later => &*later.bytes,
            Merged::New(value) => value,
        };
        let kind = match earlier.stamp.kind() {
            Kind::Operand if !collapse::is_base(operator, self.key, value).unwrap_or(false) => {
                Kind::Operand
            }
            _ => Kind::Put,
        };
        Some((merged, kind))
    }

    /// Shows the list to readers, and retires the versions that were taken out.
    ///
    /// # Safety
    /// The caller holds the lock of writers (MEMTABLE-3).
    unsafe fn publish(&self, list: &List<'a>) -> Outcome {
        let mut outcome = list.outcome;
        let mut link = list.tail;
        let mut stripes = self.at(link).map_or(0, KeyVersion::stripes);
        for piece in &list.pieces {
            let is_in_stripe = piece.tags.has(Tags::APART) || piece.tags.has(Tags::REFUSED);
            stripes = if is_in_stripe {
                stripes
            } else {
                stripes.saturating_add(1)
            };
            let older = link.with_tags(piece.tags);
            link = match piece.origin {
                Some(version) => {
                    // SAFETY: the version is in the list, and its new successors say the same at
                    // each point as the old ones (MEMTABLE-5).
                    unsafe { version.set_older(older, stripes) };
                    version.link()
                }
                None => {
                    outcome.added += Node::bytes(piece.bytes.len());
                    Link::to(Node::make(piece.stamp, &piece.bytes, older, stripes))
                }
            };
        }
        // SAFETY: the caller holds the lock of writers (MEMTABLE-3). At the points that the list
        // had it says the same as before, and the new version is above them (MEMTABLE-5).
        unsafe { self.history.set_newest(link) };
        for version in &list.gone {
            if !version.is_inline() {
                outcome.removed += Node::bytes(version.bytes.len());
            }
            // SAFETY: it was taken out of the list, once, and the links that led to it lead
            // elsewhere now.
            unsafe { version.retire(self.guard) };
        }
        outcome
    }
}

impl<'a> Piece<'a> {
    /// Makes a version that is in the list.
    fn of(version: KeyVersion<'a>) -> Self {
        Piece {
            stamp: version.stamp,
            bytes: Cow::Borrowed(version.bytes),
            tags: version.older().tags(),
            origin: Some(version),
        }
    }
}

impl<'a> List<'a> {
    /// Changes a piece, which is another version from now on.
    fn change(&mut self, piece: &mut Piece<'a>, change: impl FnOnce(&mut Piece<'a>)) {
        change(piece);
        if let Some(version) = piece.origin.take() {
            self.gone.push(version);
        }
    }
}
