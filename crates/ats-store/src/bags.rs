//! Stores in which a key has several values, each changed without the others.
//!
//! The functions of [`Store`](crate::Store) see such a key as one record. Its value is the list of
//! the key's values, in the order in which they were added, each preceded by its length:
//!
//! ```text
//!   length | value | length | value | ...        a length: 4 bytes, least significant first
//! ```

use crate::error::Error;

const LENGTH_BYTES: usize = size_of::<u32>();

/// Maximum length in bytes of one value of such a key.
pub const MOST_VALUE_BYTES: usize = i32::MAX as usize;

/// Appends a value, preceded by its length, to a list of values.
///
/// # Errors
/// [`Error::TooLong`] if the value is longer than [`MOST_VALUE_BYTES`]; then nothing is appended.
pub fn push_value(values: &mut Vec<u8>, value: &[u8]) -> Result<(), Error> {
    let (len, limit) = (value.len(), MOST_VALUE_BYTES);
    if len > limit {
        return Err(Error::TooLong { len, limit });
    }
    values.extend_from_slice(&(len as u32).to_le_bytes());
    values.extend_from_slice(value);
    Ok(())
}

/// Returns the values of a list that [`push_value`] has built. Where the bytes are no such list,
/// the iterator yields [`Error::Corrupt`] and ends.
pub fn split_values(mut values: &[u8]) -> impl Iterator<Item = Result<&[u8], Error>> {
    std::iter::from_fn(move || {
        if values.is_empty() {
            return None;
        }
        let split = values
            .split_first_chunk::<LENGTH_BYTES>()
            .and_then(|(len, rest)| rest.split_at_checked(u32::from_le_bytes(*len) as usize));
        let Some((value, rest)) = split else {
            values = &[];
            return Some(Err(Error::Corrupt));
        };
        values = rest;
        Some(Ok(value))
    })
}

/// Equality of values, which may be equal although their bytes differ.
pub trait BagValues: Send + Sync {
    /// Returns a hash of a value. Equal values have equal hashes, in every process.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the bytes are no value.
    fn hash(&self, value: &[u8]) -> Result<u64, Error>;

    /// Returns `true` if two values are equal.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the bytes are no values.
    fn is_equal(&self, one: &[u8], other: &[u8]) -> Result<bool, Error>;
}

/// Conditions under which values are added to keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddRule {
    /// `true` if a key keeps only one of several equal values: the first one added.
    pub distinct: bool,
    /// `true` if the call adds nothing when any of its keys already has a value.
    pub only_to_new_keys: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushed_values_are_split_again() {
        let mut values = Vec::new();
        for value in [&b"one"[..], b"", b"three"] {
            push_value(&mut values, value).expect("it is short");
        }
        let split: Vec<_> = split_values(&values).collect();
        assert_eq!(split, [Ok(&b"one"[..]), Ok(b""), Ok(b"three")]);
    }

    #[test]
    fn truncated_values_are_corrupt() {
        let mut values = Vec::new();
        push_value(&mut values, b"one").expect("it is short");
        for len in 1..values.len() {
            let split: Vec<_> = split_values(&values[..len]).collect();
            assert_eq!(split, [Err(Error::Corrupt)], "{len}");
        }
    }
}
