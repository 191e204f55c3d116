//! The description of a table in a directory, in a file beside its store.
//!
//! The store handles keys and values as bytes. The type of the table must be known before the store
//! is opened, because it selects the merge operator. So it has its own file, which is written when
//! the table is created.
//!
//! ```text
//!   "ats table" 0a | version, 4 | type, 1 | zeros, 1 | key position, 8 | length, 4 | merge
//!   | length, 4 | format | lifetime, 6 | checksum, 8
//! ```
//!
//! Numbers have their least significant byte first. The checksum is the XXH3 of all bytes before
//! it.
//!
//! This is version 3, for tables whose objects expire: it ends with the
//! [lifetime](ats_store::lifetime) of objects that are written without one of their own.
//!
//! Version 2 has no lifetime. It is for bags and tables with a format. The top bit of the type says
//! that keys of a bag may still have all their objects in one record. Other tables are written as
//! version 1, which has no format and which older releases read; they refuse version 2. In bags of
//! version 1, each key has all its objects in one record.

use crate::terms::table::TableType;
use ats_store::Lifetime;
use ats_term::{Zeros, etf};
use std::fmt;
use xxhash_rust::xxh3::xxh3_64;

/// The description of a table in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The type of the table.
    pub table_type: TableType,
    /// The position of the key in objects, from 1.
    pub key_position: usize,
    /// The rule for zeros in keys.
    pub zeros: Zeros,
    /// The merge of values that are written to the same key: a term in the external term format,
    /// empty if values are not merged.
    pub merge: Vec<u8>,
    /// The formats in which the program encodes keys and values as bytes: a term in the external
    /// term format, empty if it does not encode them.
    pub format: Vec<u8>,
    /// `true` if keys of a bag may have all their objects in one record of the store.
    pub has_shared: bool,
    /// The lifetime of objects that are written without one of their own, if objects expire:
    /// [`Lifetime::For`] or [`Lifetime::Forever`].
    pub lifetime: Option<Lifetime>,
}

/// Formats a description, for example as `set, keypos 1, merge sum`.
impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, keypos {}",
            self.table_type.name(),
            self.key_position
        )?;
        if let Some(merge) = self.merge_text() {
            write!(f, ", merge {merge}")?;
        }
        if let Some(format) = self.format_text() {
            write!(f, ", format {format}")?;
        }
        match self.lifetime {
            None => Ok(()),
            Some(Lifetime::For(time)) => write!(f, ", ttl {}", time.as_millis()),
            Some(_) => f.write_str(", ttl infinity"),
        }
    }
}

/// The reason why a file is not a description of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDescription {
    /// The file is damaged, or is not a description.
    Damaged,
    /// A later version of this library wrote the file, with this version of the format.
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
/// The latest version.
const VERSION: u32 = 3;
/// The version of bags, and of tables with a format.
const FORMAT_VERSION: u32 = 2;
/// The version of tables that are not bags and have no format.
const PLAIN_VERSION: u32 = 1;
/// The bit of the type that is set if keys may have all their objects in one record.
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

/// Returns the text of a term in the external term format; `None` if `bytes` is empty.
fn text(bytes: &[u8]) -> Option<String> {
    let text = || match etf::decode(bytes, etf::Options::TRUSTED) {
        Ok(term) => term.to_string(),
        Err(error) => format!("that is no term: {error}"),
    };
    (!bytes.is_empty()).then(text)
}

/// Splits off bytes that follow their length.
fn split_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}

impl Description {
    /// The name of the file.
    pub const FILE: &'static str = "table";

    /// Returns the merge in Erlang syntax; `None` if values are not merged.
    #[must_use]
    pub fn merge_text(&self) -> Option<String> {
        text(&self.merge)
    }

    /// Returns `true` if tables with these two descriptions can have the same records. Records say
    /// nothing about the format, not for all keys how their objects are stored, and nothing about
    /// the lifetime of others.
    #[must_use]
    pub fn has_records_of(&self, other: &Self) -> bool {
        let (format, has_shared) = (self.format.clone(), self.has_shared);
        *self
            == Description {
                format,
                has_shared,
                lifetime: self.lifetime.filter(|_| other.lifetime.is_some()),
                ..other.clone()
            }
    }

    /// Returns the format in Erlang syntax; `None` if the program encodes no bytes.
    #[must_use]
    pub fn format_text(&self) -> Option<String> {
        text(&self.format)
    }

    /// Returns the bytes of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let version = if self.lifetime.is_some() {
            VERSION
        } else if self.format.is_empty() && !self.table_type.is_bag() {
            PLAIN_VERSION
        } else {
            FORMAT_VERSION
        };
        bytes.extend_from_slice(&version.to_le_bytes());
        let shared = if self.has_shared { SHARED } else { 0 };
        bytes.push(number(&self.table_type, &TYPES) | shared);
        bytes.push(number(&self.zeros, &ZEROS));
        bytes.extend_from_slice(&(self.key_position as u64).to_le_bytes());
        bytes.extend_from_slice(&(self.merge.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.merge);
        if version > PLAIN_VERSION {
            bytes.extend_from_slice(&(self.format.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&self.format);
        }
        if let Some(lifetime) = self.lifetime {
            bytes.extend_from_slice(&lifetime.to_bytes());
        }
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// [`NoDescription`] if the bytes are damaged or newer: no damage leads to a wrong description.
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
            version @ (PLAIN_VERSION..=VERSION) => {
                Self::parts(version, rest).ok_or(NoDescription::Damaged)
            }
            version => Err(NoDescription::Newer(version)),
        }
    }

    /// Parses the bytes after the version, including the checksum.
    fn parts(version: u32, bytes: &[u8]) -> Option<Self> {
        let ([table_type, zeros], rest) = bytes.split_first_chunk()?;
        let (key_position, rest) = rest.split_first_chunk()?;
        let (merge, rest) = split_bytes(rest)?;
        let (format, rest) = match version {
            PLAIN_VERSION => (&[][..], rest),
            _ => split_bytes(rest)?,
        };
        let (lifetime, rest) = match version {
            VERSION => Lifetime::split(rest).map(|(lifetime, rest)| (Some(lifetime), rest))?,
            _ => (None, rest),
        };
        let is_of_table = matches!(lifetime, None | Some(Lifetime::For(_) | Lifetime::Forever));
        is_of_table.then_some(())?;
        let key_position = usize::try_from(u64::from_le_bytes(*key_position)).ok()?;
        (rest.len() == CHECKSUM_BYTES && key_position > 0).then_some(())?;
        let (number, shared) = match version {
            PLAIN_VERSION => (*table_type, true),
            _ => (table_type & !SHARED, table_type & SHARED != 0),
        };
        let table_type = *TYPES.get(usize::from(number))?;
        Some(Description {
            table_type,
            key_position,
            zeros: *ZEROS.get(usize::from(*zeros))?,
            merge: merge.to_vec(),
            format: format.to_vec(),
            has_shared: shared && table_type.is_bag(),
            lifetime,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn minute() -> Lifetime {
        Lifetime::For(Duration::from_secs(60))
    }

    fn some() -> Description {
        Description {
            table_type: TableType::Bag,
            key_position: 3,
            zeros: Zeros::Distinct,
            merge: vec![131, 106],
            format: Vec::new(),
            has_shared: false,
            lifetime: None,
        }
    }

    #[test]
    fn encoded_descriptions_are_decoded() {
        for table_type in TYPES {
            for zeros in ZEROS {
                for merge in [vec![], vec![131, 106]] {
                    for format in [vec![], vec![131, 97, 1]] {
                        for lifetime in [None, Some(Lifetime::Forever), Some(minute())] {
                            let description = Description {
                                table_type,
                                zeros,
                                merge: merge.clone(),
                                format: format.clone(),
                                lifetime,
                                ..some()
                            };
                            let read = Description::decode(&description.encode());
                            assert_eq!(read, Ok(description));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn damaged_descriptions_are_refused() {
        for format in [vec![], vec![131, 106]] {
            for lifetime in [None, Some(minute())] {
                spoil(&Description {
                    format: format.clone(),
                    lifetime,
                    ..some()
                });
            }
        }
    }

    fn spoil(description: &Description) {
        let good = description.encode();
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
    fn newer_formats_are_named_in_the_error() {
        let mut bytes = some().encode();
        bytes.truncate(bytes.len() - CHECKSUM_BYTES);
        bytes[MAGIC.len()] = 7;
        bytes.push(1);
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        assert_eq!(Description::decode(&bytes), Err(NoDescription::Newer(7)));
    }

    /// Later versions must read a table that this version made.
    #[test]
    fn the_format_does_not_change() {
        let hex = |description: &Description| {
            let bytes = description.encode();
            let said = &bytes[..bytes.len() - CHECKSUM_BYTES];
            said.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<Vec<_>>()
                .concat()
        };
        let set = Description {
            table_type: TableType::Set,
            ..some()
        };
        let with_format = Description {
            format: vec![131, 97, 1],
            ..set.clone()
        };
        let expiring = Description {
            lifetime: Some(minute()),
            ..set.clone()
        };
        for (description, said) in [
            (
                &set,
                "617473207461626c650a010000000001030000000000000002000000836a",
            ),
            (
                &some(),
                "617473207461626c650a020000000201030000000000000002000000836a00000000",
            ),
            (
                &with_format,
                "617473207461626c650a020000000001030000000000000002000000836a03000000836101",
            ),
            (
                &expiring,
                "617473207461626c650a030000000001030000000000000002000000836a0000000060ea00000040",
            ),
        ] {
            assert_eq!(hex(description), said);
        }
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
        bytes.truncate(bytes.len() - size_of::<u32>() - CHECKSUM_BYTES);
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
