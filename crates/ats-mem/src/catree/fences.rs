//! Fences: the bounds of the keys that lead to a node.

use super::heads::common_prefix;
use super::inner::Inner;
use crate::record::Release;
use ats_store::KeyRange;

/// The bounds of a range of keys: the first key inside, and the first key beyond.
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

    /// Returns `true` if all keys are within the range.
    pub(super) fn cover_all(&self) -> bool {
        self.low.is_none() && self.high.is_none()
    }

    /// Returns `true` if some key can be within both ranges.
    pub(super) fn meet(&self, key_range: &KeyRange<'_>) -> bool {
        let is_below = |low: Option<&[u8]>, high: Option<&[u8]>| {
            low.is_none_or(|low| high.is_none_or(|high| low < high))
        };
        is_below(self.low, key_range.high) && is_below(key_range.low, self.high)
    }

    /// Returns the number of bytes that all keys within have in common at their beginning.
    pub(super) fn skip(&self) -> usize {
        match (self.low, self.high) {
            (Some(low), Some(high)) => common_prefix(low, high),
            _ => 0,
        }
    }

    /// Returns the range from the beginning of this one to the end of another one.
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

    /// Returns the fences of a child of a node with these fences.
    #[inline(always)]
    pub(super) fn of_child<R: Release>(&self, inner: &'g Inner<R>, child_index: usize) -> Self {
        let mut fences = *self;
        if child_index > 0 {
            fences.low = Some(inner.separator(child_index - 1));
        }
        if child_index < inner.len() {
            fences.high = Some(inner.separator(child_index));
        }
        fences
    }
}
