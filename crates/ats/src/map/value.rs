//! Values of typed maps as bytes.
//!
//! | value | bytes |
//! |---|---|
//! | integers, floats, `char` | least significant byte first; `usize` as `u64`, `isize` as `i64` |
//! | `bool` | 0, 1 |
//! | `String`, `Vec<u8>` | the bytes |
//! | `Option<T>` | nothing; or a 1 and the bytes of the value |
//! | tuples, arrays | the parts, one behind the other |
//!
//! A part of a type whose values differ in length stands behind its own length, which has four
//! bytes.

mod parts;
mod plain;
#[cfg(feature = "serde")]
mod serde;

#[cfg(feature = "serde")]
pub use serde::Serde;

use smallvec::SmallVec;

/// Bytes of a value that fit without a block of memory of their own.
const INLINE: usize = 64;

/// A type whose values are values of a map, which keeps them as bytes and so gives copies of them.
///
/// Numbers, texts, bytes, options, tuples and arrays are values. `#[derive(Value)]`, of the feature
/// `derive`, makes values of structs and enums. With the feature `serde`, `Serde<T>` makes a value
/// of whatever can be serialised.
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
/// An implementation that reads something else than it has written gives wrong answers, or panics,
/// and nothing worse.
pub trait Value: AsValue<Self> + Sized {
    /// The number of bytes that every value of the type has, if it is the same for all. A map needs
    /// less memory then.
    const LEN: Option<usize> = None;

    /// Reads a value, of which these are all bytes. `None` if they are not those of a value.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// A value that stands for one of type `V`, since it has the same bytes: `&str` for a `String`, and
/// a reference for what it leads to.
pub trait AsValue<V> {
    /// Appends the bytes of the value.
    fn encode(&self, bytes: &mut ValueBytes);
}

impl<V, W: AsValue<V> + ?Sized> AsValue<V> for &W {
    #[inline]
    fn encode(&self, bytes: &mut ValueBytes) {
        (**self).encode(bytes);
    }
}

/// The bytes of a value, to which its parts are appended: see [`AsValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueBytes(SmallVec<[u8; INLINE]>);

impl ValueBytes {
    /// Appends bytes.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends a value so that [`take_part`] finds its end.
    ///
    /// # Panics
    /// If it has 4 GiB.
    pub fn push_part<V: Value>(&mut self, part: &impl AsValue<V>) {
        if V::LEN.is_some() {
            return part.encode(self);
        }
        let at = self.0.len();
        self.push(&[0; LENGTH]);
        part.encode(self);
        let len = u32::try_from(self.0.len() - at - LENGTH).expect("a part has less than 4 GiB");
        self.0[at..at + LENGTH].copy_from_slice(&len.to_le_bytes());
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl Extend<u8> for ValueBytes {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        self.0.extend(bytes);
    }
}

/// Bytes of the length of a part.
const LENGTH: usize = size_of::<u32>();

/// Takes a value that was [pushed](ValueBytes::push_part) as a part from the beginning of bytes.
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

/// Sum of the lengths of parts, if all are known.
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

/// The bytes of a value.
///
/// # Panics
/// If it has another length than its type says.
pub(crate) fn bytes_of<V: Value>(value: &impl AsValue<V>) -> ValueBytes {
    let mut bytes = ValueBytes::default();
    value.encode(&mut bytes);
    if let Some(len) = V::LEN {
        assert_eq!(
            bytes.0.len(),
            len,
            "all values of the type have this length"
        );
    }
    bytes
}
