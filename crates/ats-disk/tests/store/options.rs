//! Options are of any size that makes sense, and are refused by their names otherwise.

use crate::directory::Directory;
use ats_disk::{DiskStore, Durability, Error, Options};
use std::time::Duration;

#[test]
fn options_that_make_no_sense_are_refused_by_name() {
    let directory = Directory::new();
    let refused = |name: &str, change: &dyn Fn(&mut Options)| {
        let mut options = Options::new();
        change(&mut options);
        match DiskStore::open(directory.path(), options).err() {
            Some(Error::Option { name: found, .. }) => assert_eq!(found, name),
            other => panic!("{name}: {other:?}"),
        }
        assert!(!directory.path().exists());
    };
    refused("durability", &|options| {
        options.durability = Durability::Interval(Duration::ZERO);
    });
    refused("memtable_bytes", &|options| {
        options.memtable_bytes = Some(0);
    });
    refused("block_bytes", &|options| options.block_bytes = 0);
    refused("file_bytes", &|options| options.file_bytes = 0);
    for rate in [f64::NAN, -0.1, f64::NEG_INFINITY] {
        refused("false_positives", &|options| options.false_positives = rate);
    }
    for fan_in in [0, 1] {
        refused("fan_in", &|options| options.fan_in = fan_in);
    }
    refused("snapshot_age", &|options| {
        options.snapshot_age = Some(Duration::ZERO);
    });
}

#[test]
fn options_may_have_any_size() {
    let small = Options::new()
        .durability(Durability::Interval(Duration::from_nanos(1)))
        .memtable_bytes(1)
        .cache_bytes(0)
        .block_bytes(1)
        .file_bytes(1)
        .false_positives(0.0)
        .fan_in(2)
        .snapshot_age(Duration::from_nanos(1));
    let large = Options::new()
        .durability(Durability::Interval(Duration::MAX))
        .memtable_bytes(usize::MAX)
        .cache_bytes(usize::MAX)
        .block_bytes(usize::MAX)
        .file_bytes(u64::MAX)
        .false_positives(f64::INFINITY)
        .fan_in(usize::MAX)
        .snapshot_age(Duration::MAX);
    for options in [small, large] {
        let directory = Directory::new();
        let open = || DiskStore::open(directory.path(), options.clone()).expect("opened");
        let store = open();
        for round in 0..3_u8 {
            for key in 0..30_u8 {
                store.put(&[key], &[round; 100]).expect("written");
            }
            store.flush().expect("flushed");
        }
        store.compact().expect("compacted");
        store.verify().expect("sound");
        store.close().expect("closed");
        let store = open();
        for key in 0..30_u8 {
            assert_eq!(store.get(&[key]), Ok(Some(vec![2; 100])));
        }
    }
}
