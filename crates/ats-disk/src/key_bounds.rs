//! Ranges of keys in the forms in which programs write them.

use ats_store::{KeyRange, successor};
use std::borrow::Cow;
use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

/// A range of keys: `..`, `low..high`, `low..=high`, `low..`, `..high`, `..=high`, two [`Bound`]s,
/// or a [`KeyRange`]. A bound is any value that lends bytes, such as `&[u8]`, `[u8; 4]`, `Vec<u8>`
/// or `&str`.
///
/// The trait is like [`RangeBounds`], but `..` needs no type of keys. A range whose end is below
/// its start has no keys.
///
/// ```
/// # use ats_disk::{DiskStore, Options};
/// # let directory = std::env::temp_dir().join(format!("ats-disk-bounds-{}", std::process::id()));
/// # let store = DiskStore::open(&directory, Options::new())?;
/// for key in ["apple", "pear", "plum"] {
///     store.put(key.as_bytes(), b"value")?;
/// }
/// assert_eq!(store.scan(..).count(), 3);
/// assert_eq!(store.scan("b".."plum").count(), 1);
/// assert_eq!(store.scan(b"b"..=b"q").count(), 2);
/// assert_eq!(store.scan(vec![b'p', b'l']..).count(), 1);
/// # drop(store);
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), ats_disk::Error>(())
/// ```
pub trait KeyBounds {
    /// Returns the lower bound and the upper bound.
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl KeyBounds for RangeFull {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl KeyBounds for KeyRange<'_> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (
            self.low.map_or(Bound::Unbounded, Bound::Included),
            self.high.map_or(Bound::Unbounded, Bound::Excluded),
        )
    }
}

impl<B: KeyBounds + ?Sized> KeyBounds for &B {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (**self).bounds()
    }
}

macro_rules! ranges {
    ($($range:ty),*) => {$(
        impl<K: AsRef<[u8]>> KeyBounds for $range {
            fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
                (self.start_bound().map(AsRef::as_ref), self.end_bound().map(AsRef::as_ref))
            }
        }
    )*};
}

ranges!(
    Range<K>,
    RangeInclusive<K>,
    RangeFrom<K>,
    RangeTo<K>,
    RangeToInclusive<K>,
    (Bound<K>, Bound<K>)
);

/// A range with the bounds of a [`KeyRange`]. It owns a bound only if that had to be made.
pub(crate) struct HalfOpen<'b> {
    low: Option<Cow<'b, [u8]>>,
    high: Option<Cow<'b, [u8]>>,
}

impl<'b> HalfOpen<'b> {
    pub(crate) fn new(key_bounds: &'b impl KeyBounds) -> Self {
        let above = |key: &[u8]| Some(Cow::Owned(successor(key)));
        let (low, high) = key_bounds.bounds();
        HalfOpen {
            low: match low {
                Bound::Unbounded => None,
                Bound::Included(key) => Some(Cow::Borrowed(key)),
                Bound::Excluded(key) => above(key),
            },
            high: match high {
                Bound::Unbounded => None,
                Bound::Included(key) => above(key),
                Bound::Excluded(key) => Some(Cow::Borrowed(key)),
            },
        }
    }

    pub(crate) fn as_range(&self) -> KeyRange<'_> {
        KeyRange {
            low: self.low.as_deref(),
            high: self.high.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_range_has_its_keys() {
        fn keys(key_bounds: impl KeyBounds) -> Vec<&'static str> {
            let range = HalfOpen::new(&key_bounds);
            let mut keys = vec!["", "a", "b", "b\0", "c"];
            keys.retain(|key| range.as_range().has(key.as_bytes()));
            keys
        }

        assert_eq!(keys(..), ["", "a", "b", "b\0", "c"]);
        assert_eq!(keys("a".."b"), ["a"]);
        assert_eq!(keys(b"a"..=b"b"), ["a", "b"]);
        assert_eq!(keys(vec![b'b']..), ["b", "b\0", "c"]);
        assert_eq!(keys(..[b'b']), ["", "a"]);
        assert_eq!(keys(..=&b"b"[..]), ["", "a", "b"]);
        assert_eq!(
            keys((Bound::Excluded("b"), Bound::Included("c"))),
            ["b\0", "c"]
        );
        assert_eq!(keys("c".."a"), [""; 0]);
        let half_open = KeyRange {
            low: None,
            high: Some(b"b"),
        };
        assert_eq!(keys(half_open), ["", "a"]);
        let range = "a".."b";
        assert_eq!(keys(&range), keys(range.clone()));
    }
}
