//! Temporary directories: they have stores that are not complete yet.
//!
//! A store that takes its directory at one moment is made in another one of the same file system.
//! All such directories beside each other are in one folder, so the search for abandoned ones does
//! not depend on how much else there is. The folder belongs to one user of the system: others
//! cannot be in the way, nor lead a removal elsewhere. Each directory has a random name and is
//! locked by its maker as long as that lives. One without a lock was left by a process that has
//! ended: [`sweep_beside`] removes it.
//!
//! - **TEMPORARY-1** Whoever removes a directory has its lock. Whoever has just locked one looks
//!   whether the name still leads to it, which is so unless it was removed before.

use super::whole::{is_of_store, remove_dir, rename_new};
use crate::directory::StoreDirectory;
use crate::error::Error;
use crate::fs::{RealFs, Sharing};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The beginning of the name of a folder of temporary directories; the number of the user follows.
/// No store should be given a directory in it.
pub const TEMPORARY_PREFIX: &str = ".ats-temporary-";

/// The name of a store in its temporary directory.
const STORE: &str = "store";
/// The number of attempts to make a directory, of which others may remove some.
const ATTEMPTS: usize = 100;

/// A temporary directory. Its contents are removed when this is dropped.
pub struct Temporary {
    path: PathBuf,
    /// Names of files that are kept beside those of the store.
    beside: &'static [&'static str],
    _lock: StoreDirectory,
}

impl Temporary {
    /// Makes a directory for a store that shall have the directory `target`, with files of these
    /// names beside those of the store. Removes directories that others have abandoned there.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn make(target: &Path, beside: &'static [&'static str]) -> Result<Self, Error> {
        sweep_beside(target, beside);
        let failed = |error: &io::Error| Error::io(error, "making a temporary directory");
        let folder = folder_beside(target).ok_or_else(|| failed(&Errno::NOENT.into()))?;
        for _ in 0..ATTEMPTS {
            match private().create(&folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(failed(&error));
                }
                _ => {}
            }
            let path = folder.join(random_name());
            match private().create(&path) {
                Ok(()) => {}
                // Another process has removed the folder, which was empty.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(&error)),
            }
            if !is_own(&folder) {
                let _left = fs::remove_dir(&path);
                let error = Errno::ACCESS.into();
                let what = format!("{} belongs to another user", folder.display());
                return Err(Error::io(&error, what));
            }
            let locked = StoreDirectory::open(Arc::new(RealFs), &path, Sharing::Exclusive);
            let lock = match locked {
                Err(Error::Missing | Error::Locked) => continue,
                locked => locked?,
            };
            if is_directory(&path) {
                return Ok(Temporary {
                    path,
                    beside,
                    _lock: lock,
                });
            }
        }
        Err(Error::Locked)
    }

    /// Returns the directory of the store, which is not there yet.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.path.join(STORE)
    }

    /// Gives the directory of the store another name, which nothing has. The name is durable when
    /// this returns.
    ///
    /// # Errors
    /// [`Error::Io`], of the kind [`AlreadyExists`](ErrorKind::AlreadyExists) if something has the
    /// name.
    pub fn publish(&self, target: &Path) -> Result<(), Error> {
        rename_new(&self.store(), target)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // A file that cannot be removed stays for the next opening beside it.
        let _left = remove(&self.path, self.beside);
        if let Some(folder) = self.path.parent() {
            let _used = fs::remove_dir(folder);
        }
    }
}

/// Removes the temporary directories of processes that have ended while they made a store. `beside`
/// are the names of files that are kept beside those of a store. A directory with other files
/// stays, and so does a file that cannot be removed.
pub fn sweep_beside(path: &Path, beside: &[&str]) {
    let Some(folder) = folder_beside(path).filter(|folder| is_own(folder)) else {
        return;
    };
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_directory(&path) {
            let lock = StoreDirectory::open(Arc::new(RealFs), &path, Sharing::Exclusive);
            let _left = lock.and_then(|_lock| remove(&path, beside));
        }
    }
    let _used = fs::remove_dir(&folder);
}

/// Removes a directory that is locked, and the store in it.
fn remove(path: &Path, beside: &[&str]) -> Result<(), Error> {
    let store = path.join(STORE);
    if is_directory(&store) {
        let locked = StoreDirectory::open(Arc::new(RealFs), &store, Sharing::Exclusive)?;
        let is_ours = |name: &String| is_of_store(name) || beside.contains(&name.as_str());
        if locked.names()?.iter().all(is_ours) {
            locked.remove_store(beside)?;
            remove_dir(&store)?;
        }
    }
    fs::remove_dir(path).map_err(|error| Error::io(&error, "removing a temporary directory"))
}

/// Returns the folder of the temporary directories beside a path.
fn folder_beside(path: &Path) -> Option<PathBuf> {
    let parent = path.parent()?;
    Some(parent.join(format!("{TEMPORARY_PREFIX}{}", geteuid().as_raw())))
}

/// Returns `true` if a path leads to a directory of the user of this process, and is no link.
fn is_own(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw())
}

/// Returns `true` if a path leads to a directory, and is no link.
fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Makes directories that no other user enters.
fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Returns a name that no other directory has had.
fn random_name() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiskStore, Options};
    use std::os::unix::fs::symlink;

    /// Returns a folder of its own.
    fn folder(test: &str) -> PathBuf {
        let name = format!("ats-temporary-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _none = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a new folder");
        path
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).expect("it is there").flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn make_store(path: &Path) {
        let store = DiskStore::open(path, Options::new()).expect("a new store");
        store.put(b"key", b"value").expect("written");
        store.close().expect("closed");
    }

    #[test]
    fn directories_are_published_under_free_names() {
        let folder = folder("publish");
        let target = folder.join("target");
        let [first, second] = [(); 2].map(|()| Temporary::make(&target, &[]).expect("made"));
        make_store(&first.store());
        make_store(&second.store());
        // Directories in use stay.
        sweep_beside(&target, &[]);
        assert!(second.store().join("manifest").exists());
        first.publish(&target).expect("published");
        match second.publish(&target) {
            Err(Error::Io { error, .. }) => assert_eq!(error.kind, ErrorKind::AlreadyExists),
            published => panic!("{published:?}"),
        }
        drop((first, second));
        assert_eq!(names(&folder), ["target"]);
        let store = DiskStore::open(&target, Options::new()).expect("it is there");
        assert_eq!(store.get(b"key"), Ok(Some(b"value".to_vec())));
        drop(store);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn only_leftover_temporary_directories_are_removed() {
        let folder = folder("sweep");
        let target = folder.join("target");
        let left = |name: &str| {
            let made = Temporary::make(&target, &["table"]).expect("made");
            let path = made.path.with_file_name(name);
            fs::rename(&made.path, &path).expect("renamed");
            path
        };
        let keep = Temporary::make(&target, &["table"]).expect("made");
        let [left, foreign, linked] = ["left", "foreign", "linked"].map(left);
        make_store(&left.join(STORE));
        fs::write(left.join(STORE).join("table"), "").expect("written");
        make_store(&foreign.join(STORE));
        fs::write(foreign.join(STORE).join("precious"), "").expect("written");
        let elsewhere = folder.join("elsewhere");
        make_store(&elsewhere);
        symlink(&elsewhere, linked.join(STORE)).expect("a new link");
        let row = left.parent().expect("it has one").to_owned();
        symlink(&elsewhere, row.join("link")).expect("a new link");
        sweep_beside(&target, &["table"]);
        let kept = keep.path.file_name().expect("it has one").to_string_lossy();
        let mut expected = ["foreign", "link", "linked", &kept].map(str::to_owned);
        expected.sort();
        assert_eq!(names(&row), expected);
        assert!(elsewhere.join("manifest").exists());
        assert!(foreign.join(STORE).join("manifest").exists());
        drop(keep);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_folder_that_is_a_link_is_not_used() {
        let folder = folder("link");
        let target = folder.join("target");
        let elsewhere = folder.join("elsewhere");
        fs::create_dir(&elsewhere).expect("a new folder");
        let row = folder_beside(&target).expect("it has a folder");
        symlink(&elsewhere, &row).expect("a new link");
        assert!(matches!(
            Temporary::make(&target, &[]),
            Err(Error::Io { .. })
        ));
        assert_eq!(names(&elsewhere), [""; 0]);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
