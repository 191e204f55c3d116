//! Stores that are left alone put themselves in order.

use crate::directory::Directory;
use crate::{all, open, random, wait_for};
use ats_disk::{DiskStore, Options};

/// Writes three runs of about the same size: too few to be merged while there are writes.
fn load(store: &DiskStore) {
    for run in 0..3 {
        for number in 0..1000_u32 {
            let key = random((run, number)).to_be_bytes();
            store.put(&key, &number.to_be_bytes()).unwrap();
        }
        store.flush().unwrap();
    }
}

#[test]
fn a_store_that_was_loaded_settles_when_told_to() {
    let directory = Directory::new();
    let options = Options {
        threads: 0,
        ..Options::default()
    };
    let store = open(directory.path(), &options);
    load(&store);
    assert_eq!(store.work(), Ok(false));
    assert_eq!(store.info().runs.len(), 3);
    let before = all(&store);
    store.settle().unwrap();
    assert_eq!(store.info().runs.len(), 1);
    assert_eq!(all(&store), before);
    store.put(b"one more", b"value").unwrap();
    store.settle().unwrap();
    let info = store.info();
    // A run of one record is not worth another merge of all.
    assert_eq!(info.runs.len(), 2);
    assert_eq!((info.runs[0].entries, info.runs[1].entries), (1, 3000));
    store.settle().unwrap();
    assert_eq!(store.info().merges, info.merges);
    store.delete(b"one more").unwrap();
    assert_eq!(all(&store), before);
    store.close().unwrap();
}

#[test]
fn a_store_settles_where_writes_pause() {
    let directory = Directory::new();
    let store = open(directory.path(), &Options::default());
    load(&store);
    assert_eq!(store.info().runs.len(), 3);
    let before = all(&store);
    assert!(wait_for(|| store.info().runs.len() == 1));
    assert_eq!(all(&store), before);
    store.close().unwrap();
}
