//! A store that cannot be opened is refused with an error that says why, and is not changed.

use crate::directory::Directory;
use crate::golden::{NEWEST, check, copy, files, options};
use crate::hooked::{Call, HookedFs};
use ats_disk::{DiskStore, Error, Options, StoreDirectory};
use ats_store::{MergeOperator, Merged};
use std::fs;
use std::io::{self, BufRead, BufReader, Lines, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// Says in the header of a log that it has another format.
fn set_log_format(log: &mut [u8], format: u32) {
    assert_eq!(log[..8], *b"ats log\n");
    log[8..12].copy_from_slice(&format.to_le_bytes());
    let checksum = xxh3_64(&log[..56]);
    log[56..64].copy_from_slice(&checksum.to_le_bytes());
}

/// Says in the footer of a run file that it has another format.
fn set_run_format(file: &mut [u8], format: u32) {
    let (before, checksum) = file.split_at_mut(file.len() - 8);
    let end = before.len();
    assert_eq!(before[end - 8..], *b"ats-run\n");
    before[end - 12..end - 8].copy_from_slice(&format.to_le_bytes());
    let length = before[end - 16..end - 12].try_into().expect("4 bytes");
    let footer = end - 16 - u32::from_le_bytes(length) as usize;
    checksum.copy_from_slice(&xxh3_64(&before[footer..]).to_le_bytes());
}

#[test]
fn files_of_a_newer_format_are_refused() {
    for (prefix, named, newest) in [
        // Stores whose records expire have manifests of a later format.
        ("manifest", "manifest", NEWEST + 1),
        ("journal-", "journal-", NEWEST),
        ("run-", "run file", NEWEST),
    ] {
        let directory = copy(NEWEST);
        let files = files(directory.path(), prefix);
        let (name, bytes) = &files[0];
        let set_format = |format| {
            let mut bytes = bytes.clone();
            match prefix {
                "run-" => set_run_format(&mut bytes, format),
                _ => set_log_format(&mut bytes, format),
            }
            assert_eq!(bytes == files[0].1, format == NEWEST);
            fs::write(directory.path().join(name), bytes).expect("written");
        };
        // The first record names the header, so a manifest of another format is a spoilt one.
        if newest > NEWEST {
            set_format(newest);
            let opened = DiskStore::open(directory.path(), options()).err();
            assert!(matches!(opened, Some(Error::Corrupt(_))), "{opened:?}");
        }
        set_format(newest + 1);
        match DiskStore::open(directory.path(), options()).err() {
            Some(Error::NewerFormat { file, found, known }) => {
                assert!(file.starts_with(named), "{file}");
                assert_eq!((found, known), (newest + 1, newest));
            }
            other => panic!("{prefix}: {other:?}"),
        }
        // Nothing was lost by trying.
        set_format(NEWEST);
        let store = DiskStore::open(directory.path(), options()).expect("it is sound");
        check(&store);
    }
}

/// An operator by name only.
struct Named(&'static str, u32);

impl MergeOperator for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn version(&self) -> u32 {
        self.1
    }

    fn merge(
        &self,
        _key: &[u8],
        _earlier: &[u8],
        _later: &[u8],
    ) -> Result<Merged, ats_store::Error> {
        Err(ats_store::Error::Merge)
    }
}

#[test]
fn another_operator_is_refused() {
    let directory = copy(NEWEST);
    let named = |name, version| Some(Arc::new(Named(name, version)) as Arc<dyn MergeOperator>);
    for (operator, given) in [
        (named("append", 2), Some((String::from("append"), 2))),
        (named("Append", 1), Some((String::from("Append"), 1))),
        (named("", 1), Some((String::new(), 1))),
        (None, None),
    ] {
        let mut options = options();
        options.operator = operator;
        let other = Error::OtherOperator {
            stored: Some((String::from("append"), 1)),
            given,
        };
        let opened = DiskStore::open(directory.path(), options);
        assert_eq!(opened.err(), Some(other));
    }
    let store = DiskStore::open(directory.path(), options()).expect("with its operator");
    check(&store);

    let plain = Directory::new();
    let without = || {
        let mut options = options();
        options.operator = None;
        options
    };
    drop(DiskStore::open(plain.path(), without()).expect("a new store"));
    let other = Error::OtherOperator {
        stored: None,
        given: Some((String::from("append"), 1)),
    };
    assert_eq!(DiskStore::open(plain.path(), options()).err(), Some(other));
    assert!(DiskStore::open(plain.path(), without()).is_ok());
}

#[test]
fn a_store_that_is_not_there_is_missing() {
    let directory = Directory::new();
    let options = || options().create(false);
    let open = || DiskStore::open(directory.path(), options());
    assert_eq!(open().err(), Some(Error::Missing));
    assert!(!directory.path().exists());
    fs::create_dir(directory.path()).expect("a new directory");
    assert_eq!(open().err(), Some(Error::Missing));
    let foreign = directory.path().join("run-of-something-else");
    fs::write(&foreign, "").expect("written");
    assert_eq!(open().err(), Some(Error::Missing));
    // Files of others do not matter, and stay.
    let made = DiskStore::open(directory.path(), options().create(true));
    drop(made.expect("a new store"));
    drop(open().expect("it is there now"));
    assert!(foreign.exists());
    // Runs without a manifest are not taken for a new store.
    let copy = copy(NEWEST);
    fs::remove_file(copy.path().join("manifest")).expect("it was there");
    let opened = DiskStore::open(copy.path(), self::options());
    assert!(matches!(opened.err(), Some(Error::Corrupt(_))));
    assert!(!files(copy.path(), "run-").is_empty());
}

const PATH: &str = "ATS_DISK_OTHER_PROCESS";

/// The work of the other process, which [`a_store_is_open_once`] starts.
fn be_the_other_process(path: &Path) {
    match DiskStore::open(path, options()) {
        Err(error) => println!("\nopened: {error:?}"),
        Ok(store) => {
            store.put(b"of the other process", b"1").expect("written");
            println!("\nopened: yes");
            // Until it is killed.
            let _ended = io::stdin().read(&mut [0]);
        }
    }
}

/// Another process that has opened a store, or has tried to.
struct Other {
    process: Child,
    /// Read to its end: a process cannot end well that writes where there is no reader.
    out: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(path: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("it has a name"))
            .args(["--exact", "opening::a_store_is_open_once", "--nocapture"])
            .env(PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let out = process.stdout.take().expect("piped");
        Other {
            process,
            out: BufReader::new(out).lines(),
        }
    }

    /// Returns the result of opening the store.
    fn await_open(&mut self) -> String {
        let mut lines = self.out.by_ref().map_while(Result::ok);
        let opened = lines.find_map(|line| line.strip_prefix("opened: ").map(String::from));
        opened.expect("it tells")
    }

    fn wait(mut self) -> ExitStatus {
        self.out.for_each(drop);
        self.process.wait().expect("it ends")
    }
}

#[test]
fn a_store_is_open_once() {
    if let Some(path) = std::env::var_os(PATH) {
        return be_the_other_process(Path::new(&path));
    }
    let directory = copy(NEWEST);
    let open = || DiskStore::open(directory.path(), options());
    let store = open().expect("it is sound");
    assert_eq!(open().err(), Some(Error::Locked));
    let mut other = Other::start(directory.path());
    assert_eq!(other.await_open(), "Locked");
    assert!(other.wait().success());
    // A clone keeps it open.
    let clone = store.clone();
    drop(store);
    assert_eq!(open().err(), Some(Error::Locked));
    drop(clone);
    let store = open().expect("it is open no more");
    store.close().expect("closed");
    let mut other = Other::start(directory.path());
    assert_eq!(other.await_open(), "yes");
    assert_eq!(open().err(), Some(Error::Locked));
    assert!(store.put(b"k", b"v").is_err());
    other.process.kill().expect("killed");
    assert!(!other.wait().success());
    // Writes of a process before it was killed are there.
    let store = open().expect("it is open no more");
    assert_eq!(store.get(b"of the other process"), Ok(Some(b"1".to_vec())));
    store.delete(b"of the other process").expect("written");
    check(&store);
}

/// A process has all open files of the one that it was begun by, until it runs its program.
#[test]
fn a_store_can_be_opened_again_while_a_process_is_begun() {
    let directory = Directory::new();
    let open = || DiskStore::open(directory.path(), Options::new());
    let store = open().expect("opened");
    thread::scope(|scope| {
        let (begun, begins) = io::pipe().expect("a pipe");
        scope.spawn(move || {
            let mut command = Command::new("true");
            // SAFETY: the closure only makes calls of the system, which are allowed between fork
            // and exec.
            unsafe {
                command.pre_exec(move || {
                    (&begins).write_all(b"!")?;
                    thread::sleep(Duration::from_millis(500));
                    Ok(())
                });
            }
            assert!(command.status().expect("it ran").success());
        });
        (&begun).read_exact(&mut [0]).expect("begun");
        drop(store);
        assert!(open().is_ok());
    });
}

/// An earlier manifest was put back: files that it does not name are not removed before all that it
/// names were found.
#[test]
fn an_older_manifest_does_no_harm() {
    let directory = Directory::new();
    let options = || Options::new().background(false);
    let open = || DiskStore::open(directory.path(), options());
    let manifest = directory.path().join("manifest");
    let store = open().expect("a new store");
    for round in 0..3_u8 {
        for key in 0..100_u8 {
            store.put(&[key], &[round]).expect("written");
        }
        store.flush().expect("flushed");
    }
    store.close().expect("closed");
    let older = fs::read(&manifest).expect("read");
    let store = open().expect("it is sound");
    store.put(b"new", b"").expect("written");
    store.compact().expect("compacted");
    store.close().expect("closed");
    let newer = fs::read(&manifest).expect("read");
    fs::write(&manifest, older).expect("written");
    assert!(open().is_err());
    fs::write(&manifest, newer).expect("written");
    let store = open().expect("nothing was lost");
    assert_eq!(store.get(b"new"), Ok(Some(Vec::new())));
    assert_eq!(store.get(&[7]), Ok(Some(vec![2])));
}

/// A store that cannot be opened is tried again and again; that leaves no files.
#[test]
fn failed_openings_leave_nothing() {
    let directory = Directory::new();
    let options = || Options::new().background(false);
    let open = || DiskStore::open(directory.path(), options());
    let store = open().expect("a new store");
    store.put(b"key", b"value").expect("written");
    store.close().expect("closed");
    let (run, bytes) = files(directory.path(), "run-").remove(0);
    fs::remove_file(directory.path().join(&run)).expect("it was there");
    for _ in 0..3 {
        assert!(matches!(open().err(), Some(Error::Io { .. })));
        assert!(files(directory.path(), "journal-").is_empty());
    }
    fs::write(directory.path().join(&run), bytes).expect("written");
    let store = open().expect("it is whole");
    assert_eq!(store.get(b"key"), Ok(Some(b"value".to_vec())));
}

/// A store and the files beside it are made durable together: each file, and their names.
#[test]
fn a_store_is_made_with_files_beside_it() {
    let directory = Directory::new();
    let syncs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&syncs);
    let file_system = HookedFs::new(move |call, _| {
        let is_sync = [Call::Sync, Call::SyncDir].contains(&call);
        counted.fetch_add(usize::from(is_sync), Ordering::Relaxed);
        Ok(())
    });
    let options = Options::new().background(false);
    let with = |bytes: &[u8]| {
        let locked = StoreDirectory::make(file_system.clone(), directory.path());
        DiskStore::open_with(
            locked.expect("locked"),
            options.clone(),
            &[("table", bytes)],
        )
    };
    let store = with(b"first").expect("made");
    assert_eq!(syncs.load(Ordering::Relaxed), 3);
    store.close().expect("closed");
    // The file is made once.
    let store = with(b"second").expect("opened");
    assert_eq!(syncs.load(Ordering::Relaxed), 3);
    store.close().expect("closed");
    let written = fs::read(directory.path().join("table"));
    assert_eq!(written.expect("it is there"), b"first");
}
