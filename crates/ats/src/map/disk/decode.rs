//! Translation of keys and values to the bytes of a store, and back. Stored bytes may have other
//! types.

use crate::map::key::{self, AsKey, Key, KeyBytes, shown};
use crate::map::value::{self, AsValue, Value, ValueBytes};
use ats_disk::Error;
use std::any::type_name;

/// Returns the bytes of a key to store.
pub(super) fn encode_key<K: Key>(key: &impl AsKey<K>) -> Result<KeyBytes, Error> {
    key::kept_bytes_of(key).map_err(Error::Refused)
}

/// Returns the bytes of a value to store.
pub(super) fn encode_value<V: Value>(value: &impl AsValue<V>) -> Result<ValueBytes, Error> {
    value::bytes_of(value).map_err(Error::Refused)
}

fn corrupt<T>(what: &str, key: &[u8]) -> Error {
    let (key, name) = (shown(key), type_name::<T>());
    Error::Corrupt(format!("the {what} {key} is not of the type `{name}`"))
}

/// Decodes the value of a key.
pub(super) fn decode_value<V: Value>(key: &[u8], value: &[u8]) -> Result<V, Error> {
    V::decode(value).ok_or_else(|| corrupt::<V>("value of the key", key))
}

/// Decodes a key and its value.
pub(super) fn decode_pair<K: Key, V: Value>(key: &[u8], value: &[u8]) -> Result<(K, V), Error> {
    let decoded = key::from_bytes(key).ok_or_else(|| corrupt::<K>("key", key))?;
    Ok((decoded, decode_value(key, value)?))
}
