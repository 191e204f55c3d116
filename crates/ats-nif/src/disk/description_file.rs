//! The file that describes the table of a directory.

use super::failure::Failure;
use crate::atoms::KnownAtom;
use ats::terms::{Description, NoDescription};
use ats_disk::fs::RealFs;
use ats_disk::{Error, StoreDirectory};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Files of a table that do not belong to its store, in the order of their removal. The first one
/// is left by a crash while the second is written.
pub(super) const TABLE_FILES: [&str; 2] = ["table.new", Description::FILE];

/// Describes the table in a directory; returns `None` if the directory has no table.
///
/// # Errors
/// Returns a [`Failure`] if the description cannot be read.
pub fn describe(directory: &Path) -> Result<Option<Description>, Failure> {
    let file_system = Arc::new(RealFs);
    decode_description(StoreDirectory::read_unlocked(
        file_system,
        directory,
        Description::FILE,
    ))
}

/// Decodes the description file, if there is one.
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

/// Returns the failure of a directory that cannot be opened.
pub(super) fn directory_failure(error: Error) -> Failure {
    match error {
        Error::Missing => Failure::new(KnownAtom::Enoent, "there is no such directory"),
        Error::Io { error, .. } if error.kind == ErrorKind::NotADirectory => {
            not_a_table("it is a file, and a table is a directory")
        }
        error => Failure::from(error),
    }
}

/// Returns the failure of a directory that holds something other than a table.
pub(super) fn not_a_table(text: &str) -> Failure {
    Failure::new(KnownAtom::NotADatsTable, text)
}
