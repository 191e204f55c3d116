//! Values that are collections of the standard library.

use super::{AsValue, Value, ValueBytes, take_sequence};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};

macro_rules! slices {
    ($($slice:ty),*) => {$(
        impl<V: Value, W: AsValue<V>> AsValue<Vec<V>> for $slice {
            #[inline]
            fn encode(&self, bytes: &mut ValueBytes) {
                V::encode_all(self, bytes);
            }

            fn is_proven(&self) -> bool {
                W::as_bytes(self).is_some() || self.iter().all(W::is_proven)
            }
        }
    )*};
}

slices!([W], Vec<W>);

impl<V: Value, W: AsValue<V>, const N: usize> AsValue<Vec<V>> for [W; N] {
    fn encode(&self, bytes: &mut ValueBytes) {
        V::encode_all(self, bytes);
    }

    fn is_proven(&self) -> bool {
        W::as_bytes(self).is_some() || self.iter().all(W::is_proven)
    }
}

impl<V: Value> Value for Vec<V> {
    #[inline]
    fn decode(bytes: &[u8]) -> Option<Self> {
        V::decode_all(bytes)
    }
}

macro_rules! collections {
    ($(($($bounds:tt)*) $collection:ty, $part:ty, $are_proven:expr;)*) => {$(
        impl<$($bounds)*> AsValue<$collection> for $collection {
            fn encode(&self, bytes: &mut ValueBytes) {
                bytes.push_sequence::<$part, _>(self.iter());
            }

            fn is_proven(&self) -> bool {
                let are_proven: fn(&$collection) -> bool = $are_proven;
                are_proven(self)
            }
        }

        impl<$($bounds)*> Value for $collection {
            fn decode(bytes: &[u8]) -> Option<Self> {
                take_sequence::<$part, _>(bytes)
            }
        }
    )*};
}

collections! {
    (V: Value) VecDeque<V>, V, |all| all.iter().all(V::is_proven);
    (V: Value + Ord) BTreeSet<V>, V, |all| all.iter().all(V::is_proven);
    (V: Value + Eq + Hash, S: BuildHasher + Default) HashSet<V, S>, V,
        |all| all.iter().all(V::is_proven);
    (K: Value + Ord, V: Value) BTreeMap<K, V>, (K, V),
        |all| all.iter().all(|(key, value)| key.is_proven() && value.is_proven());
    (K: Value + Eq + Hash, V: Value, S: BuildHasher + Default) HashMap<K, V, S>, (K, V),
        |all| all.iter().all(|(key, value)| key.is_proven() && value.is_proven());
}
