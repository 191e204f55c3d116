//! Keys and values from the bytes that a store has, which may be those of other types.

use crate::map::key::{self, Key};
use crate::map::value::Value;
use ats_disk::Error;

/// The key with these bytes.
pub(super) fn decode_key<K: Key>(bytes: &[u8]) -> Result<K, Error> {
    let corrupt = || Error::Corrupt("a key is not of the type that the map has".into());
    key::from_bytes(bytes).ok_or_else(corrupt)
}

/// The value with these bytes.
pub(super) fn decode_value<V: Value>(bytes: &[u8]) -> Result<V, Error> {
    let corrupt = || Error::Corrupt("a value is not of the type that the map has".into());
    V::decode(bytes).ok_or_else(corrupt)
}
