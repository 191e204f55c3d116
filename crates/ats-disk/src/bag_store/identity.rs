//! The values of a key as its user knows them, with the errors of the engine.

use crate::error::Error;
use ats_store::BagValues;
use ats_store::bags;
use std::sync::Arc;

/// The identity of values.
pub(super) struct Identity(pub(super) Arc<dyn BagValues>);

impl Identity {
    /// Returns the hash of a value.
    pub(super) fn hash(&self, value: &[u8]) -> Result<u64, Error> {
        self.0.hash(value).map_err(of_value)
    }

    /// Returns `true` if two values are equal.
    pub(super) fn is_equal(&self, one: &[u8], other: &[u8]) -> Result<bool, Error> {
        Ok(one == other || self.0.is_equal(one, other).map_err(of_value)?)
    }
}

/// Returns the values that these bytes are.
pub(super) fn split_values(values: &[u8]) -> impl Iterator<Item = Result<&[u8], Error>> {
    bags::split_values(values).map(|value| value.map_err(of_value))
}

/// Appends a value to others.
pub(super) fn push_value(values: &mut Vec<u8>, value: &[u8]) -> Result<(), Error> {
    let too_long = |_| Error::TooLong {
        what: "a value",
        len: value.len(),
        limit: bags::MOST_VALUE_BYTES,
    };
    bags::push_value(values, value).map_err(too_long)
}

fn of_value(_: ats_store::Error) -> Error {
    Error::corrupt("a value of a bag is not what was written")
}
