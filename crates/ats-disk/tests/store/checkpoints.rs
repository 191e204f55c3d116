//! Checkpoints, beside writers, and where files cannot be linked.

use crate::directory::Directory;
use crate::hooked::{Call, HookedFs};
use crate::{Records, collect, open};
use ats_disk::fs::{RealFs, Sharing};
use ats_disk::offline::{Survey, verify};
use ats_disk::{Batch, DiskStore, Error, Options, StoreDirectory};
use ats_store::{Direction, KeyRange};
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::SystemTime;

const ACCOUNTS: u8 = 20;
const EACH: u64 = 1000;

fn all_of(store: &DiskStore) -> Records {
    let scan = store.scan_lending(KeyRange::default(), Direction::Up);
    collect(scan.expect("a scan"))
}

/// Opens a checkpoint, of which all files are right.
fn copy_of(path: &Path) -> Records {
    let survey = Survey::new(Arc::new(RealFs), path).expect("a store");
    let report = verify(&survey, &mut |_| ControlFlow::Continue(())).expect("it was read");
    assert_eq!(report.faults, []);
    assert_eq!(report.unfinished, []);
    assert!(survey.unneeded_files().is_empty());
    drop(survey);
    let read_only = Options::new().read_only(true);
    let read = all_of(&open(path, &read_only));
    let store = open(path, &Options::new());
    assert_eq!(all_of(&store), read);
    store.close().expect("closed");
    read
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("a number"))
}

/// Two writers move money between accounts, each in a batch of two changes: of each checkpoint the
/// sum is the same, and it has all writes before the call.
#[test]
fn a_checkpoint_is_a_moment() {
    let directory = Directory::new();
    let store = open(
        &directory.path().join("here"),
        &Options::new().memtable_bytes(64 << 10).file_bytes(32 << 10),
    );
    for account in 0..2 * ACCOUNTS {
        store.put(&[account], &EACH.to_le_bytes()).expect("written");
    }
    let (stop, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for half in 0..2 {
            let (store, stop, moved) = (&store, &stop, &moved);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(u64::from(half));
                while !stop.load(Ordering::Relaxed) {
                    let mut account = || half * ACCOUNTS + random.u8(..ACCOUNTS);
                    let (from, to) = (account(), account());
                    let mut batch = Batch::new();
                    for (account, by) in [(from, -1), (to, 1)] {
                        let money = store.get(&[account]).expect("read").expect("it is there");
                        let money = number(&money).wrapping_add_signed(by);
                        batch.put(&[account], &money.to_le_bytes()).expect("short");
                    }
                    if from != to {
                        store.write(&batch).expect("written");
                        moved.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for round in 0_u64..40 {
            store.put(b"round", &round.to_le_bytes()).expect("written");
            let path = directory.path().join(format!("copy{round}"));
            store.checkpoint(&path).expect("made");
            let copy = copy_of(&path);
            let (last, accounts) = copy.split_last().expect("records");
            assert_eq!((&last.0[..], number(&last.1)), (&b"round"[..], round));
            let sum: u64 = accounts.iter().map(|(_, money)| number(money)).sum();
            assert_eq!(sum, u64::from(2 * ACCOUNTS) * EACH);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(moved.into_inner() > 100);
}

/// Returns a store in one directory, and a hook that refuses links from there.
fn unlinkable(directory: &Directory) -> DiskStore {
    let here = directory.path().join("here");
    let from = here.clone();
    let file_system = HookedFs::new(move |call, path| match call {
        Call::Link if path.starts_with(&from) => Err(io::ErrorKind::CrossesDevices.into()),
        _ => Ok(()),
    });
    let options = Options::new().background(false).file_system(file_system);
    open(&here, &options)
}

fn inode(path: &Path) -> u64 {
    std::fs::metadata(path).expect("it is there").ino()
}

#[test]
fn only_new_files_are_copied() {
    let directory = Directory::new();
    let store = unlinkable(&directory);
    let at = |name: &str| directory.path().join(name);
    store.put(b"a", b"1").expect("written");
    store.flush().expect("flushed");
    store.put(b"b", b"2").expect("written");
    store.checkpoint(&at("first")).expect("made");
    store.flush().expect("flushed");
    let since = |to: &str, earlier: &str| {
        let earlier = StoreDirectory::open(Arc::new(RealFs), &at(earlier), Sharing::Shared)?;
        let target = StoreDirectory::make(Arc::new(RealFs), &at(to))?;
        store.checkpoint_in(&target, Some(&earlier), &[])
    };
    since("second", "first").expect("made");
    let run = |directory: &str, number| inode(&at(directory).join(format!("run-{number:08}")));
    assert_ne!(run("here", 1), run("first", 1));
    assert_eq!(run("first", 1), run("second", 1));
    let records = |pairs: &[(&[u8], &[u8])]| -> Records {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| (key.to_vec(), value.to_vec()))
            .collect()
    };
    let expected = records(&[(b"a", b"1"), (b"b", b"2")]);
    // A store that goes on from a checkpoint writes other files with the numbers of the source.
    let other = open(&at("first"), &Options::new());
    other.put(b"c", b"3").expect("written");
    other.flush().expect("flushed");
    assert_eq!(since("third", "first"), Err(Error::Locked));
    assert_eq!(since("third", "nowhere"), Err(Error::Missing));
    other.close().expect("closed");
    assert_eq!(copy_of(&at("second")), expected);
    since("third", "first").expect("made");
    assert_eq!(copy_of(&at("third")), expected);
}

/// A copy that goes on writes other files than its source, also where both know the same of them
/// without reading them.
#[test]
fn two_histories_are_not_mixed() {
    let directory = Directory::new();
    let store = unlinkable(&directory);
    let at = |name: &str| directory.path().join(name);
    store.put(b"a", b"1").expect("written");
    store.flush().expect("flushed");
    store.checkpoint(&at("first")).expect("made");
    let other = open(&at("first"), &Options::new());
    for (store, value) in [(&store, b"2"), (&other, b"3")] {
        store.put(b"b", value).expect("written");
        store.flush().expect("flushed");
    }
    other.close().expect("closed");
    for folder in ["here", "first"] {
        for entry in fs::read_dir(at(folder)).expect("it is there").flatten() {
            if entry.file_name().to_string_lossy().starts_with("run-") {
                let file = fs::File::options().write(true).open(entry.path());
                let set = file.and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH));
                set.expect("set");
            }
        }
    }
    let earlier = StoreDirectory::open(Arc::new(RealFs), &at("first"), Sharing::Shared);
    let target = StoreDirectory::make(Arc::new(RealFs), &at("second")).expect("made");
    let made = store.checkpoint_in(&target, earlier.ok().as_ref(), &[]);
    assert_eq!(made, Ok(()));
    drop(target);
    let of_source = [
        (b"a".to_vec(), b"1".to_vec()),
        (b"b".to_vec(), b"2".to_vec()),
    ];
    assert_eq!(copy_of(&at("second")), of_source);
}

/// The memtables of the moment become runs before the checkpoint has their journals.
#[test]
fn journals_stay_until_they_are_linked() {
    let directory = Directory::new();
    let flushed: Arc<Mutex<Option<DiskStore>>> = Arc::default();
    let hooked = Arc::clone(&flushed);
    let file_system = HookedFs::new(move |call, path| {
        let store = hooked.lock().expect("no panic").clone();
        match store.filter(|_| call == Call::Link && path.to_string_lossy().contains("journal-")) {
            Some(store) => {
                store.flush().expect("flushed");
                Ok(())
            }
            None => Ok(()),
        }
    });
    let options = Options::new().background(false).file_system(file_system);
    let here = directory.path().join("here");
    let store = open(&here, &options);
    store.put(b"a", b"1").expect("written");
    *flushed.lock().expect("no panic") = Some(store.clone());
    let there = directory.path().join("there");
    store.checkpoint(&there).expect("made");
    *flushed.lock().expect("no panic") = None;
    assert_eq!(store.info().runs.len(), 1);
    let journal = "journal-00000001";
    assert!(there.join(journal).exists() && !here.join(journal).exists());
    assert_eq!(copy_of(&there), [(b"a".to_vec(), b"1".to_vec())]);
}

#[test]
fn failed_checkpoints_leave_nothing() {
    let directory = Directory::new();
    let store = unlinkable(&directory);
    store.put(b"a", b"1").expect("written");
    let here = directory.path().join("here");
    let there = directory.path().join("there");
    assert_eq!(store.checkpoint(&here), Err(Error::Locked));
    store.checkpoint(&there).expect("made");
    let again = store.checkpoint(&there);
    assert!(again.is_err_and(|error| error.to_string().contains("files in the directory")));
    assert_eq!(copy_of(&there), [(b"a".to_vec(), b"1".to_vec())]);
    store.close().expect("closed");
    let other = directory.path().join("other");
    let closed = store.checkpoint(&other);
    assert!(matches!(closed, Err(Error::ReadOnly(_))), "{closed:?}");
    assert!(!other.exists());
}

/// The directory of a store may hold no other one, be it its own checkpoint or that of another
/// store.
#[test]
fn no_checkpoint_is_below_a_store() {
    let directory = Directory::new();
    let at = |name: &str| directory.path().join(name);
    let here = open(&at("here"), &Options::new());
    let other = open(&at("other"), &Options::new());
    here.put(b"a", b"1").expect("written");
    std::os::unix::fs::symlink(at("other"), at("link")).expect("linked");
    let files = || fs::read_dir(at("other")).expect("it was listed").count();
    let before = files();
    for path in [
        "here/in",
        "other/in",
        "other/far/in",
        "here/../other/in",
        "link/in",
    ] {
        let made = here.checkpoint(&at(path));
        let refused = made.expect_err("it was refused");
        let is_refused = matches!(&refused, Error::Io { error, .. }
            if error.kind == io::ErrorKind::InvalidInput);
        assert!(is_refused, "{path}: {refused:?}");
        assert!(refused.to_string().contains("the directory of a store"));
        assert!(!at(path).exists(), "{path}");
    }
    assert_eq!(files(), before);
    // A closed store is one, too. A file of others is no store, although it is called a manifest.
    other.close().expect("closed");
    assert!(here.checkpoint(&at("link/in")).is_err());
    fs::create_dir(at("folder")).expect("made");
    fs::write(at("folder/manifest"), "of cargo").expect("written");
    here.checkpoint(&at("folder/in")).expect("made");
    here.close().expect("closed");
    assert_eq!(copy_of(&at("folder/in")), [(b"a".to_vec(), b"1".to_vec())]);
    assert_eq!(copy_of(&at("here")), [(b"a".to_vec(), b"1".to_vec())]);
    assert_eq!(copy_of(&at("other")), []);
}
