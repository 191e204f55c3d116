//! The directory that a copy of a table is made in.

use super::description_file::{TABLE_FILES, directory_failure};
use super::failure::Failure;
use crate::atoms::KnownAtom;
use ats_disk::fs::RealFs;
use ats_disk::offline::{self, Temporary};
use ats_disk::{Error, StoreDirectory};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// An empty, locked directory for a copy of a table: the given one if it exists, else a temporary
/// one.
pub(super) struct Target<'p> {
    directory: StoreDirectory,
    path: &'p Path,
    temporary: Option<Temporary>,
}

const WITHIN_TABLE: &str = "the directory is below that of a table";

/// Checks that a directory to be made is not below that of a table.
///
/// # Errors
/// Returns a [`Failure`] if it is.
pub(super) fn check_outside_tables(path: &Path) -> Result<(), Failure> {
    match offline::enclosing_store(&RealFs, path) {
        Some(_) => Err(Failure::new(KnownAtom::WithinTable, WITHIN_TABLE)),
        None => Ok(()),
    }
}

impl<'p> Target<'p> {
    /// Makes a directory that is missing, or takes an empty one.
    ///
    /// # Errors
    /// Returns a [`Failure`]; nothing has changed then.
    pub(super) fn make(source: &Path, path: &'p Path) -> Result<Self, Failure> {
        if let Some(parent) = path.parent() {
            let found = parent.metadata();
            if !found.map_err(|error| Failure::from(&error))?.is_dir() {
                let text = "the parent of the new directory is no directory";
                return Err(Failure::new(KnownAtom::Enotdir, text));
            }
            if offline::is_within(parent, source) {
                return Err(Failure::new(KnownAtom::WithinTable, WITHIN_TABLE));
            }
        }
        check_outside_tables(path)?;
        let temporary = match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Some(Temporary::make(path, &TABLE_FILES)?)
            }
            Err(error) => return Err(Failure::from(&error)),
            Ok(_) => None,
        };
        let made = temporary.as_ref().map(Temporary::store);
        let made = StoreDirectory::make(Arc::new(RealFs), made.as_deref().unwrap_or(path));
        let directory = made.map_err(directory_failure)?;
        if !directory.names()?.is_empty() {
            let text = "there are files in the directory";
            return Err(Failure::new(KnownAtom::Eexist, text));
        }
        Ok(Target {
            directory,
            path,
            temporary,
        })
    }

    /// Fills the directory. After an error it is empty again, or removed.
    ///
    /// # Errors
    /// Returns the errors of `fill`.
    pub(super) fn fill(
        self,
        fill: impl FnOnce(&StoreDirectory) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(temporary) = self.temporary else {
            return fill(&self.directory).inspect_err(|_| {
                // The description file is written last, so remains that cannot be removed are no
                // table.
                let _left = self.directory.remove_store(&TABLE_FILES);
            });
        };
        let filled = fill(&self.directory);
        // The files can be removed only after they are unlocked.
        drop(self.directory);
        filled.and_then(|()| temporary.publish(self.path))
    }
}
