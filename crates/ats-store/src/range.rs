//! Ranges, directions and ends of the order of keys.

/// A half-open range of keys: from `low` on, up to and without `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyRange<'k> {
    /// The lowest key of the range; `None` for no lower bound.
    pub low: Option<&'k [u8]>,
    /// The lowest key above the range; `None` for no upper bound.
    pub high: Option<&'k [u8]>,
}

impl KeyRange<'_> {
    /// Returns `true` if the range can contain no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.high
            .is_some_and(|high| high <= self.low.unwrap_or_default())
    }

    /// Returns `true` if the range contains this key.
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        self.low.is_none_or(|low| low <= key) && self.high.is_none_or(|high| key < high)
    }
}

/// Returns the least key above this one in bytewise order; no key lies between the two. O(length).
#[must_use]
pub fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// A direction in the order of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Ascending.
    #[default]
    Up,
    /// Descending.
    Down,
}

/// An end of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end with the first record.
    First,
    /// The end with the last record.
    Last,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_between_a_key_and_its_successor() {
        for key in [&b""[..], b"k", b"k\0", b"k\xff"] {
            let above = successor(key);
            assert!(key < &above[..]);
            for other in [&[0][..], &[1], &[255], &[0, 0]] {
                assert!([key, other].concat() >= above);
            }
        }
    }

    #[test]
    fn a_range_is_empty_if_no_key_can_be_in_it() {
        let range = |low: Option<&'static str>, high: Option<&'static str>| KeyRange {
            low: low.map(str::as_bytes),
            high: high.map(str::as_bytes),
        };
        for empty in [
            range(Some("b"), Some("b")),
            range(Some("b"), Some("a")),
            range(Some(""), Some("")),
            range(None, Some("")),
        ] {
            assert!(empty.is_empty(), "{empty:?}");
        }
        for not_empty in [
            range(None, None),
            range(Some("b"), None),
            range(None, Some("a")),
            range(Some("b"), Some("b\0")),
        ] {
            assert!(!not_empty.is_empty(), "{not_empty:?}");
        }
    }
}
