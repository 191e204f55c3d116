//! What a table in a directory is, as a file beside its store says it.
//!
//! The store knows keys and values as bytes. Which table they are of must be known before the store is opened, because
//! it decides which operator merges them. So it is in a file of its own, which is written when the table is made.
//!
//! ```text
//!   "ats table" 0a | version, 4 | type, 1 | zeros, 1 | key position, 8 | length, 4 | merge | checksum, 8
//! ```
//!
//! Numbers have their least significant byte first. The checksum is the XXH3 of all before it.
//!
//! Version 2 is that of bags in which each object is a record of its own. The top bit of the type says
//! that keys may still have all their objects in one record, as all keys have in bags of version 1.

use crate::table::TableType;
use ats_term::{Zeros, etf};
use std::fmt;
use xxhash_rust::xxh3::xxh3_64;

/// What a table in a directory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its type.
    pub table_type: TableType,
    /// Where objects have their key, from 1.
    pub key_position: usize,
    /// Which zeros are the same key.
    pub zeros: Zeros,
    /// How values are merged that are written to the same key: a term in the external term format; empty if they are not.
    pub merge: Vec<u8>,
    /// `true` if keys of a bag may have all their objects in one record of the store.
    pub has_shared: bool,
}

/// For example `set, keypos 1, merge sum`.
impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, keypos {}",
            self.table_type.name(),
            self.key_position
        )?;
        let merge = self.merge_text();
        merge.map_or(Ok(()), |merge| write!(f, ", merge {merge}"))
    }
}

/// Why a file does not say what a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDescription {
    /// It is another file, or was spoilt.
    Damaged,
    /// It was written by a later version of this library, with this version of the format.
    Newer(u32),
}

impl fmt::Display for NoDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoDescription::Damaged => f.write_str("the file that describes the table was spoilt"),
            NoDescription::Newer(found) => write!(
                f,
                "the table has format {found}; this version reads formats up to {VERSION}"
            ),
        }
    }
}

impl std::error::Error for NoDescription {}

const MAGIC: &[u8; 10] = b"ats table\n";
/// The latest version. Tables that are no bags are written as version 1.
const VERSION: u32 = 2;
/// In the type: keys may have all their objects in one record.
const SHARED: u8 = 1 << 7;
const CHECKSUM_BYTES: usize = size_of::<u64>();

/// The numbers of types in files.
const TYPES: [TableType; 6] = [
    TableType::Set,
    TableType::OrderedSet,
    TableType::Bag,
    TableType::DuplicateBag,
    TableType::OrderedBag,
    TableType::OrderedDuplicateBag,
];
const ZEROS: [Zeros; 2] = [Zeros::Same, Zeros::Distinct];

fn number<T: PartialEq>(of: &T, all: &[T]) -> u8 {
    let index = all.iter().position(|one| one == of);
    index.expect("all that there are have a number") as u8
}

/// The version of the format that has tables of this type.
fn version(table_type: TableType) -> u32 {
    match table_type.is_bag() {
        true => VERSION,
        false => 1,
    }
}

impl Description {
    /// The name of the file.
    pub const FILE: &'static str = "table";

    /// The merge as Erlang has it; `None` if there is none.
    #[must_use]
    pub fn merge_text(&self) -> Option<String> {
        let text = |merge| match etf::decode(merge, etf::Options::TRUSTED) {
            Ok(merge) => merge.to_string(),
            Err(error) => format!("that is no term: {error}"),
        };
        (!self.merge.is_empty()).then(|| text(&self.merge))
    }

    /// Returns `true` if both describe the same table, however its records are kept.
    #[must_use]
    pub fn is_same_table(&self, other: &Self) -> bool {
        let has_shared = self.has_shared;
        *self
            == Description {
                has_shared,
                ..other.clone()
            }
    }

    /// The bytes of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&version(self.table_type).to_le_bytes());
        let shared = if self.has_shared { SHARED } else { 0 };
        bytes.push(number(&self.table_type, &TYPES) | shared);
        bytes.push(number(&self.zeros, &ZEROS));
        bytes.extend_from_slice(&(self.key_position as u64).to_le_bytes());
        bytes.extend_from_slice(&(self.merge.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.merge);
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// What the bytes of a file say.
    ///
    /// # Errors
    /// [`NoDescription`], never a wrong description.
    pub fn decode(bytes: &[u8]) -> Result<Self, NoDescription> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(NoDescription::Damaged)?;
        let (said, checksum) = bytes
            .split_last_chunk::<CHECKSUM_BYTES>()
            .ok_or(NoDescription::Damaged)?;
        if xxh3_64(said) != u64::from_le_bytes(*checksum) {
            return Err(NoDescription::Damaged);
        }
        let (version, rest) = rest.split_first_chunk().ok_or(NoDescription::Damaged)?;
        match u32::from_le_bytes(*version) {
            version @ 1..=VERSION => Self::parts(rest, version).ok_or(NoDescription::Damaged),
            version => Err(NoDescription::Newer(version)),
        }
    }

    /// What stands behind the version, the checksum included.
    fn parts(bytes: &[u8], version: u32) -> Option<Self> {
        let ([table_type, zeros], rest) = bytes.split_first_chunk()?;
        let (key_position, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (merge, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        let key_position = usize::try_from(u64::from_le_bytes(*key_position)).ok()?;
        (rest.len() == CHECKSUM_BYTES && key_position > 0).then_some(())?;
        let (number, shared) = match version {
            1 => (*table_type, true),
            _ => (table_type & !SHARED, table_type & SHARED != 0),
        };
        let table_type = *TYPES.get(usize::from(number))?;
        Some(Description {
            table_type,
            key_position,
            zeros: *ZEROS.get(usize::from(*zeros))?,
            merge: merge.to_vec(),
            has_shared: shared && table_type.is_bag(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Description {
        Description {
            table_type: TableType::Bag,
            key_position: 3,
            zeros: Zeros::Distinct,
            merge: vec![131, 106],
            has_shared: false,
        }
    }

    #[test]
    fn what_was_written_is_read() {
        for table_type in TYPES {
            for zeros in ZEROS {
                for merge in [vec![], vec![131, 106]] {
                    let description = Description {
                        table_type,
                        zeros,
                        merge,
                        ..some()
                    };
                    let read = Description::decode(&description.encode());
                    assert_eq!(read, Ok(description));
                }
            }
        }
    }

    #[test]
    fn what_was_spoilt_is_not_read() {
        let good = some().encode();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Description::decode(&bad), Err(NoDescription::Damaged));
        }
        for len in 0..good.len() {
            assert_eq!(
                Description::decode(&good[..len]),
                Err(NoDescription::Damaged)
            );
        }
        let longer = [&good[..], &[0]].concat();
        assert_eq!(Description::decode(&longer), Err(NoDescription::Damaged));
    }

    #[test]
    fn what_is_newer_is_told() {
        let mut bytes = some().encode();
        bytes.truncate(bytes.len() - CHECKSUM_BYTES);
        bytes[MAGIC.len()] = 7;
        bytes.push(1);
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        assert_eq!(Description::decode(&bytes), Err(NoDescription::Newer(7)));
    }

    /// A table that was made by this version must be read by all that come.
    #[test]
    fn the_format_stays_what_it_is() {
        let hex: String = some()
            .encode()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let (said, _checksum) = hex.split_at(hex.len() - 2 * CHECKSUM_BYTES);
        assert_eq!(
            said,
            "617473207461626c650a020000000201030000000000000002000000836a"
        );
    }

    /// Bags of version 1 have all objects of a key in one record.
    #[test]
    fn an_old_bag_is_known_by_its_version() {
        let mut bytes = Description {
            has_shared: true,
            ..some()
        }
        .encode();
        assert_eq!(bytes[MAGIC.len() + 4], 2 | SHARED);
        bytes.truncate(bytes.len() - CHECKSUM_BYTES);
        (bytes[MAGIC.len()], bytes[MAGIC.len() + 4]) = (1, 2);
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        let old = Description::decode(&bytes).expect("a description");
        assert_eq!((old.table_type, old.has_shared), (TableType::Bag, true));
        let written_anew = Description::decode(&old.encode());
        assert_eq!(written_anew, Ok(old));
    }

    #[test]
    fn bags_have_the_later_version() {
        let version = |table_type| {
            let bytes = Description {
                table_type,
                ..some()
            }
            .encode();
            bytes[MAGIC.len()]
        };
        assert_eq!(TYPES.map(version), [1, 1, 2, 2, 2, 2]);
    }
}
