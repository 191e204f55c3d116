//! A report of one moment, while another thread writes.
//!
//! The writer moves money between two accounts by batches, so their sum is the same at each moment.
//! A snapshot sees one moment; two reads that are not of a snapshot may see two.

use ats_disk::{Batch, DiskStore, Error, Options, Snapshot};
use std::thread;

const TOTAL: u64 = 1000;
const WRITES: u64 = 10_000;

/// Returns the sum of all accounts.
fn sum(snapshot: &Snapshot) -> Result<u64, Error> {
    let mut sum = 0;
    for record in snapshot.scan(..) {
        let (_, value) = record?;
        sum += u64::from_le_bytes(value.try_into().expect("values have eight bytes"));
    }
    Ok(sum)
}

/// Divides the money in two, as one change.
fn divide(store: &DiskStore, first: u64) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.put(b"one", &first.to_le_bytes())?;
    batch.put(b"two", &(TOTAL - first).to_le_bytes())?;
    store.write(&batch)
}

fn main() -> Result<(), Error> {
    let directory = std::env::temp_dir().join(format!("ats-snapshot-{}", std::process::id()));
    let store = DiskStore::open(&directory, Options::new())?;
    divide(&store, 700)?;
    let before = store.snapshot();

    thread::scope(|scope| {
        let writer =
            scope.spawn(|| (0..WRITES).try_for_each(|round| divide(&store, round % TOTAL)));
        let mut reports = 0;
        while reports == 0 || !writer.is_finished() {
            assert_eq!(sum(&store.snapshot())?, TOTAL);
            reports += 1;
        }
        println!("{reports} reports beside {WRITES} writes");
        writer.join().expect("the writer does not panic")
    })?;

    // The first snapshot still sees the same records, also when runs are compacted.
    store.compact()?;
    assert_eq!(before.get(b"one")?, Some(700_u64.to_le_bytes().to_vec()));
    drop(before);
    store.close()?;
    std::fs::remove_dir_all(&directory).ok();
    Ok(())
}
