//! Ranges of keys.

use super::heads::common_prefix;
use super::inner::Inner;
use crate::record::Release;
use ats_store::KeyRange;

/// The bounds of a range of keys: the first that belongs to it, and the first that does not.
#[derive(Clone, Copy)]
pub(super) struct Fences<'g> {
    pub low: Option<&'g [u8]>,
    pub high: Option<&'g [u8]>,
}

impl<'g> Fences<'g> {
    pub(super) const NONE: Self = Fences {
        low: None,
        high: None,
    };

    /// Returns `true` if all keys are within.
    pub(super) fn cover_all(&self) -> bool {
        self.low.is_none() && self.high.is_none()
    }

    /// Returns `true` if a key can be within both these and a range.
    pub(super) fn meet(&self, key_range: &KeyRange<'_>) -> bool {
        let is_below = |low: Option<&[u8]>, high: Option<&[u8]>| {
            low.is_none_or(|low| high.is_none_or(|high| low < high))
        };
        is_below(self.low, key_range.high) && is_below(key_range.low, self.high)
    }

    /// Number of bytes that all keys within begin with.
    pub(super) fn skip(&self) -> usize {
        match (self.low, self.high) {
            (Some(low), Some(high)) => common_prefix(low, high),
            _ => 0,
        }
    }

    /// From where this range begins to where another one ends.
    pub(super) fn to(&self, other: Self) -> Self {
        Fences {
            low: self.low,
            high: other.high,
        }
    }

    pub(super) fn below(&self, high: &'g [u8]) -> Self {
        Fences {
            high: Some(high),
            ..*self
        }
    }

    pub(super) fn from(&self, low: &'g [u8]) -> Self {
        Fences {
            low: Some(low),
            ..*self
        }
    }

    /// The fences of a child of a node with these.
    #[inline(always)]
    pub(super) fn of_child<R: Release>(&self, inner: &'g Inner<R>, place: usize) -> Self {
        let mut fences = *self;
        if place > 0 {
            fences.low = Some(inner.separator(place - 1));
        }
        if place < inner.len() {
            fences.high = Some(inner.separator(place));
        }
        fences
    }
}
