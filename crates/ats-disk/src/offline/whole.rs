//! The files of a store as one thing: removing them all, copying them, and exchanging two
//! directories.

use crate::directory::{StoreDirectory, copy_file};
use crate::error::Error;
use crate::files::RESERVE_NAME;
use crate::fs::{Directory, remove_if_there};
use crate::journal;
use crate::manifest;
use crate::paths::resolve;
use crate::run_file::file_number;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Returns `true` if a store makes files with this name.
#[must_use]
pub fn is_of_store(name: &str) -> bool {
    file_number(name).is_some()
        || journal::number(name).is_some()
        || [manifest::NAME, manifest::NEW_NAME, RESERVE_NAME].contains(&name)
}

/// Returns `true` if a path is another one or leads below it. Links are followed, as far as there
/// is something to follow.
#[must_use]
pub fn is_within(path: &Path, other: &Path) -> bool {
    match (resolve(path), resolve(other)) {
        (Some(path), Some(other)) => path.starts_with(other),
        _ => false,
    }
}

impl StoreDirectory {
    /// Removes the files of a store, then those with these names that are kept beside it, in their
    /// order. Returns the names of all others, which stay.
    ///
    /// # Errors
    /// [`Error::Io`]. The call can be made again.
    pub fn remove_store(&self, beside: &[&str]) -> Result<Vec<String>, Error> {
        let (of_store, others): (Vec<_>, Vec<_>) = self
            .names()?
            .into_iter()
            .partition(|name| is_of_store(name));
        let names = of_store.iter().map(String::as_str);
        for name in names.chain(beside.iter().copied()) {
            let removed = remove_if_there(&*self.directory, name);
            removed.map_err(|error| Error::io(&error, name))?;
        }
        sync(&*self.directory)?;
        let is_beside = |name: &String| beside.contains(&name.as_str());
        Ok(others.into_iter().filter(|name| !is_beside(name)).collect())
    }

    /// Copies the files of a store, then those with these names that are kept beside it, in their
    /// order, to an empty directory. The copy is durable when this returns.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Corrupt`] if a name leads to anything but a regular file.
    pub fn copy_store(&self, target: &StoreDirectory, beside: &[&str]) -> Result<(), Error> {
        let names = self.names()?;
        let of_store = names
            .iter()
            .map(String::as_str)
            .filter(|name| is_of_store(name));
        for name in of_store {
            self.copy_file(target, name)?;
        }
        sync(&*target.directory)?;
        for name in beside {
            self.copy_file(target, name)?;
        }
        sync(&*target.directory)
    }

    fn copy_file(&self, target: &StoreDirectory, name: &str) -> Result<(), Error> {
        let copied = copy_file(&*self.directory, &*target.directory, name);
        copied.map_err(|error| Error::io(&error, name))
    }
}

fn sync(directory: &dyn Directory) -> Result<(), Error> {
    let synced = directory.sync();
    synced.map_err(|error| Error::io(&error, "syncing the directory"))
}

/// Gives a directory another name, which an empty directory may have: that is replaced. Both names
/// are durable when this returns.
///
/// # Errors
/// [`Error::Io`]; then the directory has the name that it had.
pub fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::rename(from, to).map_err(|error| Error::io(&error, "renaming the directory"))?;
    sync_parents(from, to)
}

/// Gives a directory another name, which nothing has. Both names are durable when this returns.
///
/// # Errors
/// [`Error::Io`], of the kind [`AlreadyExists`](ErrorKind::AlreadyExists) if something has the
/// name; then the directory has the name that it had.
pub(super) fn rename_new(from: &Path, to: &Path) -> Result<(), Error> {
    give_name(from, to).map_err(|error| Error::io(&error, "renaming the directory"))?;
    sync_parents(from, to)
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn give_name(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => give_name_unless_there(from, to),
        renamed => Ok(renamed?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn give_name(from: &Path, to: &Path) -> io::Result<()> {
    give_name_unless_there(from, to)
}

/// Renames where the system cannot check and rename in one step. A directory that gets the name
/// meanwhile is only replaced if it is empty.
fn give_name_unless_there(from: &Path, to: &Path) -> io::Result<()> {
    match to.symlink_metadata() {
        Ok(_) => Err(rustix::io::Errno::EXIST.into()),
        Err(_) => std::fs::rename(from, to),
    }
}

/// Exchanges the names of two directories, which is one step. They are durable when this returns.
///
/// # Errors
/// [`Error::Io`], also where the system or the file system cannot do this; then both have the names
/// that they had.
pub fn exchange(one: &Path, other: &Path) -> Result<(), Error> {
    exchange_names(one, other)
        .map_err(|error| Error::io(&error, "exchanging the names of the directories"))?;
    sync_parents(one, other)
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange_names(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange_names(_one: &Path, _other: &Path) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}

/// Removes an empty directory. Its name is durably gone when this returns.
///
/// # Errors
/// [`Error::Io`].
pub fn remove_dir(path: &Path) -> Result<(), Error> {
    std::fs::remove_dir(path).map_err(|error| Error::io(&error, "removing the directory"))?;
    sync_parents(path, path)
}

/// Makes the name of a directory durable.
///
/// # Errors
/// [`Error::Io`].
pub fn sync_name(path: &Path) -> Result<(), Error> {
    sync_parents(path, path)
}

fn sync_parents(one: &Path, other: &Path) -> Result<(), Error> {
    let parent = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => Path::new(".").to_owned(),
    };
    let mut parents = vec![parent(one), parent(other)];
    parents.dedup();
    for parent in parents {
        let opened = std::fs::File::open(&parent).and_then(|directory| directory.sync_all());
        match opened {
            // A parent that may not be read cannot be synced; the names in it are as durable as the
            // system makes them.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
            synced => synced.map_err(|error| Error::io(&error, "syncing the directory"))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_of_store;

    #[test]
    fn names_that_only_look_like_those_of_a_store_are_foreign() {
        let ours = ["manifest", "manifest.new", "reserve", "run-00000001"];
        assert!(ours.iter().all(|name| is_of_store(name)));
        let foreign = [
            "run-notes.txt",
            "run-1",
            "journal",
            "journal-x",
            "manifest.old",
            "table",
            "",
        ];
        assert!(foreign.iter().all(|name| !is_of_store(name)));
    }
}
