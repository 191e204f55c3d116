//! Finding a position by a function that says of a key whether it is below.

use crate::directory::Directory;
use crate::{all, open, random};
use ats_disk::{Options, Snapshot};
use ats_store::{Direction, KeyRange, successor};

/// The first key that is not below a position, and how many keys were asked about.
fn search(snapshot: &Snapshot, is_below: impl Fn(&[u8]) -> bool) -> (Option<Vec<u8>>, u32) {
    let (mut low, mut high, mut asked) = (Vec::new(), None, 0);
    loop {
        let range = KeyRange {
            low: Some(&low),
            high: high.as_deref(),
        };
        let Some(median) = snapshot.median(range).expect("read") else {
            let scan = snapshot.scan_lending(
                KeyRange {
                    low: Some(&low),
                    high: None,
                },
                Direction::Up,
            );
            let mut scan = scan.expect("a scan");
            let first = scan.next().expect("scanned");
            return (first.map(|(key, _)| key.to_vec()), asked);
        };
        assert!(low <= median && high.as_ref().is_none_or(|high| median < *high));
        let behind = KeyRange {
            low: Some(&median),
            high: high.as_deref(),
        };
        let mut scan = snapshot
            .scan_lending(behind, Direction::Up)
            .expect("a scan");
        match scan.next().expect("scanned") {
            None => high = Some(median),
            Some((key, _)) => {
                asked += 1;
                if is_below(key) {
                    low = successor(key);
                } else {
                    high = Some(median);
                }
            }
        }
    }
}

/// Keys of several lengths, which often have a long beginning in common.
fn key(number: u64) -> Vec<u8> {
    let front: &[u8] = match random(number) % 3 {
        0 => b"",
        1 => b"a long beginning",
        _ => b"a long beginning and more",
    };
    let digits = random((number, 1)).to_string().into_bytes();
    [front, &digits[..digits.len().min(1 + number as usize % 19)]].concat()
}

#[test]
fn bisecting_comes_to_the_position_that_a_walk_comes_to() {
    for (records, rounds) in [(0, 1), (1, 1), (40, 1), (3000, 1), (3000, 4)] {
        let directory = Directory::new();
        let options = Options::new()
            .background(false)
            .block_bytes(256)
            .file_bytes(8 << 10);
        let store = open(directory.path(), &options);
        for round in 0..rounds {
            for number in 0..records {
                match random((round, number, 2)) % 3 {
                    0 => store.put(&key(number), b"value").expect("written"),
                    1 if round > 0 => store.delete(&key(number)).expect("written"),
                    _ => {}
                }
            }
            if round + 1 < rounds {
                store.flush().expect("flushed");
            }
        }
        let keys: Vec<_> = all(&store).into_iter().map(|(key, _)| key).collect();
        let snapshot = store.snapshot();
        let most = rounds as u32 * (2 + (keys.len() as u32 + 1).ilog2()) + 8;
        let every = (keys.len() / 50).max(1);
        for at in (0..keys.len()).step_by(every).chain([keys.len()]) {
            let bound = keys.get(at);
            let (found, asked) = search(&snapshot, |key| bound.is_none_or(|bound| key < bound));
            assert_eq!(found.as_ref(), bound);
            assert!(asked <= most, "{asked} of {} keys", keys.len());
        }
    }
}
