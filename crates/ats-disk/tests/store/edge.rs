//! The world around a store: links, directories that are moved or removed, files that are no files,
//! directories of others.

use crate::directory::Directory;
use crate::{all, open};
use ats_disk::fs::{RealFs, Sharing};
use ats_disk::offline::{Survey, verify};
use ats_disk::{DiskStore, Error, Options, StoreDirectory};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

fn options() -> Options {
    Options::new().background(false)
}

fn reading() -> Options {
    options().read_only(true)
}

/// Returns all files of a directory.
fn content(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("it is there");
    let entries = entries.map(|entry| {
        let path = entry.expect("listed").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        (name.into_owned(), fs::read(&path).expect("read"))
    });
    entries.collect()
}

/// Returns a directory with two others, and a link to the first.
fn two(directory: &Directory) -> [std::path::PathBuf; 3] {
    fs::create_dir(directory.path()).expect("a new directory");
    let paths = ["a", "b", "link"].map(|name| directory.path().join(name));
    fs::create_dir(&paths[0]).expect("a new directory");
    fs::create_dir(&paths[1]).expect("a new directory");
    symlink("a", &paths[2]).expect("a new link");
    paths
}

#[test]
fn a_store_stays_in_its_directory_when_a_link_is_turned() {
    let directory = Directory::new();
    let [a, b, link] = two(&directory);
    let other = open(&b.join("data"), &options());
    other.put(b"1", b"of b").expect("written");
    other.close().expect("closed");
    let before = content(&b.join("data"));
    let store = open(&link.join("data"), &options());
    store.put(b"1", b"of a").expect("written");
    store.flush().expect("flushed");
    fs::remove_file(&link).expect("removed");
    symlink("b", &link).expect("turned");
    store.put(b"2", b"of a").expect("written");
    store.flush().expect("flushed");
    store.compact().expect("compacted");
    store.put(b"3", b"of a").expect("written");
    store.close().expect("closed");
    assert_eq!(content(&b.join("data")), before);
    let store = open(&a.join("data"), &options());
    let keys = all(&store).into_iter().map(|(key, _)| key);
    assert_eq!(keys.collect::<Vec<_>>(), [b"1", b"2", b"3"]);
}

/// The path may also be one below the working directory, and the directory may be renamed.
#[test]
fn a_store_stays_in_its_directory_when_that_is_moved() {
    let directory = Directory::new();
    let [a, b, _] = two(&directory);
    let store = open(&a.join("data"), &options());
    store.put(b"1", b"v").expect("written");
    fs::rename(a.join("data"), b.join("moved")).expect("moved");
    // A new directory with the old path is another one.
    let other = open(&a.join("data"), &options());
    store.flush().expect("flushed");
    store.put(b"2", b"v").expect("written");
    store.compact().expect("compacted");
    store.close().expect("closed");
    assert_eq!(all(&other).len(), 0);
    assert_eq!(all(&open(&b.join("moved"), &options())).len(), 2);
}

#[test]
fn a_directory_that_is_removed_can_be_made_again() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    store.put(b"1", b"v").expect("written");
    fs::remove_dir_all(directory.path()).expect("removed");
    let again = open(directory.path(), &options());
    again.put(b"2", b"v").expect("written");
    assert!(matches!(store.flush(), Err(Error::Io { .. })));
    assert_eq!(store.get(b"1"), Ok(Some(b"v".to_vec())));
    let _nothing_to_flush_to = store.close();
    assert_eq!(all(&again).len(), 1);
}

/// The lock is that of the directory, not of a file in it, and of no path.
#[test]
fn a_store_is_open_once_whatever_is_removed_and_whatever_its_path() {
    let directory = Directory::new();
    let [a, _, link] = two(&directory);
    let store = open(&a, &options());
    store.put(b"1", b"v").expect("written");
    fs::write(a.join("lock"), "").expect("written");
    fs::remove_file(a.join("lock")).expect("removed");
    for path in [&a, &link, &directory.path().join("b/../a")] {
        let opened = DiskStore::open(path, options());
        assert_eq!(opened.err(), Some(Error::Locked));
        let read = DiskStore::open(path, reading());
        assert_eq!(read.err(), Some(Error::Locked));
    }
    store.close().expect("closed");
    open(&link, &options());
}

#[test]
fn other_kinds_of_files_are_reported_at_once() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    store.put(b"1", b"v").expect("written");
    store.close().expect("closed");
    let manifest = directory.path().join("manifest");
    let kept = directory.path().join("kept");
    fs::rename(&manifest, &kept).expect("renamed");
    let corrupt = |what: &str| {
        for options in [options(), reading()] {
            match DiskStore::open(directory.path(), options).err() {
                Some(Error::Corrupt(why)) => assert!(why.contains(what), "{why}"),
                other => panic!("{what}: {other:?}"),
            }
        }
    };
    let fifo = Command::new("mkfifo").arg(&manifest).status();
    assert!(fifo.expect("it ran").success());
    corrupt("it is a FIFO");
    fs::remove_file(&manifest).expect("removed");
    for target in ["kept", "nowhere"] {
        symlink(target, &manifest).expect("a new link");
        corrupt("it is a symbolic link");
        fs::remove_file(&manifest).expect("removed");
    }
    fs::create_dir(&manifest).expect("a new directory");
    corrupt("it is a directory");
    fs::remove_dir(&manifest).expect("removed");
    fs::rename(&kept, &manifest).expect("renamed");
    assert_eq!(all(&open(directory.path(), &options())).len(), 1);
}

/// A link that has the name of a new file does not say which file is overwritten.
#[test]
fn writes_do_not_follow_links() {
    let directory = Directory::new();
    fs::create_dir(directory.path()).expect("a new directory");
    let precious = directory.path().join("precious");
    fs::write(&precious, "precious").expect("written");
    for name in [
        "manifest.new",
        "journal-00000001",
        "run-00000001",
        "table.new",
    ] {
        symlink(&precious, directory.path().join(name)).expect("a new link");
    }
    // A run that the manifest does not name is not taken for one.
    fs::remove_file(directory.path().join("run-00000001")).expect("removed");
    fs::remove_file(directory.path().join("journal-00000001")).expect("removed");
    let held = StoreDirectory::open(Arc::new(RealFs), directory.path(), Sharing::Exclusive);
    let held = held.expect("opened");
    assert_eq!(held.read("table"), Ok(None));
    let store = DiskStore::open_in(held, options()).expect("opened");
    store.replace_file("table", b"described").expect("written");
    let read = StoreDirectory::read_unlocked(Arc::new(RealFs), directory.path(), "table");
    assert_eq!(read, Ok(Some(b"described".to_vec())));
    symlink(&precious, directory.path().join("journal-00000001")).expect("a new link");
    symlink(&precious, directory.path().join("run-00000001")).expect("a new link");
    store.put(b"1", b"v").expect("written");
    let _refused = store.flush();
    store.flush().expect("with another number");
    store.close().expect("closed");
    assert_eq!(fs::read(&precious).expect("read"), b"precious");
}

#[test]
fn a_store_that_is_read_is_left_as_it_is() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    store.put(b"1", b"v").expect("written");
    store.flush().expect("flushed");
    store.put(b"2", b"v").expect("written");
    drop(store);
    let before = content(directory.path());
    assert!(before.keys().any(|name| name.starts_with("journal-")));
    let set_mode = |mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(directory.path(), permissions).expect("set");
    };
    set_mode(0o555);
    let one = open(directory.path(), &reading());
    // Several may read, but nobody writes.
    let other = open(directory.path(), &reading());
    let written = DiskStore::open(directory.path(), options());
    assert_eq!(written.err(), Some(Error::Locked));
    let survey = Survey::new(Arc::new(RealFs), directory.path()).expect("it is read");
    let report = verify(&survey, &mut |_| ControlFlow::Continue(())).expect("checked");
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    drop(survey);
    assert_eq!(all(&one), all(&other));
    assert_eq!(all(&one).len(), 2);
    for refused in [one.put(b"3", b"v"), one.delete(b"1"), one.compact()] {
        assert!(matches!(refused, Err(Error::ReadOnly(_))), "{refused:?}");
    }
    assert_eq!(
        (one.sync(), one.flush(), one.close()),
        (Ok(()), Ok(()), Ok(()))
    );
    drop(other);
    set_mode(0o755);
    assert_eq!(content(directory.path()), before);
    let missing = DiskStore::open(&directory.path().join("none"), reading());
    assert_eq!(missing.err(), Some(Error::Missing));
    assert!(!directory.path().join("none").exists());
    assert_eq!(all(&open(directory.path(), &options())).len(), 2);
}

/// A store that was closed is opened without a change of its directory, and has no journal until it
/// is written to.
#[test]
fn opening_a_store_that_was_closed_writes_nothing() {
    let directory = Directory::new();
    let store = open(directory.path(), &Options::new());
    store.put(b"1", b"v").expect("written");
    store.close().expect("closed");
    let before = content(directory.path());
    let store = open(directory.path(), &Options::new());
    assert_eq!(all(&store).len(), 1);
    assert_eq!(content(directory.path()), before);
    store.close().expect("closed");
    assert_eq!(content(directory.path()), before);
}
