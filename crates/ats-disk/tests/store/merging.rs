//! Operands that cannot be merged, and many of them.

use crate::append::Append;
use crate::directory::Directory;
use crate::open;
use ats_disk::{DiskStore, Error, Options};
use ats_store::{Direction, KeyRange, MergeOperator, Merged};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Puts the later value behind the earlier one, but fails for some keys, unless it was mended.
struct Fussy {
    is_mended: bool,
}

impl Fussy {
    fn panic_for(&self, wanted: &[u8], key: &[u8]) {
        if !self.is_mended && key == wanted {
            // Like `panic`, without a message.
            resume_unwind(Box::new(()));
        }
    }
}

impl MergeOperator for Fussy {
    fn name(&self) -> &'static str {
        "fussy"
    }

    fn version(&self) -> u32 {
        1
    }

    fn merge(&self, key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, ats_store::Error> {
        self.panic_for(b"merge panics", key);
        if key == b"refused" && !self.is_mended {
            Err(ats_store::Error::Merge)
        } else {
            Ok(Merged::New([earlier, later].concat()))
        }
    }

    fn is_base(&self, key: &[u8], _value: &[u8]) -> bool {
        self.panic_for(b"base panics", key);
        false
    }

    fn is_absent(&self, key: &[u8], _value: &[u8]) -> bool {
        self.panic_for(b"absent panics", key);
        false
    }
}

fn options(is_mended: bool) -> Options {
    Options::new()
        .operator(Arc::new(Fussy { is_mended }))
        .background(false)
}

const KEYS: [&[u8]; 5] = [
    b"absent panics",
    b"base panics",
    b"fine",
    b"merge panics",
    b"refused",
];

/// All keys but one of which not even the base is known are read, or fail, as they should.
fn check(store: &DiskStore, value: &[u8]) {
    let fails = |key: &[u8]| key != b"fine" && key != b"base panics";
    for key in KEYS {
        let expected = if fails(key) {
            Err(Error::Merge)
        } else {
            Ok(Some(value.to_vec()))
        };
        assert_eq!(store.get(key), expected, "{}", key.escape_ascii());
        assert_eq!(store.snapshot().get(key), expected);
    }
    for direction in [Direction::Up, Direction::Down] {
        let mut scan = store
            .scan_lending(KeyRange::default(), direction)
            .expect("a scan");
        let (mut failed, mut found) = (0, 0);
        loop {
            match scan.next() {
                Err(Error::Merge) => failed += 1,
                Err(error) => panic!("{error:?}"),
                Ok(None) => break,
                Ok(Some((key, found_value))) => {
                    assert!(!fails(key));
                    assert_eq!(found_value, value);
                    found += 1;
                }
            }
        }
        assert_eq!((failed, found), (3, 2));
    }
}

#[test]
fn only_reads_fail_where_the_operator_does() {
    let directory = Directory::new();
    let store = open(directory.path(), &options(false));
    for round in [b"1", b"2"] {
        for (key, operand) in KEYS
            .iter()
            .flat_map(|key| [b"a", b"b"].map(|operand| (key, operand)))
        {
            store.merge(key, operand).expect("written");
            store.merge(key, round).expect("written");
        }
        store.flush().expect("flushed");
    }
    check(&store, b"a1b1a2b2");
    store.compact().expect("compacted");
    assert!(store.info().refused_merges > 0);
    // Entries in the order of `KEYS`. A value that counted as missing, or not, when it was merged,
    // stays so.
    assert_eq!(store.info().runs[0].entries, 2 + 1 + 1 + 8 + 8);
    assert_eq!(store.verify(), Ok(()));
    check(&store, b"a1b1a2b2");
    for key in KEYS {
        store.merge(key, b"c").expect("written");
        store.merge(key, b"d").expect("written");
    }
    check(&store, b"a1b1a2b2cd");
    // Recovery goes on, too.
    drop(store);
    let store = open(directory.path(), &options(false));
    check(&store, b"a1b1a2b2cd");
    drop(store);
    // All operands were kept, in their order.
    let store = open(directory.path(), &options(true));
    for key in KEYS {
        assert_eq!(store.get(key), Ok(Some(b"a1b1a2b2cd".to_vec())));
    }
    store.compact().expect("compacted");
    assert_eq!(store.info().runs[0].entries, KEYS.len() as u64);
    for key in KEYS {
        assert_eq!(store.get(key), Ok(Some(b"a1b1a2b2cd".to_vec())));
    }
}

#[test]
fn keys_whose_merge_fails_can_be_replaced() {
    let directory = Directory::new();
    let store = open(directory.path(), &options(false));
    for flushes in 0..4 {
        store.merge(b"refused", b"1").expect("written");
        store.merge(b"refused", b"2").expect("written");
        if flushes % 2 == 1 {
            store.flush().expect("flushed");
        }
        assert_eq!(store.get(b"refused"), Err(Error::Merge));
        match flushes {
            0 => store.put(b"refused", b"new").expect("written"),
            1 => store.delete(b"refused").expect("written"),
            _ => {
                let range = KeyRange {
                    low: Some(b"r"),
                    high: Some(b"s"),
                };
                store.delete_range(range).expect("written");
            }
        }
        let expected = (flushes == 0).then(|| b"new".to_vec());
        assert_eq!(store.get(b"refused"), Ok(expected));
        store.delete(b"refused").expect("written");
    }
    store.compact().expect("compacted");
    assert_eq!(store.info().runs.len(), 0);
}

#[test]
fn many_operands_of_a_key_are_read_at_once() {
    const OPERANDS: usize = 50_000;
    // Much more than it should take, since tests are not optimised.
    const MOST: Duration = Duration::from_millis(50);
    let directory = Directory::new();
    let options = Options::new().operator(Arc::new(Append)).background(false);
    let store = open(directory.path(), &options);
    let check = |store: &DiskStore, count: usize| {
        let times = (0..3).map(|_| {
            let start = Instant::now();
            let mut found = 0;
            let read = store.get_with(b"k", &mut |value| found = value.len());
            assert_eq!((read, found), (Ok(true), count));
            start.elapsed()
        });
        let best = times.min().expect("three");
        assert!(best < MOST, "{best:?}");
    };
    for number in 0..OPERANDS {
        store.merge(b"k", b"x").expect("written");
        if number == OPERANDS / 2 {
            check(&store, number + 1);
            store.flush().expect("flushed");
        }
    }
    check(&store, OPERANDS);
    drop(store);
    let store = open(directory.path(), &options);
    check(&store, OPERANDS);
    // A snapshot after each keeps them from being merged before they are read.
    let mut snapshots = Vec::new();
    for _ in 0..2000 {
        store.merge(b"k", b"x").expect("written");
        snapshots.push(store.snapshot());
    }
    check(&store, OPERANDS + 2000);
    drop(snapshots);
    store.compact().expect("compacted");
    check(&store, OPERANDS + 2000);
}
