//! Keys of typed maps as bytes: memcomparable, which is to say that their order as bytes is the
//! order of the keys.
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
//! | tuples, arrays | the parts, one behind the other |
//! | `Reverse<T>` | those of the value, inverted |
//!
//! No encoding of a type is the beginning of another one of it, so a part tells where it ends, and
//! keys of several parts have the order of the parts.

mod bytes;
mod numbers;
mod parts;
mod text;

pub use bytes::{KeyBytes, KeyReader};
use bytes::{NONE, SOME};

/// A type whose values are keys of a map.
///
/// The order of the encodings is the order of the keys in an [`OrderedMap`](crate::OrderedMap), and
/// two keys are the same if their encodings are. The implementations of this crate have the order
/// of [`Ord`]. Floats have that of [`total_cmp`](f64::total_cmp): `-0.0` is below `0.0` and another
/// key, and each NaN is a key.
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
/// By hand, a type implements both traits by the parts that it is made of:
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
/// An implementation that breaks these rules gives wrong answers, or panics, and nothing worse.
pub trait Key: AsKey<Self> + Sized {
    /// Reads a key from its bytes, and goes behind it. `None` if they are not those of a key.
    fn decode(reader: &mut KeyReader<'_>) -> Option<Self>;

    /// Reads a sequence of keys: the reverse of [`encode_all`](AsKey::encode_all).
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

/// A value that stands for a key of type `K`, since it has the same bytes: what a map can be asked
/// for. `&str` for a `String`, `(&str, i64)` for a `(String, i64)`, and a reference for what it
/// leads to.
///
/// ```
/// use ats::OrderedMap;
///
/// let map: OrderedMap<(String, i64), u32> = OrderedMap::new();
/// map.insert(("oslo", 1), 7);
/// assert_eq!(map.get(("oslo", 1)), Some(7));
/// assert_eq!(map.get(&(String::from("oslo"), 1)), Some(7));
/// ```
pub trait AsKey<K> {
    /// Appends the bytes of the key.
    fn encode(&self, bytes: &mut KeyBytes);

    /// Appends the bytes of a sequence of keys. A type may have better ones than the usual.
    #[doc(hidden)]
    fn encode_all(values: &[Self], bytes: &mut KeyBytes)
    where
        Self: Sized,
    {
        for value in values {
            bytes.push(&[SOME]);
            value.encode(bytes);
        }
        bytes.push(&[NONE]);
    }
}

impl<K, Q: AsKey<K> + ?Sized> AsKey<K> for &Q {
    fn encode(&self, bytes: &mut KeyBytes) {
        (**self).encode(bytes);
    }
}

/// The bytes of a key.
pub(crate) fn bytes_of<K>(key: &impl AsKey<K>) -> KeyBytes {
    let mut bytes = KeyBytes::default();
    key.encode(&mut bytes);
    bytes
}

/// The key with these bytes, if they are those of a key.
pub(crate) fn from_bytes<K: Key>(bytes: &[u8]) -> Option<K> {
    let mut reader = KeyReader::new(bytes);
    let key = K::decode(&mut reader)?;
    reader.is_at_end().then_some(key)
}
