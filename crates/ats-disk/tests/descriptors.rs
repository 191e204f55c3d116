//! Descriptors: a store that is not in use has one, and files that are only read share some.

#[path = "support/directory.rs"]
mod directory;

use ats_disk::fs::{open_files, set_open_files};
use ats_disk::{Batch, Compression, DiskStore, Durability, Error, Options};
use ats_store::{Direction, KeyRange};
use directory::Directory;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{scope, sleep};
use std::time::Duration;

/// Held by each test, since all files of the process share the limit.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the names of the files of a directory, and of itself, that are open.
fn open_names(directory: &Path) -> Vec<String> {
    let descriptors = fs::read_dir("/proc/self/fd").expect("Linux lists descriptors");
    let targets = descriptors.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    let ours = targets.filter(|target| target.starts_with(directory));
    let name = |target: std::path::PathBuf| {
        let name = target.strip_prefix(directory).expect("it is ours");
        name.display().to_string()
    };
    let mut names: Vec<_> = ours.map(name).collect();
    names.sort();
    names
}

fn key(number: usize) -> Vec<u8> {
    format!("key-{number:06}").into_bytes()
}

/// Returns a store that reads nothing from memory, with `runs` runs of several files.
fn with_files(directory: &Path, runs: usize) -> DiskStore {
    let options = Options::new()
        .background(false)
        .cache_bytes(0)
        .compression(Compression::None)
        .file_bytes(1_000)
        .block_bytes(200);
    let store = DiskStore::open(directory, options).expect("a new store");
    for run in 0..runs {
        for number in (run..1000).step_by(runs) {
            store.put(&key(number), &key(number)).expect("written");
        }
        store.flush().expect("flushed");
    }
    store
}

fn check(store: &DiskStore, step: usize) {
    for number in (0..1000).step_by(step) {
        let value = store.get(&key(number)).expect("read");
        assert_eq!(value, Some(key(number)));
    }
    for direction in [Direction::Up, Direction::Down] {
        let mut scan = store
            .scan_lending(KeyRange::default(), direction)
            .expect("a walk");
        let mut found = 0;
        while let Some((key, value)) = scan.next().expect("read") {
            assert_eq!(key, value);
            found += 1;
        }
        assert_eq!(found, 1000);
    }
}

#[test]
fn more_files_are_read_than_may_be_open() {
    let _alone = alone();
    let directory = Directory::new();
    set_open_files(5);
    let store = with_files(directory.path(), 3);
    let files: usize = store.info().runs.iter().map(|run| run.files).sum();
    assert!(files >= 20, "{files} files");
    check(&store, 1);
    assert_eq!(open_files(), 5);
    // The directory and the journal are open besides.
    let names = open_names(directory.path());
    let runs = names.iter().filter(|name| name.starts_with("run-"));
    assert_eq!(runs.count(), 5, "{names:?}");
    scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || check(store, 7 + thread));
        }
        scope.spawn(|| {
            for most in [1, 9, 2, 30, 1].repeat(20) {
                set_open_files(most);
                sleep(Duration::from_millis(1));
            }
        });
        store.compact().expect("merged");
    });
    set_open_files(1);
    // The open file may have been compacted.
    check(&store, 1000);
    assert_eq!(open_files(), 1);
    // A caller that may not block opens no file.
    let is_open = |number: usize| match store.try_get(&key(number), &mut |value| {
        assert_eq!(value, key(number));
    }) {
        Ok(is_there) => is_there,
        Err(error) => {
            assert_eq!(error, Error::WouldBlock);
            false
        }
    };
    let open = (0..1000).filter(|number| is_open(*number)).count();
    assert!(open < 1000, "all {open} are read at once");
    store.verify().expect("whole");
    store.close().expect("closed");
    drop(store);
    assert_eq!(open_names(directory.path()), [""; 0]);
    set_open_files(1000);
}

#[test]
fn small_stores_that_are_written_to_have_two_descriptors() {
    const STORES: usize = 60;
    /// Number of files that may be open although they were read a few times only.
    const HARDLY_READ: usize = 16;
    let _alone = alone();
    set_open_files(1000);
    let directory = Directory::new();
    let options = Options::new().background(false);
    let open = |number: usize| {
        let path = directory.path().join(format!("store-{number:02}"));
        DiskStore::open(&path, options.clone()).expect("it opens")
    };
    let get = |store: &DiskStore, number| {
        assert_eq!(store.get(&key(number)), Ok(Some(key(number))));
    };
    for number in 0..STORES {
        let store = open(number);
        store.put(&key(number), &key(number)).expect("written");
        store.close().expect("closed");
    }
    let stores: Vec<_> = (0..STORES).map(open).collect();
    let count_runs = || {
        let names = open_names(directory.path());
        let is_run = |name: &&String| name.contains("/run-");
        (names.iter().filter(is_run).count(), names.len())
    };
    assert_eq!(count_runs(), (HARDLY_READ, STORES + HARDLY_READ));
    for (number, store) in stores.iter().enumerate() {
        get(store, number);
        store.put(b"key", b"value").expect("written");
    }
    // A directory and a journal each.
    assert_eq!(count_runs(), (HARDLY_READ, 2 * STORES + HARDLY_READ));
    // Records in memory need no file.
    for (number, store) in stores.iter().enumerate() {
        for _ in 0..100 {
            get(store, number);
        }
    }
    let names = open_names(directory.path());
    let is_open = |number: usize| {
        let run = format!("store-{number:02}/run-");
        names.iter().any(|name| name.starts_with(&run))
    };
    assert!((0..STORES - HARDLY_READ).all(|number| !is_open(number)));
    drop(stores);
    // Files that are read stay open, however many others are opened.
    let read = with_files(&directory.path().join("read"), 3);
    let files: usize = read.info().runs.iter().map(|run| run.files).sum();
    assert!(files > HARDLY_READ, "{files} files");
    check(&read, 1);
    assert_eq!(count_runs().0, files);
    let _others: Vec<_> = (0..STORES).map(open).collect();
    assert_eq!(count_runs().0, files + HARDLY_READ);
}

#[test]
fn files_are_closed_where_there_are_no_descriptors() {
    let _alone = alone();
    set_open_files(1000);
    let [directory, other] = [Directory::new(), Directory::new()];
    let store = with_files(directory.path(), 3);
    check(&store, 1);
    let before = getrlimit(Resource::Nofile);
    let opened = open_files();
    // The last one is that of the listing.
    let used = fs::read_dir("/proc/self/fd").expect("listed").count() as u64;
    let limit = Rlimit {
        current: Some(used - 1),
        ..before
    };
    setrlimit(Resource::Nofile, limit).expect("it is less");
    let second = DiskStore::open(other.path(), Options::new());
    let second = second.expect("a new store");
    second.put(b"key", b"value").expect("written");
    let closed = opened - open_files();
    check(&store, 1);
    setrlimit(Resource::Nofile, before).expect("as it was");
    assert!(closed > 0 && open_files() < opened, "{closed} of {opened}");
}

#[test]
fn a_store_that_is_not_in_use_has_one_descriptor() {
    let _alone = alone();
    set_open_files(1000);
    let directory = Directory::new();
    let options = Options::new()
        .background(false)
        .durability(Durability::System);
    let open = || DiskStore::open(directory.path(), options.clone()).expect("it opens");
    let store = open();
    store.put(b"a", b"1").expect("written");
    store.flush().expect("flushed");
    store.put(b"b", b"2").expect("written");
    assert_eq!(
        open_names(directory.path()),
        ["", "journal-00000002", "run-00000001"]
    );
    let syncs = store.info().syncs;
    store.close_logs().expect("closed");
    assert_eq!(open_names(directory.path()), ["", "run-00000001"]);
    assert_eq!(store.info().syncs, syncs + 1);
    store.close_logs().expect("closed");
    assert_eq!(store.info().syncs, syncs + 1);
    // Opening a file can take long.
    let put = |key: &[u8], value: &[u8]| {
        let mut batch = Batch::new();
        batch.put(key, value)?;
        store.try_write(&batch, Durability::System)
    };
    let refused = put(b"c", b"3");
    assert_eq!(refused, Err(Error::WouldBlock));
    store.put(b"c", b"3").expect("written");
    put(b"d", b"4").expect("the journal is open again");
    store.close_logs().expect("closed");
    // A journal that is full is left without being opened again.
    store.flush().expect("flushed");
    store.put(b"e", b"5").expect("written");
    store.close_logs().expect("closed");
    drop(store);
    let store = open();
    let values = [b"a", b"b", b"c", b"d", b"e"].map(|key| store.get(key).expect("read"));
    let expected = ["1", "2", "3", "4", "5"].map(|value| Some(value.as_bytes().to_vec()));
    assert_eq!(values, expected);
    // The journal is one that this opening has not begun; the existing file is another one.
    store.put(b"f", b"6").expect("written");
    store.close_logs().expect("closed");
    let names = fs::read_dir(directory.path()).expect("listed");
    let journal = names
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.display().to_string().contains("journal"))
        .expect("there is one");
    let kept = directory.path().join("kept");
    fs::rename(&journal, &kept).expect("renamed");
    assert!(matches!(store.put(b"g", b"7"), Err(Error::Io { .. })));
    fs::write(&journal, "another file").expect("written");
    assert!(matches!(store.put(b"g", b"7"), Err(Error::Io { .. })));
    fs::rename(&kept, &journal).expect("renamed");
    store.put(b"g", b"7").expect("written");
    drop(store);
    let store = open();
    assert_eq!(store.get(b"f"), Ok(Some(b"6".to_vec())));
    assert_eq!(store.get(b"g"), Ok(Some(b"7".to_vec())));
}

#[test]
fn files_are_closed_after_a_while_without_writes() {
    let _alone = alone();
    set_open_files(1000);
    let directory = Directory::new();
    let store = DiskStore::open(directory.path(), Options::new()).expect("a new store");
    for round in 0..2_u8 {
        store.put(b"key", &[round]).expect("written");
        assert!(open_names(directory.path()).len() >= 2);
        let is_closed = || open_names(directory.path()) == [""];
        let closes = (0..300).any(|_| {
            sleep(Duration::from_millis(50));
            is_closed()
        });
        assert!(closes, "{:?}", open_names(directory.path()));
    }
    drop(store);
    let store = DiskStore::open(directory.path(), Options::new()).expect("it opens");
    assert_eq!(store.get(b"key"), Ok(Some(vec![1])));
}
