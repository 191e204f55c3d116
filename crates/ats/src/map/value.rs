//! Values of typed maps as bytes.
//!
//! | value | bytes |
//! |---|---|
//! | integers, floats, `char` | least significant byte first; `usize` as `u64`, `isize` as `i64` |
//! | `bool` | 0, 1 |
//! | `String`, `Vec<u8>` | the bytes |
//! | `Vec<T>` and other collections | the number of values, in four bytes, and the values; a 0 for a value without bytes |
//! | `Option<T>` | nothing; or a 1 and the bytes of the value |
//! | tuples, arrays | the parts, concatenated |
//! | `Box<T>`, `Arc<T>`, `Cow<T>` | the bytes of the value |
//! | `Duration` | the seconds as `u64`, the nanoseconds as `u32` |
//! | `SystemTime` | the same since the beginning of 1970, with the seconds as `i64` |
//! | `Uuid` | the bytes |
//! | `DateTime<Utc>` | the seconds since the beginning of 1970 as `i64`, the nanoseconds as `u32` |
//! | `PhantomData<T>`, `()` | none |
//!
//! A part of a type whose values differ in length is preceded by its length, in four bytes.

mod collections;
mod parts;
mod plain;
#[cfg(feature = "serde")]
mod serde;
mod times;

#[cfg(feature = "serde")]
pub use serde::Serde;

use smallvec::SmallVec;
use std::any::type_name;
use std::fmt;

/// Bytes of a value that need no separate block of memory.
const INLINE: usize = 64;

/// A type of the values of a map, which stores them as bytes and so returns copies.
///
/// Numbers, texts, bytes, times, options, tuples, arrays, and the collections and pointers of the
/// standard library are values, and of the features `uuid` and `chrono` `Uuid` and `DateTime<Utc>`.
/// `#[derive(Value)]`, of the feature `derive`, makes values of structs and enums. With the feature
/// `serde`, `Serde<T>` makes a value of any type that can be serialised.
///
/// ```
/// use ats::{HashMap, Value};
///
/// #[derive(Debug, PartialEq, Value)]
/// struct User {
///     name: String,
///     logins: u32,
/// }
///
/// let users = HashMap::new();
/// users.insert(7_u64, User { name: "ann".into(), logins: 1 });
/// users.update(7_u64, |user: User| User { logins: user.logins + 1, ..user });
/// assert_eq!(users.get(7_u64), Some(User { name: "ann".into(), logins: 2 }));
/// ```
///
/// A manual implementation must decode the bytes that it has written. A map decodes the bytes of a
/// value before it stores them, and refuses bytes that cannot be decoded: a map in memory panics, a
/// `DiskMap` returns an error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value of a map",
    note = "`#[derive(ats::Value)]`, of the feature `derive`, makes values of structs and enums",
    note = "`ats::Serde<{Self}>`, of the feature `serde`, is a value of whatever `serde` supports"
)]
pub trait Value: AsValue<Self> + Sized {
    /// The number of bytes of a value, if it is the same for all values of the type. A map needs
    /// less memory then.
    const LEN: Option<usize> = None;

    /// Decodes a value from all of its bytes. Returns `None` if the bytes are not those of a value.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// Appends the bytes of a sequence of values. They depend on this type only, not on the type
    /// that stands for the values.
    #[doc(hidden)]
    fn encode_all<W: AsValue<Self>>(values: &[W], bytes: &mut ValueBytes) {
        bytes.push_sequence::<Self, _>(values.iter());
    }

    /// Decodes a sequence of values: the reverse of [`encode_all`](Value::encode_all).
    #[doc(hidden)]
    fn decode_all(bytes: &[u8]) -> Option<Vec<Self>> {
        take_sequence(bytes)
    }
}

/// A value that stands for a value of type `V`, because it has the same bytes: `&str` for a
/// `String`, and a reference for its target.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not stand for a value of type `{V}`",
    note = "a `{V}` does, a reference to it, and what has the same bytes, as `&str` for `String`",
    note = "`#[derive(ats::Value)]`, of the feature `derive`, makes values of structs and enums",
    note = "`ats::Serde`, of the feature `serde`, makes values of whatever `serde` supports"
)]
pub trait AsValue<V> {
    /// Appends the bytes of the value.
    fn encode(&self, bytes: &mut ValueBytes);

    /// Returns the bytes of the value as a word, padded with zeros, if [`Value::LEN`] is known and
    /// at most that of a word.
    #[doc(hidden)]
    #[inline]
    fn as_word(&self) -> Option<u64> {
        None
    }

    /// Returns the bytes of a sequence of values without encoding them, if each value is one byte.
    #[doc(hidden)]
    fn as_bytes(_values: &[Self]) -> Option<&[u8]>
    where
        Self: Sized,
    {
        None
    }

    /// Returns `true` if only code of this crate makes the bytes. A map checks all other bytes
    /// before it stores them.
    #[doc(hidden)]
    fn is_proven(&self) -> bool {
        false
    }
}

impl<V, W: AsValue<V> + ?Sized> AsValue<V> for &W {
    #[inline]
    fn encode(&self, bytes: &mut ValueBytes) {
        (**self).encode(bytes);
    }

    #[inline]
    fn as_word(&self) -> Option<u64> {
        (**self).as_word()
    }

    fn is_proven(&self) -> bool {
        (**self).is_proven()
    }
}

/// The bytes of a value, to which its parts are appended: see [`AsValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueBytes {
    bytes: SmallVec<[u8; INLINE]>,
    refused: Option<Box<str>>,
}

impl ValueBytes {
    /// Appends bytes.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a value so that [`take_part`] finds its end.
    ///
    /// # Panics
    /// If the value has 4 GiB or more.
    pub fn push_part<V: Value>(&mut self, part: &impl AsValue<V>) {
        if V::LEN.is_some() {
            return part.encode(self);
        }
        let at = self.bytes.len();
        self.push(&[0; LENGTH]);
        part.encode(self);
        let len = self.bytes.len() - at - LENGTH;
        let len = u32::try_from(len).expect("a part has less than 4 GiB");
        self.bytes[at..at + LENGTH].copy_from_slice(&len.to_le_bytes());
    }

    /// Appends the number of some values, and the values as parts.
    ///
    /// # Panics
    /// If there are 2^32 values or more.
    fn push_sequence<V: Value, W: AsValue<V>>(&mut self, values: impl ExactSizeIterator<Item = W>) {
        let number = u32::try_from(values.len()).expect("a value has less than 2^32 parts");
        self.push(&number.to_le_bytes());
        for value in values {
            self.push_part::<V>(&value);
            self.push(mark::<V>());
        }
    }

    /// Refuses the value, because it has no encoding. A map in memory that gets the value panics,
    /// and a map on disk returns an error, with the first of these reasons.
    #[cold]
    pub fn refuse(&mut self, why: impl fmt::Display) {
        self.refused
            .get_or_insert_with(|| why.to_string().into_boxed_str());
    }

    /// Returns the reason for which the value was refused, if it was.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }
}

impl Extend<u8> for ValueBytes {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        self.bytes.extend(bytes);
    }
}

/// Number of bytes of the length of a part.
const LENGTH: usize = size_of::<u32>();

/// Takes a value that was [pushed](ValueBytes::push_part) as a part off the beginning of `bytes`.
pub fn take_part<V: Value>(bytes: &mut &[u8]) -> Option<V> {
    let len = match V::LEN {
        Some(len) => len,
        None => {
            let (len, rest) = bytes.split_first_chunk::<LENGTH>()?;
            *bytes = rest;
            u32::from_le_bytes(*len).try_into().ok()?
        }
    };
    let (part, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    V::decode(part)
}

/// Returns the bytes behind a value of a sequence: one if the value has none itself, so that a
/// damaged number is no list that takes for ever to read.
fn mark<V: Value>() -> &'static [u8] {
    match V::LEN {
        Some(0) => &[0],
        _ => &[],
    }
}

/// Takes values that were [pushed](ValueBytes::push_sequence) as a sequence, which are all of the
/// bytes.
fn take_sequence<V: Value, C: FromIterator<V>>(mut bytes: &[u8]) -> Option<C> {
    let (number, parts) = bytes.split_first_chunk::<LENGTH>()?;
    bytes = parts;
    let values = (0..u32::from_le_bytes(*number)).map(|_| {
        let value = take_part(&mut bytes)?;
        bytes = bytes.strip_prefix(mark::<V>())?;
        Some(value)
    });
    let values: Option<C> = values.collect();
    values.filter(|_| bytes.is_empty())
}

/// Returns the sum of the lengths of parts, if all are known.
#[doc(hidden)]
#[must_use]
pub const fn sum_of_lengths(lens: &[Option<usize>]) -> Option<usize> {
    let (mut sum, mut at) = (0, 0);
    while at < lens.len() {
        match lens[at] {
            Some(len) => sum += len,
            None => return None,
        }
        at += 1;
    }
    Some(sum)
}

/// Returns the bytes of a value to store, or the reason to refuse it.
#[inline]
pub(crate) fn bytes_of<V: Value>(value: &impl AsValue<V>) -> Result<ValueBytes, String> {
    let mut bytes = ValueBytes::default();
    value.encode(&mut bytes);
    if let Some(why) = bytes.refused.take() {
        return Err(why.into());
    }
    let len = bytes.bytes.len();
    if V::LEN.is_some_and(|known| known != len) {
        let name = type_name::<V>();
        return Err(format!(
            "a value of type `{name}` has {len} bytes, unlike all others"
        ));
    }
    if !value.is_proven() && V::decode(&bytes.bytes).is_none() {
        let name = type_name::<V>();
        return Err(format!("the bytes of a value are not read as `{name}`"));
    }
    Ok(bytes)
}
