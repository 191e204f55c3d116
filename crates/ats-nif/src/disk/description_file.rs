//! The file in a directory that describes its table.

use super::failure::Failure;
use crate::atoms::KnownAtom;
use ats::{Description, NoDescription};
use ats_disk::fs::RealFs;
use ats_disk::{Error, StoreDirectory};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Files of a table that are not those of its store, in the order in which they are removed. The
/// first one is what a crash has left of the second.
pub(super) const TABLE_FILES: [&str; 2] = ["table.new", Description::FILE];

/// Describes the table in a directory; `None` if no table was made there.
///
/// # Errors
/// [`Failure`], if there is a table that cannot be described.
pub fn describe(directory: &Path) -> Result<Option<Description>, Failure> {
    let file_system = Arc::new(RealFs);
    decode_description(StoreDirectory::read_unlocked(
        file_system,
        directory,
        Description::FILE,
    ))
}

/// Decodes the file that describes a table, if it is there.
pub(super) fn decode_description(
    read: Result<Option<Vec<u8>>, Error>,
) -> Result<Option<Description>, Failure> {
    let Some(bytes) = read.map_err(directory_failure)? else {
        return Ok(None);
    };
    match Description::decode(&bytes) {
        Ok(description) => Ok(Some(description)),
        Err(error @ NoDescription::Damaged) => Err(Failure::new(KnownAtom::Damaged, error)),
        Err(error @ NoDescription::Newer(_)) => Err(Failure::new(KnownAtom::NewerFormat, error)),
    }
}

/// The failure of a directory that cannot be opened.
pub(super) fn directory_failure(error: Error) -> Failure {
    match error {
        Error::Missing => Failure::new(KnownAtom::Enoent, "there is no such directory"),
        Error::Io { error, .. } if error.kind == ErrorKind::NotADirectory => {
            not_a_table("it is a file, and a table is a directory")
        }
        error => Failure::from(error),
    }
}

/// The failure of a directory that has something else than a table.
pub(super) fn not_a_table(text: &str) -> Failure {
    Failure::new(KnownAtom::NotADatsTable, text)
}
