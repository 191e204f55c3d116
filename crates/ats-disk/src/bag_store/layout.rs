//! The records of a key that has several values.
//!
//! Each value is a record of its own, so that it is added and removed without the others:
//!
//! ```text
//!   key | 01 | hash of the value, 8 | rank, 8   ->   length and top bit, 4 | value
//! ```
//!
//! The rank is the sequence number of the change that added the value: so values of a key are in
//! the order of their ranks. Equal values have the same hash, and lie together.
//!
//! Stores that were made before have one record for all values of a key:
//!
//! ```text
//!   key   ->   length, 4 | value | length | value | ...
//! ```
//!
//! A key has records of the one kind or of the other. The top bit of the length tells them apart.
//!
//! **LAYOUT-1** A key that begins with another key goes on with a byte above [`END`] there. So the
//! records of a key, which are those from the key on and below the key with `END`, are the records
//! of no other key, and records are in the order of their keys. Keys of tables are like that: exact
//! keys begin with no other key, and order keys go on with `FE` or `FF`, which no term begins with.

use super::identity::push_value;
use crate::batch::NUMBER_BYTES;
use crate::error::Error;

/// The byte between a key and the hash of a value.
const SEPARATOR: u8 = 0x01;
/// A key and this byte are behind all records of the key.
const END: u8 = 0x02;
const HASH_BYTES: usize = size_of::<u64>();
/// Bytes that the key of a record has besides the key of the value.
pub(super) const SUFFIX_BYTES: usize = 1 + HASH_BYTES + NUMBER_BYTES;
/// Flag in the length of a value that is a record of its own.
const ALONE: u32 = 1 << 31;

/// A record, as it is read.
pub(super) enum Record<'a> {
    /// One value.
    Alone {
        /// The key of the value.
        key: &'a [u8],
        /// The rank of the value among those of the key.
        rank: u64,
        /// The value.
        value: &'a [u8],
    },
    /// All values of a key, each behind its length.
    Shared {
        /// Their key.
        key: &'a [u8],
        /// The values.
        values: &'a [u8],
    },
}

impl<'a> Record<'a> {
    /// Makes the record with this key and these bytes.
    pub(super) fn read(key: &'a [u8], bytes: &'a [u8]) -> Result<Self, Error> {
        let corrupt = || Error::corrupt(format_args!("a record of a bag is too short"));
        let (len, value) = bytes.split_first_chunk().ok_or_else(corrupt)?;
        let len = u32::from_le_bytes(*len);
        if len & ALONE == 0 {
            return Ok(Record::Shared { key, values: bytes });
        }
        let (rest, rank) = key.split_last_chunk::<NUMBER_BYTES>().ok_or_else(corrupt)?;
        let (rest, _hash) = rest.split_last_chunk::<HASH_BYTES>().ok_or_else(corrupt)?;
        match rest {
            [key @ .., SEPARATOR] if (len ^ ALONE) as usize == value.len() => Ok(Record::Alone {
                key,
                rank: u64::from_be_bytes(*rank),
                value,
            }),
            _ => Err(Error::corrupt(format_args!(
                "a record of a bag has another key"
            ))),
        }
    }

    /// Returns the key of the values.
    pub(super) fn key(&self) -> &'a [u8] {
        match self {
            Record::Alone { key, .. } | Record::Shared { key, .. } => key,
        }
    }
}

/// Returns the key of the record of a value, without the rank.
pub(super) fn record_key(key: &[u8], hash: u64) -> Vec<u8> {
    let mut record_key = Vec::with_capacity(key.len() + SUFFIX_BYTES);
    record_key.extend_from_slice(key);
    record_key.push(SEPARATOR);
    record_key.extend_from_slice(&hash.to_be_bytes());
    record_key
}

/// The bytes of the record of a value.
pub(super) fn record_value(value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    out.clear();
    push_value(out, value)?;
    out[3] |= (ALONE >> 24) as u8;
    Ok(())
}

/// Returns the least key that is behind all records of a key.
pub(super) fn end_of(key: &[u8]) -> Vec<u8> {
    [key, &[END]].concat()
}
