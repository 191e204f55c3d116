//! Values of types that `serde` can serialise.

mod error;
mod read;
mod tags;
mod write;

use super::{AsValue, Value, ValueBytes};
use ::serde::Serialize;
use ::serde::de::DeserializeOwned;
use error::Error;
use std::any::type_name;
use write::Writer;

/// A value that `serde` turns into bytes and back.
///
/// The bytes describe themselves: fields and variants have their names, so all attributes of
/// `serde` can be used, and a field with a default can be added to a type whose values are on disk.
/// The format counts as human-readable, since `serde` itself makes that choice when it reads a type
/// inside an enum that is not externally tagged.
///
/// ```
/// use ats::{OrderedMap, Serde};
/// use std::collections::BTreeSet;
///
/// let tags: OrderedMap<String, Serde<BTreeSet<String>>> = OrderedMap::new();
/// tags.insert("pear", Serde(BTreeSet::from(["fruit".into(), "green".into()])));
/// assert_eq!(tags.get("pear").map(|Serde(tags)| tags.len()), Some(2));
/// ```
///
/// # Refused values
/// A map reads a value back before it stores it. It refuses the value if that fails, or if the
/// value that was read has other bytes: a variant with `skip_deserializing`, a field with
/// `skip_serializing` and without a default, an untagged variant that an earlier one hides. It also
/// refuses values that are nested more than 128 times.
///
/// Parts that a type does not write cannot be compared: a field with `skip` gets its default, the
/// first of several untagged variants with the same fields is read, and a flattened `None` may be
/// read as an empty value.
///
/// A map in memory panics, and a `DiskMap` returns an error; both name the type and the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serde<T>(pub T);

/// Appends the bytes of a value, and checks that it can be read back.
fn write<T: Serialize + DeserializeOwned>(value: &T, bytes: &mut ValueBytes) -> Result<(), Error> {
    let from = bytes.bytes.len();
    value.serialize(&mut Writer::new(bytes))?;
    let written = &bytes.bytes[from..];
    let same: T = read::read(written)?;
    let mut again = ValueBytes::default();
    same.serialize(&mut Writer::new(&mut again))?;
    if is_permuted(written, &again.bytes) {
        Ok(())
    } else {
        Err(Error("another value was read".into()))
    }
}

/// Returns `true` if the bytes are the same in some order, because a set may be read in another
/// order.
fn is_permuted(one: &[u8], other: &[u8]) -> bool {
    let counts = |bytes: &[u8]| {
        let mut counts = [0_u64; 256];
        for byte in bytes {
            counts[usize::from(*byte)] += 1;
        }
        counts
    };
    one == other || (one.len() == other.len() && counts(one) == counts(other))
}

impl<T: Serialize + DeserializeOwned> AsValue<Serde<T>> for Serde<T> {
    fn encode(&self, bytes: &mut ValueBytes) {
        if let Err(error) = write(&self.0, bytes) {
            let name = type_name::<T>();
            bytes.refuse(format_args!(
                "`{name}` is not read as it is written: {error}"
            ));
        }
    }

    fn is_proven(&self) -> bool {
        true
    }
}

impl<T: Serialize + DeserializeOwned> Value for Serde<T> {
    fn decode(bytes: &[u8]) -> Option<Self> {
        read::read(bytes).ok().map(Serde)
    }
}
