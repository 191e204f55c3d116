//! Keys of typed maps as bytes. The encoding is memcomparable: the order of the bytes is the order
//! of the keys.
//!
//! | key | bytes |
//! |---|---|
//! | `u8` ... `u128`, `usize`, `char` | most significant byte first; `usize` as `u64` |
//! | `i8` ... `i128`, `isize` | the same, with the sign bit inverted; `isize` as `i64` |
//! | `f32`, `f64` | the bits; all inverted if the number is negative, else the sign bit alone |
//! | `bool` | 0, 1 |
//! | `String`, `Vec<u8>` | the bytes, with 0 as 1 1 and 1 as 1 2; then 0 |
//! | `Vec<T>` | a 1 and the bytes of each element; then 0 |
//! | `Option<T>` | 0; or a 1 and the bytes of the value |
//! | tuples, arrays | the bytes of the parts, concatenated |
//! | `Reverse<T>` | the bytes of the value, inverted |
//! | `Box<T>` | the bytes of the value |
//! | `PhantomData<T>`, `()` | none |
//!
//! No encoding of a value is a prefix of the encoding of another value of the same type. So the end
//! of a part is known, and keys of several parts have the order of the parts.

mod bytes;
mod numbers;
mod parts;
mod text;

use ats_mem::ShortKey;
pub use bytes::{KeyBytes, KeyReader};
use bytes::{NONE, SOME};
use std::any::type_name;

/// A type whose values are keys of a map.
///
/// The order of the encodings is the order of the keys in an [`OrderedMap`](crate::OrderedMap), and
/// two keys are equal if their encodings are equal. The implementations of this crate have the
/// order of [`Ord`]. Floats have the order of [`total_cmp`](f64::total_cmp): `-0.0` is a different
/// key below `0.0`, and each NaN is a key.
///
/// `#[derive(Key)]`, of the feature `derive`, makes keys of structs, with the order of their
/// fields, and of enums, with the order of their variants:
///
/// ```
/// use ats::{Key, OrderedMap};
///
/// #[derive(Clone, Debug, PartialEq, Key)]
/// struct Reading {
///     station: String,
///     day: i64,
/// }
///
/// let degrees = OrderedMap::new();
/// let key = |day| Reading { station: "oslo".into(), day };
/// degrees.insert(key(2), 7);
/// degrees.insert(key(-1), 3);
/// assert_eq!(degrees.first(), Some((key(-1), 3)));
/// ```
///
/// A manual implementation of both traits encodes the parts of a type:
///
/// ```
/// use ats::{AsKey, Key, KeyBytes, KeyReader, OrderedMap};
///
/// struct Version(u16, u16);
///
/// impl AsKey<Version> for Version {
///     fn encode(&self, bytes: &mut KeyBytes) {
///         (self.0, self.1).encode(bytes);
///     }
/// }
///
/// impl Key for Version {
///     fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
///         let (major, minor) = Key::decode(reader)?;
///         Some(Version(major, minor))
///     }
/// }
///
/// let names = OrderedMap::from_iter([(Version(1, 10), "ten"), (Version(1, 9), "nine")]
///     .map(|(version, name)| (version, String::from(name))));
/// assert_eq!(names.first().map(|(_, name)| name).as_deref(), Some("nine"));
/// ```
///
/// A manual implementation that breaks these rules gives wrong results. A map decodes the bytes of
/// a key before it stores them, and refuses bytes that are not decoded to the same key: a map in
/// memory panics, a `DiskMap` returns an error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key of a map",
    note = "`#[derive(ats::Key)]`, of the feature `derive`, makes keys of structs and enums",
    note = "for a type of another crate, derive it for a struct that holds the parts"
)]
pub trait Key: AsKey<Self> + Sized {
    /// Decodes a key, and advances the reader behind it. Returns `None` if the bytes are not those
    /// of a key.
    fn decode(reader: &mut KeyReader<'_>) -> Option<Self>;

    /// Appends the bytes of a sequence of keys. They depend on this type only, not on the type that
    /// stands for the keys. A type may override this with a better encoding.
    #[doc(hidden)]
    fn encode_all<Q: AsKey<Self>>(keys: &[Q], bytes: &mut KeyBytes) {
        for key in keys {
            bytes.push(&[SOME]);
            key.encode(bytes);
        }
        bytes.push(&[NONE]);
    }

    /// Decodes a sequence of keys: the reverse of [`encode_all`](Key::encode_all).
    #[doc(hidden)]
    fn decode_all(reader: &mut KeyReader<'_>) -> Option<Vec<Self>> {
        let mut keys = Vec::new();
        loop {
            match reader.take()? {
                [NONE] => return Some(keys),
                [SOME] => keys.push(Self::decode(reader)?),
                _ => return None,
            }
        }
    }
}

/// A value that stands for a key of type `K`, because it has the same bytes. The functions of maps
/// accept it as a key: `&str` for a `String`, `(&str, i64)` for a `(String, i64)`, and a reference
/// for its target.
///
/// ```
/// use ats::OrderedMap;
///
/// let map: OrderedMap<(String, i64), u32> = OrderedMap::new();
/// map.insert(("oslo", 1), 7);
/// assert_eq!(map.get(("oslo", 1)), Some(7));
/// assert_eq!(map.get(&(String::from("oslo"), 1)), Some(7));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not stand for a key of type `{K}`",
    note = "a `{K}` does, a reference to it, and what has the same bytes, as `&str` for `String`",
    note = "`#[derive(ats::Key)]`, of the feature `derive`, makes keys of structs and enums"
)]
pub trait AsKey<K> {
    /// Appends the bytes of the key.
    fn encode(&self, bytes: &mut KeyBytes);

    /// Returns the bytes of the key as words, if the type has them without encoding the key. Their
    /// number is known to the compiler then, so that the key is hashed, compared and copied as
    /// words.
    #[doc(hidden)]
    #[inline]
    fn as_words(&self) -> Option<ShortKey> {
        None
    }

    /// Returns the bytes of a sequence of keys without encoding them, if each key is one byte.
    #[doc(hidden)]
    fn as_bytes(_keys: &[Self]) -> Option<&[u8]>
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

impl<K, Q: AsKey<K> + ?Sized> AsKey<K> for &Q {
    fn encode(&self, bytes: &mut KeyBytes) {
        (**self).encode(bytes);
    }

    #[inline]
    fn as_words(&self) -> Option<ShortKey> {
        (**self).as_words()
    }

    fn is_proven(&self) -> bool {
        (**self).is_proven()
    }
}

/// Returns the bytes of a key to look up.
pub(crate) fn bytes_of<K>(key: &impl AsKey<K>) -> KeyBytes {
    let mut bytes = KeyBytes::default();
    key.encode(&mut bytes);
    bytes
}

/// Calls a function with the bytes of a key to look up, and returns its result.
#[inline]
pub(crate) fn with_bytes<K, T>(key: &impl AsKey<K>, then: impl FnOnce(&[u8]) -> T) -> T {
    match key.as_words() {
        Some(words) => {
            let (bytes, len) = words.to_bytes();
            then(&bytes[..len])
        }
        None => then(bytes_of(key).as_slice()),
    }
}

/// Returns the bytes of a key to store, or the reason to refuse it.
pub(crate) fn kept_bytes_of<K: Key>(key: &impl AsKey<K>) -> Result<KeyBytes, String> {
    with_kept_bytes(key, |bytes| {
        let mut kept = KeyBytes::default();
        kept.push(bytes);
        kept
    })
}

/// Calls a function with the bytes of a key to store, or returns the reason to refuse the key.
#[inline]
pub(crate) fn with_kept_bytes<K: Key, T>(
    key: &impl AsKey<K>,
    then: impl FnOnce(&[u8]) -> T,
) -> Result<T, String> {
    with_bytes(key, |bytes| {
        let is_read = || {
            let read = from_bytes::<K>(bytes);
            read.is_some_and(|read| bytes_of(&read).as_slice() == bytes)
        };
        if key.is_proven() || is_read() {
            return Ok(then(bytes));
        }
        let (shown, name) = (shown(bytes), type_name::<K>());
        Err(format!("{shown} is not a key of type `{name}`"))
    })
}

/// Formats the first bytes of a key for an error.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 64;
    let (first, more) = match bytes.split_at_checked(MOST) {
        Some((first, [_, ..])) => (first, "..."),
        _ => (bytes, ""),
    };
    format!("\"{}{more}\"", first.escape_ascii())
}

/// Decodes a key, if the bytes are those of a key.
pub(crate) fn from_bytes<K: Key>(bytes: &[u8]) -> Option<K> {
    let mut reader = KeyReader::new(bytes);
    let key = K::decode(&mut reader)?;
    reader.is_at_end().then_some(key)
}
