//! Stores in which a key has several values, each of which is changed without the others.
//!
//! To the functions of [`Store`](crate::Store) such a key is one record: its value is all values of
//! the key in the order in which they were added, each behind its length.
//!
//! ```text
//!   length, 4 bytes | value | length | value | ...        lengths: least significant byte first
//! ```

use crate::error::Error;

const LENGTH_BYTES: usize = size_of::<u32>();

/// The most bytes of one value of a key that has several.
pub const MOST_VALUE_BYTES: usize = i32::MAX as usize;

/// Appends a value behind its length.
///
/// # Errors
/// [`Error::TooLong`] if it has more than [`MOST_VALUE_BYTES`]; nothing is appended then.
pub fn push_value(values: &mut Vec<u8>, value: &[u8]) -> Result<(), Error> {
    let (len, limit) = (value.len(), MOST_VALUE_BYTES);
    if len > limit {
        return Err(Error::TooLong { len, limit });
    }
    values.extend_from_slice(&(len as u32).to_le_bytes());
    values.extend_from_slice(value);
    Ok(())
}

/// Values that stand one behind the other. Gives [`Error::Corrupt`] as the last one if the bytes
/// are not such values.
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

/// The identity of values, which their bytes need not tell.
pub trait BagValues: Send + Sync {
    /// Returns a hash of a value: the same for equal values, in every process.
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

/// The rule by which values are added to keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddRule {
    /// `true` if a key keeps one of several equal values: the one that it got first.
    pub distinct: bool,
    /// `true` if nothing is added when one of the keys has values.
    pub only_to_new_keys: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_was_pushed() {
        let mut values = Vec::new();
        for value in [&b"one"[..], b"", b"three"] {
            push_value(&mut values, value).expect("it is short");
        }
        let split: Vec<_> = split_values(&values).collect();
        assert_eq!(split, [Ok(&b"one"[..]), Ok(b""), Ok(b"three")]);
    }

    #[test]
    fn what_is_cut_off_is_corrupt() {
        let mut values = Vec::new();
        push_value(&mut values, b"one").expect("it is short");
        for len in 1..values.len() {
            let split: Vec<_> = split_values(&values[..len]).collect();
            assert_eq!(split, [Err(Error::Corrupt)], "{len}");
        }
    }
}
