//! Values of what can be serialised.

use super::{AsValue, Value, ValueBytes};
use ::serde::Serialize;
use ::serde::de::DeserializeOwned;

/// A value that `serde` turns into bytes and back, in the format
/// [postcard](https://postcard.jamesmunns.com).
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
/// # Panics
/// A function that is given a value panics if it cannot be serialised, such as an iterator that
/// does not tell its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serde<T>(pub T);

impl<T: Serialize> AsValue<Serde<T>> for Serde<T> {
    fn encode(&self, bytes: &mut ValueBytes) {
        /// Bytes by reference: postcard gives back what it is given to write to.
        struct To<'a>(&'a mut ValueBytes);

        impl Extend<u8> for To<'_> {
            fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
                self.0.extend(bytes);
            }
        }

        if let Err(error) = postcard::to_extend(&self.0, To(bytes)) {
            panic!("the value cannot be serialised: {error}");
        }
    }
}

impl<T: Serialize + DeserializeOwned> Value for Serde<T> {
    fn decode(bytes: &[u8]) -> Option<Self> {
        match postcard::take_from_bytes(bytes) {
            Ok((value, [])) => Some(Serde(value)),
            _ => None,
        }
    }
}
