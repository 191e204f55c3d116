//! Ranges of keys: the bounds that callers give, as bytes.

use super::key::{AsKey, KeyBytes, bytes_of};
use ats_store::KeyRange;
use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys of type `K`: `..`, `low..high`, `low..=high`, `low..`, `..high`, `..=high`, or
/// two [`Bound`]s. The bounds are values that [stand for](AsKey) keys.
///
/// The trait is like [`RangeBounds`](std::ops::RangeBounds), but its bounds need not be keys. A
/// type with that trait can pass its bounds as `(range.start_bound(), range.end_bound())`. A range
/// whose end is below its start has no keys.
///
/// ```
/// use ats::OrderedMap;
///
/// let map: OrderedMap<String, u32> = OrderedMap::new();
/// for (name, price) in [("apple", 30), ("pear", 40), ("plum", 50)] {
///     map.insert(name, price);
/// }
/// assert_eq!(map.range("b".."pear").count(), 0);
/// assert_eq!(map.range("b"..="pear").count(), 1);
/// assert_eq!(map.range(..).count(), 3);
/// ```
pub trait KeyBounds<K> {
    /// Returns the range as bytes.
    fn to_bytes(&self) -> ByteBounds;
}

/// The bounds of a range, as bytes of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteBounds {
    pub(super) low: Option<KeyBytes>,
    pub(super) high: Option<KeyBytes>,
}

impl ByteBounds {
    /// Encodes the bounds of a range of keys.
    #[must_use]
    pub fn new<K>(low: Bound<&impl AsKey<K>>, high: Bound<&impl AsKey<K>>) -> Self {
        ByteBounds {
            low: match low {
                Bound::Unbounded => None,
                Bound::Included(key) => Some(bytes_of(key)),
                Bound::Excluded(key) => Some(above(key)),
            },
            high: match high {
                Bound::Unbounded => None,
                Bound::Included(key) => Some(above(key)),
                Bound::Excluded(key) => Some(bytes_of(key)),
            },
        }
    }

    pub(super) fn as_range(&self) -> KeyRange<'_> {
        KeyRange {
            low: self.low.as_ref().map(KeyBytes::as_slice),
            high: self.high.as_ref().map(KeyBytes::as_slice),
        }
    }
}

/// Returns the least bytes above the bytes of a key.
fn above<K>(key: &impl AsKey<K>) -> KeyBytes {
    let mut bytes = bytes_of(key);
    bytes.push(&[0]);
    bytes
}

impl<K> KeyBounds<K> for RangeFull {
    fn to_bytes(&self) -> ByteBounds {
        ByteBounds::default()
    }
}

macro_rules! ranges {
    ($($range:ty, $it:ident => $low:expr, $high:expr;)*) => {$(
        impl<K, Q: AsKey<K>> KeyBounds<K> for $range {
            fn to_bytes(&self) -> ByteBounds {
                let $it = self;
                let (low, high): (Bound<&Q>, Bound<&Q>) = ($low, $high);
                ByteBounds::new(low, high)
            }
        }
    )*};
}

ranges! {
    Range<Q>, it => Bound::Included(&it.start), Bound::Excluded(&it.end);
    RangeInclusive<Q>, it => Bound::Included(it.start()), Bound::Included(it.end());
    RangeFrom<Q>, it => Bound::Included(&it.start), Bound::Unbounded;
    RangeTo<Q>, it => Bound::Unbounded, Bound::Excluded(&it.end);
    RangeToInclusive<Q>, it => Bound::Unbounded, Bound::Included(&it.end);
}

impl<K, Q: AsKey<K>, R: AsKey<K>> KeyBounds<K> for (Bound<Q>, Bound<R>) {
    fn to_bytes(&self) -> ByteBounds {
        ByteBounds::new(self.0.as_ref(), self.1.as_ref())
    }
}

impl<K, B: KeyBounds<K> + ?Sized> KeyBounds<K> for &B {
    fn to_bytes(&self) -> ByteBounds {
        (**self).to_bytes()
    }
}

/// A common prefix of keys of type `K`, which are neighbours: the first parts of a tuple, or the
/// first bytes of a text.
///
/// ```
/// use ats::OrderedMap;
///
/// let degrees: OrderedMap<(String, i64), i32> = OrderedMap::new();
/// for (key, value) in [(("bergen", 1), 8), (("oslo", 1), 3), (("oslo", 2), 4)] {
///     degrees.insert(key, value);
/// }
/// let oslo: Vec<i32> = degrees.prefix(("oslo",)).map(|(_, value)| value).collect();
/// assert_eq!(oslo, [3, 4]);
///
/// let prices: OrderedMap<String, u32> = OrderedMap::new();
/// prices.insert("pear", 40);
/// prices.insert("plum", 50);
/// assert_eq!(prices.prefix("pe").count(), 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no prefix of keys of type `{K}`",
    note = "a prefix of a key of parts is a tuple of its first parts, as `(first,)`",
    note = "a prefix of a `String` is a text, and one of a `Vec<u8>` is a slice of bytes"
)]
pub trait KeyPrefix<K> {
    /// Appends the bytes of the prefix.
    fn encode_prefix(&self, bytes: &mut KeyBytes);
}

/// Returns the range of the keys that begin with a prefix.
pub(super) fn of_prefix<K>(prefix: &impl KeyPrefix<K>) -> ByteBounds {
    let mut low = KeyBytes::default();
    prefix.encode_prefix(&mut low);
    let mut high = low.clone();
    let is_bounded = high.step_over();
    ByteBounds {
        low: Some(low),
        high: is_bounded.then_some(high),
    }
}

impl<K, P: KeyPrefix<K> + ?Sized> KeyPrefix<K> for &P {
    fn encode_prefix(&self, bytes: &mut KeyBytes) {
        (**self).encode_prefix(bytes);
    }
}

macro_rules! texts {
    ($($text:ty, $key:ty;)*) => {$(
        impl KeyPrefix<$key> for $text {
            fn encode_prefix(&self, bytes: &mut KeyBytes) {
                bytes.push_beginning(self.as_ref());
            }
        }
    )*};
}

texts! {
    str, String;
    String, String;
    [u8], Vec<u8>;
    Vec<u8>, Vec<u8>;
}

impl<const N: usize> KeyPrefix<Vec<u8>> for [u8; N] {
    fn encode_prefix(&self, bytes: &mut KeyBytes) {
        bytes.push_beginning(self);
    }
}

macro_rules! tuples {
    ($(($($part:ident $key:ident $at:tt),*) $($rest:ident)*;)*) => {$(
        impl<$($key, $part: AsKey<$key>,)* $($rest),*> KeyPrefix<($($key,)* $($rest),*)>
            for ($($part,)*)
        {
            fn encode_prefix(&self, bytes: &mut KeyBytes) {
                $(self.$at.encode(bytes);)*
            }
        }
    )*};
}

tuples! {
    (A K 0) L;
    (A K 0) L M;
    (A K 0) L M N;
    (A K 0) L M N O;
    (A K 0) L M N O P;
    (A K 0, B L 1) M;
    (A K 0, B L 1) M N;
    (A K 0, B L 1) M N O;
    (A K 0, B L 1) M N O P;
    (A K 0, B L 1, C M 2) N;
    (A K 0, B L 1, C M 2) N O;
    (A K 0, B L 1, C M 2) N O P;
    (A K 0, B L 1, C M 2, D N 3) O;
    (A K 0, B L 1, C M 2, D N 3) O P;
    (A K 0, B L 1, C M 2, D N 3, E O 4) P;
}
