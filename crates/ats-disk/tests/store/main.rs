//! The promises of a store to its users, on the file system of the machine.

#[path = "../support/append.rs"]
mod append;
mod atomic;
mod bags;
mod blocking;
#[path = "../support/cases.rs"]
mod cases;
mod checkpoints;
mod closing;
mod copies;
mod deletes;
#[path = "../support/directory.rs"]
mod directory;
mod edge;
mod expiring;
mod gaps;
mod golden;
mod handles;
mod hooked;
mod interface;
mod kept;
mod live;
mod long_keys;
#[path = "../support/map.rs"]
mod map;
mod medians;
mod merging;
mod moments;
mod opening;
mod options;
mod readers;
mod resuming;
mod settling;
mod snapshots;
#[cfg(target_os = "linux")]
mod threads;
mod writers;

use ats_disk::{DiskStore, LendingScan, MayBlock, Options};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const BLOCK: Option<MayBlock> = Some(MayBlock::here());

type Records = Vec<(Vec<u8>, Vec<u8>)>;

fn open(directory: &Path, options: &Options) -> DiskStore {
    DiskStore::open(directory, options.clone()).expect("opened")
}

/// Returns all records that a walk comes to.
fn collect(mut scan: LendingScan) -> Records {
    let mut all = Records::new();
    while let Some((key, value)) = scan.next().expect("scanned") {
        all.push((key.to_vec(), value.to_vec()));
    }
    all
}

/// Returns all records of a store.
fn all(store: &DiskStore) -> Records {
    let records: Result<_, _> = store.scan(..).collect();
    records.expect("scanned")
}

/// Returns a number that looks random, always the same for these.
fn random(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Waits until something has happened. Returns `true` if it has, within a time that is long enough
/// on a busy machine.
fn wait_for(mut has_happened: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !has_happened() {
        if start.elapsed() > Duration::from_secs(120) {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}
