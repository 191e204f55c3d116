//! A store of each format that was ever released is opened, and has the same records as ever.
//!
//! `tests/golden/store-N` is the store of format N. It was left in the middle of everything:
//! changes in the journal, and a merge of which some files are complete. `tests/golden/README.md`
//! says how it was made, and how to add a new format.

use crate::append::Append;
use crate::collect;
use crate::directory::Directory;
use crate::hooked::{Call, HookedFs};
use crate::map::Model;
use crate::open;
use ats_disk::{Batch, Compression, DiskStore, Error, Lifetime, Options};
use ats_store::{Direction, KeyRange};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use xxhash_rust::xxh3::Xxh3;

/// The formats of which there is a golden store, each with the checksum of its files.
const FORMATS: [(u32, u64); 1] = [(1, 0xdb60_db56_9d81_4623)];
/// The format that the engine writes.
pub(crate) const NEWEST: u32 = FORMATS[FORMATS.len() - 1].0;

fn golden(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/store-{format}"))
}

/// Returns a copy of the golden store of a format. The original is never opened: that would change
/// it.
pub(crate) fn copy(format: u32) -> Directory {
    let directory = Directory::new();
    fs::create_dir(directory.path()).expect("a new directory");
    for (name, bytes) in files(&golden(format), "") {
        fs::write(directory.path().join(name), bytes).expect("written");
    }
    directory
}

/// Returns a checksum of the names and the contents of all files of a directory.
fn checksum(directory: &Path) -> u64 {
    let mut hash = Xxh3::new();
    for (name, bytes) in files(directory, "") {
        for part in [name.as_bytes(), &bytes] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    hash.digest()
}

/// Returns the names and the contents of the files that begin with this.
pub(crate) fn files(directory: &Path, prefix: &str) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("it is there") {
        let path = entry.expect("readable").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(prefix) {
            files.push((name.into_owned(), fs::read(&path).expect("readable")));
        }
    }
    files.sort();
    files
}

pub(crate) fn options() -> Options {
    Options::new()
        .operator(Arc::new(Append))
        .block_bytes(128)
        .compression(Compression::None)
        .file_bytes(300)
        .background(false)
}

fn key(number: u32) -> Vec<u8> {
    format!("key/{number:03}").into_bytes()
}

/// Writer to a store, if there is one, and to the model.
struct Writer<'s> {
    store: Option<&'s DiskStore>,
    model: Model,
    batch: Batch,
}

impl Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.put(key, value).expect("short");
        self.model.put(key, value);
    }

    fn delete(&mut self, key: &[u8]) {
        self.batch.delete(key).expect("short");
        self.model.delete(key);
    }

    fn merge(&mut self, key: &[u8], operand: &[u8]) {
        self.batch.merge(key, operand).expect("short");
        self.model.merge(key, operand);
    }

    fn delete_range(&mut self, low: Option<&[u8]>, high: Option<&[u8]>) {
        let range = KeyRange { low, high };
        self.batch.delete_range(range).expect("short");
        self.model.delete_range(range);
    }

    fn write(&mut self) {
        if let Some(store) = self.store {
            store.write(&self.batch).expect("written");
        }
        self.batch.clear();
    }

    fn flush(&mut self) {
        self.write();
        if let Some(store) = self.store {
            store.flush().expect("flushed");
        }
    }
}

/// Writes the records that the golden store has in runs of which a compaction was begun.
fn write_merging(writer: &mut Writer<'_>) {
    for number in 0..40 {
        writer.put(&key(number), format!("value of {number}").as_bytes());
    }
    writer.put(b"", b"the empty key");
    writer.put(&[0xff; 40], &[b'z'; 700]);
    writer.flush();
    writer.delete_range(Some(&key(10)), Some(&key(15)));
    for number in (0..40).step_by(3) {
        writer.merge(&key(number), format!("+{number}").as_bytes());
    }
    writer.delete(&key(20));
    writer.merge(b"only operands", b"a");
    writer.flush();
    for number in 30..60 {
        writer.merge(&key(number), format!("!{number}").as_bytes());
    }
    writer.merge(b"only operands", b"b");
    writer.flush();
}

/// Writes the records that it has in a newer run, and in the journal.
fn write_newer(writer: &mut Writer<'_>) {
    writer.delete_range(Some(b"x"), None);
    writer.merge(&key(12), b"after a range delete");
    writer.flush();
    writer.put(&key(1), b"of the journal");
    writer.delete(&key(2));
    writer.merge(&key(3), b"+of the journal");
    writer.delete_range(Some(&key(4)), Some(&key(6)));
    writer.put(&key(5), b"behind a range delete");
    writer.write();
    writer.delete_range(None, Some(b"key"));
    writer.write();
    if let Some(store) = writer.store {
        store.sync().expect("synced");
    }
    writer.merge(b"only operands", b"c");
    writer.write();
    writer.put(b"last", &[0, 1, 2, 255]);
    writer.write();
}

fn expected_model() -> Model {
    let mut writer = Writer {
        store: None,
        model: Model::default(),
        batch: Batch::new(),
    };
    write_merging(&mut writer);
    write_newer(&mut writer);
    writer.model
}

/// Reads a store in all ways.
pub(crate) fn check(store: &DiskStore) {
    let model = expected_model();
    let expected = model.all(&Append);
    assert_eq!(expected.len(), 55);
    for direction in [Direction::Up, Direction::Down] {
        let scan = store.scan_lending(KeyRange::default(), direction);
        let mut found = collect(scan.expect("a scan"));
        if direction == Direction::Down {
            found.reverse();
        }
        assert_eq!(found, expected);
    }
    let missing = [key(2), key(4), key(10), key(60), vec![], vec![0xff; 40]];
    for key in expected.iter().map(|(key, _)| key).chain(&missing) {
        let value = model.get(key, &Append);
        assert_eq!(value.is_none(), missing.contains(key));
        assert_eq!(store.get(key), Ok(value));
    }
    assert_eq!(store.verify(), Ok(()));
}

/// Makes a store such as the golden ones are.
fn make(directory: &Path) {
    // Journals have no room ahead, and only so many files of runs are made.
    let files_left = Arc::new(AtomicU32::new(u32::MAX));
    let left = Arc::clone(&files_left);
    let file_system = HookedFs::new(move |call, path| {
        let is_run = path.to_string_lossy().contains("run-");
        let is_refused = match call {
            Call::Create => is_run && left.fetch_sub(1, Ordering::Relaxed) == 0,
            Call::Reserve => !path.ends_with("reserve"),
            Call::Open | Call::Link | Call::Sync | Call::SyncDir | Call::Read | Call::Sleep => {
                false
            }
        };
        if !is_refused {
            Ok(())
        } else if call == Call::Reserve {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            // Too many open files.
            Err(io::Error::from_raw_os_error(24))
        }
    });
    let options = options().file_system(file_system);
    fs::create_dir(directory).expect("it is not there");
    let store = open(directory, &options);
    let mut writer = Writer {
        store: Some(&store),
        model: Model::default(),
        batch: Batch::new(),
    };
    write_merging(&mut writer);
    files_left.store(3, Ordering::Relaxed);
    assert!(matches!(store.compact(), Err(Error::Io { .. })));
    files_left.store(u32::MAX, Ordering::Relaxed);
    write_newer(&mut writer);
    check(&store);
    // The store is not closed: the journal stays.
    drop(store);
}

/// Opens a store such as the golden ones are, and goes on with it.
fn check_all(directory: &Path) {
    let names = |prefix| -> BTreeSet<String> {
        let files = files(directory, prefix).into_iter();
        files.map(|(name, _)| name).collect()
    };
    let before = names("run-");
    assert_eq!(names("journal-").len(), 1);
    let store = open(directory, &options());
    check(&store);
    // Three runs of a begun compaction, a newer one, and the records of the journal.
    let info = store.info();
    assert_eq!(info.runs.len(), 5);
    assert_eq!(info.flushes, 1);
    // The merge goes on, with the files that it has written.
    assert_eq!(store.work(), Ok(true));
    let info = store.info();
    assert_eq!((info.runs.len(), info.compactions), (3, 1));
    assert_eq!(store.work(), Ok(true), "files are removed");
    let kept = names("run-").intersection(&before).count();
    assert_eq!(kept, 2 + info.runs[1].files);
    check(&store);
    store.compact().expect("compacted");
    check(&store);
    store.close().expect("closed");
    check(&open(directory, &options()));
}

#[test]
fn stores_of_all_formats_are_read() {
    for (format, sum) in FORMATS {
        assert_eq!(checksum(&golden(format)), sum, "store-{format} was changed");
        let directory = copy(format);
        assert_eq!(checksum(directory.path()), sum);
        check_all(directory.path());
        assert_eq!(checksum(&golden(format)), sum);
    }
}

/// The format of stores whose records expire, of which there is a golden store, and the checksum of
/// its files.
const EXPIRING: (u32, u64) = (2, 0xc988_fddd_61e8_8ddd);
/// The time of day at which it was made, and later, in milliseconds since 1970.
const MADE: u64 = 1_800_000_000_000;
/// The time that records of it have that expire.
const SOON: Duration = Duration::from_secs(60);

fn expiring_options(wall_clock: u64) -> Options {
    // Journals have no room ahead.
    let file_system = HookedFs::new(|call, path| match call {
        Call::Reserve if !path.ends_with("reserve") => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    });
    file_system.set_wall_clock(wall_clock);
    options()
        .file_system(file_system)
        .lifetime(Lifetime::For(SOON))
}

/// Makes a store whose records expire, with some in runs and some in the journal.
fn make_expiring(directory: &Path) {
    fs::create_dir(directory).expect("it is not there");
    let store = open(directory, &expiring_options(MADE));
    let put = |number: u32, text: &str, lifetime: Lifetime| {
        let deadline = match lifetime {
            Lifetime::For(time) => Lifetime::Until(Duration::from_millis(MADE) + time),
            other => other,
        };
        let value = deadline.before(format!("{text} {number}").as_bytes());
        store.put(&key(number), &value).expect("written");
    };
    for number in 0..30 {
        put(number, "older", Lifetime::Forever);
    }
    store.flush().expect("flushed");
    for number in 0..20 {
        put(number, "soon", Lifetime::For(SOON));
    }
    store.flush().expect("flushed");
    for number in 10..15 {
        put(number, "journal", Lifetime::For(2 * SOON));
    }
    store.delete(&key(29)).expect("written");
    store.sync().expect("synced");
    put(16, "last", Lifetime::Forever);
    // The store is not closed: the journal stays.
    drop(store);
}

/// Opens it at some time, and goes on with it; the files tell that it was made before.
fn check_expiring(directory: &Path, wall_clock: u64) {
    let options = expiring_options(wall_clock);
    let is_later = |time: Duration| wall_clock >= MADE + time.as_millis() as u64;
    let expected: Vec<_> = (0..29)
        .filter_map(|number| {
            let text = match number {
                10..15 => (!is_later(2 * SOON)).then_some("journal")?,
                16 => "last",
                0..20 => (!is_later(SOON)).then_some("soon")?,
                _ => "older",
            };
            Some((key(number), format!("{text} {number}").into_bytes()))
        })
        .collect();
    let check = |store: &DiskStore| {
        let scan = store.scan_lending(.., Direction::Up).expect("a scan");
        assert_eq!(collect(scan), expected, "at {wall_clock}");
        assert_eq!(store.verify(), Ok(()));
    };
    check(&open(directory, &options.clone().read_only(true)));
    let store = open(directory, &options);
    check(&store);
    store.compact().expect("compacted");
    check(&store);
    store.close().expect("closed");
    check(&open(directory, &options));
    let without = DiskStore::open(directory, self::options());
    assert!(matches!(without.err(), Some(Error::Option { .. })));
}

fn check_expiring_at_all_times(make: impl Fn() -> Directory) {
    let soon = SOON.as_millis() as u64;
    for wall_clock in [1, MADE, MADE + soon, MADE + 2 * soon] {
        check_expiring(make().path(), wall_clock);
    }
}

#[test]
fn stores_whose_records_expire_are_read() {
    let (format, sum) = EXPIRING;
    assert_eq!(checksum(&golden(format)), sum, "store-{format} was changed");
    check_expiring_at_all_times(|| copy(format));
}

/// The variable that names the folder in which [`expiring_stores_can_be_made`] leaves a store.
const MAKE_EXPIRING: &str = "ATS_DISK_MAKE_GOLDEN_EXPIRING";

#[test]
fn expiring_stores_can_be_made() {
    if let Some(path) = std::env::var_os(MAKE_EXPIRING) {
        make_expiring(Path::new(&path));
        let sum = checksum(Path::new(&path));
        println!("{}: the checksum is {sum:#x}", path.display());
    }
    check_expiring_at_all_times(|| {
        let directory = Directory::new();
        make_expiring(directory.path());
        directory
    });
}

/// The variable that names the folder in which [`golden_stores_can_be_made`] leaves a store.
const MAKE: &str = "ATS_DISK_MAKE_GOLDEN";

#[test]
fn golden_stores_can_be_made() {
    let directory = Directory::new();
    make(directory.path());
    if let Some(path) = std::env::var_os(MAKE) {
        make(Path::new(&path));
        let sum = checksum(Path::new(&path));
        println!("{}: the checksum is {sum:#x}", path.display());
    }
    check_all(directory.path());
}
