//! A disk that is full: records can be read and the store opened, deletes are taken, and they give
//! room.

mod sim;

use ats_disk::{Batch, Compression, DiskStore, Durability, Error, Options};
use ats_store::{Direction, KeyRange};
use sim::disk::Disk;
use sim::fs::SimFs;
use sim::random::Random;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store on a machine with a small disk, and its expected records.
struct Full {
    fs: SimFs,
    store: Option<DiskStore>,
    records: Records,
    memtable_bytes: usize,
}

fn key(number: usize) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Io { error, .. } if error.kind == ErrorKind::StorageFull)
}

impl Full {
    fn new(capacity: u64, memtable_bytes: usize) -> Self {
        let fs = SimFs::new(Disk::default());
        fs.set_capacity(Some(capacity));
        let mut full = Full {
            fs,
            store: None,
            records: Records::new(),
            memtable_bytes,
        };
        full.open();
        full
    }

    fn options(&self, read_only: bool) -> Options {
        Options::new()
            .file_system(Arc::new(self.fs.clone()))
            .read_only(read_only)
            .memtable_bytes(self.memtable_bytes)
            .file_bytes(self.memtable_bytes as u64)
            .block_bytes(512)
            .compression(Compression::None)
            .background(false)
    }

    fn open(&mut self) {
        let store = DiskStore::open(Path::new("/store"), self.options(false));
        self.store = Some(store.expect("opening needs no room that it cannot give back"));
    }

    fn store(&self) -> &DiskStore {
        self.store.as_ref().expect("it is open")
    }

    /// Opens it again, after it was closed, or after the process has ended, for reading first.
    fn open_again(&mut self, closes: bool) {
        let store = self.store.take().expect("it is open");
        if closes {
            // Records that are not in runs are in the journal.
            let _maybe_full = store.close();
        }
        drop(store);
        self.fs = self.fs.kill();
        let store = DiskStore::open(Path::new("/store"), self.options(true));
        self.compare(&store.expect("it can be read"));
        self.fs = self.fs.kill();
        self.open();
        self.compare(self.store());
    }

    fn compare(&self, store: &DiskStore) {
        let mut scan = store
            .scan_lending(KeyRange::default(), Direction::Up)
            .expect("it can be read");
        for (key, value) in &self.records {
            let found = scan.next().expect("it can be read");
            assert_eq!(found, Some((&key[..], &value[..])));
        }
        assert_eq!(scan.next(), Ok(None));
    }

    fn work(&self) {
        self.fs.advance(Duration::from_secs(2));
        for _ in 0..100_000 {
            match self.store().work() {
                Ok(true) => {}
                Ok(false) => return,
                // The store goes on, as its threads do.
                Err(error) => assert!(is_full(&error), "{error}"),
            }
        }
        panic!("there is always something to do");
    }

    /// Writes records until there is no room, even after all work that makes room. Returns their
    /// number.
    fn fill(&mut self, from: usize, random: &mut Random) -> usize {
        let (mut written, mut refused) = (0, 0);
        for number in from.. {
            let value = vec![number as u8; 20 + random.below(300)];
            match self.store().put(&key(number), &value) {
                Ok(()) => {
                    self.records.insert(key(number), value);
                    (written, refused) = (written + 1, 0);
                }
                Err(error) => {
                    assert!(is_full(&error), "{error}");
                    refused += 1;
                    self.work();
                    if refused == 3 {
                        break;
                    }
                }
            }
            if number % 16 == 0 {
                self.work();
            }
        }
        written
    }

    fn delete(&mut self, key: &[u8]) {
        self.store().delete(key).expect("deletes are taken");
        self.records.remove(key);
    }
}

/// Capacities in KiB, and bytes of memtables.
const SIZES: [(u64, usize); 7] = [
    (250, 2_000),
    (300, 10_000),
    (400, 40_000),
    (500, 4_000),
    (600, 100_000),
    (1000, 20_000),
    (2000, 200_000),
];

#[test]
fn deletes_give_room_on_a_full_disk() {
    for (seed, (kib, memtable_bytes)) in SIZES.into_iter().enumerate() {
        let capacity = kib << 10;
        let mut random = Random::new(seed as u64);
        let mut full = Full::new(capacity, memtable_bytes);
        let filled = full.fill(0, &mut random);
        let said = format!("{kib} KiB, memtables of {memtable_bytes}: {filled} records");
        assert!(filled > 10, "{said}");
        let content = |full: &Full| -> usize {
            let sizes = full
                .records
                .iter()
                .map(|(key, value)| key.len() + value.len());
            sizes.sum()
        };
        full.compare(full.store());
        full.open_again(seed % 2 == 0);
        // Single keys, one in two of those that there are.
        let before = content(&full);
        let keys: Vec<_> = full.records.keys().cloned().collect();
        for key in keys.iter().step_by(2) {
            full.delete(key);
            if random.one_in(10) {
                full.work();
            }
        }
        full.work();
        full.compare(full.store());
        let deleted = before - content(&full);
        // Half as much can be written again.
        full.fs.set_capacity(Some(capacity));
        let written = content(&full);
        full.fill(1_000_000, &mut random);
        let again = content(&full) - written;
        println!("{said}, {before} bytes; {deleted} were deleted, then {again} written");
        assert!(again * 2 > deleted, "{said}: {deleted} {again}");
        full.open_again(seed % 2 == 1);
        // All.
        let mut batch = Batch::new();
        batch
            .delete_range(KeyRange::default())
            .expect("not too long");
        let deleted = full.store().write_with(&batch, Durability::Always);
        deleted.expect("deletes are taken");
        full.records.clear();
        full.work();
        full.compare(full.store());
        full.open_again(true);
        full.work();
        let disk = full.fs.disk();
        let files = disk.files().into_iter();
        let others = files.filter(|(name, _)| &**name != "reserve");
        let left: u64 = others.map(|(_, file)| disk.content(file).len()).sum();
        assert!(left < 40 << 10, "{said}: {left} bytes are left");
        drop(disk);
        assert!(full.fill(0, &mut random) * 4 > filled * 3, "{said}");
        full.compare(full.store());
    }
}
