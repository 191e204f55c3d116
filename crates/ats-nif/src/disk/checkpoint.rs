//! Checkpoints of open tables: copies of a snapshot in other directories.

use super::closed::{Side, TwoDirectoryResult, lock_table};
use super::open_table::OpenTable;
use super::target::Target;
use ats::terms::Description;
use ats_disk::Error;
use ats_disk::fs::Sharing;
use std::path::Path;

/// Makes a table in a directory that is empty or missing, equal to the open table at this moment.
/// Files that cannot be linked are taken from an `earlier` checkpoint, if it has them.
///
/// # Errors
/// Returns a [`Failure`](super::Failure) with the directory concerned. Then there is no checkpoint.
pub fn checkpoint(
    table: &OpenTable,
    path: &Path,
    earlier: Option<&Path>,
) -> TwoDirectoryResult<()> {
    let earlier = earlier.map(|earlier| lock_table(earlier, Sharing::Shared));
    let earlier = earlier
        .transpose()
        .map_err(|failure| (Side::Earlier, failure))?;
    let made = Target::make(table.directory(), path);
    let target = made.map_err(|failure| (Side::Target, failure))?;
    let files = table.store().files();
    let done = target
        .fill(|directory| files.checkpoint_in(directory, earlier.as_ref(), &[Description::FILE]));
    done.map_err(|error| {
        let side = match (&error, &earlier) {
            (Error::ReadOnly(_), _) | (Error::Corrupt(_), None) => Side::Source,
            (Error::Missing | Error::NewerFormat { .. } | Error::Corrupt(_), Some(_)) => {
                Side::Earlier
            }
            _ => Side::Target,
        };
        (side, error.into())
    })
}
