//! Paths of stores in the file system.

use crate::fs::FileSystem;
use crate::manifest::Manifest;
use std::path::{self, Path, PathBuf};

/// Returns the directory of the store that a path leads below, if there is one. Links are followed,
/// as far as there is something to follow.
///
/// No other store belongs there: the files would be foreign to the first one, which then cannot be
/// repaired, and go where it is renamed to.
#[must_use]
pub fn enclosing_store(file_system: &dyn FileSystem, path: &Path) -> Option<PathBuf> {
    let path = resolve(path)?;
    let has_store = |above: &&Path| {
        let directory = file_system.open_dir(above);
        directory.is_ok_and(|directory| Manifest::is_there(&*directory))
    };
    path.ancestors().skip(1).find(has_store).map(Path::to_owned)
}

/// Returns a path without links, as far as it exists.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
    let path = path::absolute(path).ok()?;
    // The existing part of a path that is not complete yet may be a link.
    let there = path
        .ancestors()
        .find_map(|part| Some((part, part.canonicalize().ok()?)));
    let (part, there_is) = there?;
    Some(there_is.join(path.strip_prefix(part).ok()?))
}
