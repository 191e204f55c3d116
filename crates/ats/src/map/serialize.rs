//! Maps as maps of `serde`.

use super::hash::HashMap;
use super::key::Key;
use super::kind::MapKind;
use super::ordered::OrderedMap;
use super::value::Value;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// A visitor that reads a map.
struct MapVisitor<M>(PhantomData<fn() -> M>);

macro_rules! maps {
    ($($map:ident)*) => {$(
        /// Serialises the map as of one moment.
        impl<K: Key + Serialize, V: Value + Serialize, L: MapKind> Serialize for $map<K, V, L> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let snapshot = self.snapshot();
                let mut map = serializer.serialize_map(Some(snapshot.len()))?;
                for (key, value) in &snapshot {
                    map.serialize_entry(&key, &value)?;
                }
                map.end()
            }
        }

        impl<'de, K, V> Deserialize<'de> for $map<K, V>
        where
            K: Key + Deserialize<'de>,
            V: Value + Deserialize<'de>,
        {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_map(MapVisitor::<Self>(PhantomData))
            }
        }

        impl<'de, K, V> Visitor<'de> for MapVisitor<$map<K, V>>
        where
            K: Key + Deserialize<'de>,
            V: Value + Deserialize<'de>,
        {
            type Value = $map<K, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Self::Value, A::Error> {
                let map = $map::new();
                while let Some((key, value)) = pairs.next_entry::<K, V>()? {
                    map.put(key, value);
                }
                Ok(map)
            }
        }
    )*};
}

maps! { OrderedMap HashMap }
