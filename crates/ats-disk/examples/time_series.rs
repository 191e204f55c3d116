//! A time series: keys that begin with the name of a sensor and go on with the time.
//!
//! Numbers in keys have their most significant byte first, so the order of bytes is that of time.
//! The newest samples are read downwards, and samples that are too old go by one `delete_range`.

use ats_disk::{DiskStore, Error, Options};
use ats_store::{Direction, KeyRange};

const MINUTES: u64 = 1000;
/// Samples are kept for so many minutes.
const KEPT: u64 = 100;

fn key(sensor: &str, minute: u64) -> Vec<u8> {
    [sensor.as_bytes(), b"/", &minute.to_be_bytes()].concat()
}

/// Returns the first samples of a range in a direction, as minutes and values.
fn samples(
    store: &DiskStore,
    range: KeyRange<'_>,
    direction: Direction,
    most: usize,
) -> Result<Vec<(u64, u8)>, Error> {
    let mut scan = store.scan(range, direction)?;
    let mut samples = Vec::new();
    while samples.len() < most
        && let Some((key, value)) = scan.next()?
    {
        let (_, minute) = key.split_last_chunk().expect("keys end with a minute");
        samples.push((u64::from_be_bytes(*minute), value[0]));
    }
    Ok(samples)
}

fn main() -> Result<(), Error> {
    let directory = std::env::temp_dir().join(format!("ats-series-{}", std::process::id()));
    let store = DiskStore::open(&directory, Options::default())?;
    for minute in 0..MINUTES {
        for sensor in ["door", "roof"] {
            store.put(&key(sensor, minute), &[(minute % 60) as u8])?;
        }
    }

    // Some minutes of a sensor. The upper bound does not belong to a range.
    let (low, high) = (key("roof", 118), key("roof", 121));
    let range = KeyRange {
        low: Some(&low),
        high: Some(&high),
    };
    let found = samples(&store, range, Direction::Up, usize::MAX)?;
    assert_eq!(found, [(118, 58), (119, 59), (120, 0)]);

    // The newest ones first.
    let (low, high) = (key("door", 0), key("door", u64::MAX));
    let door = KeyRange {
        low: Some(&low),
        high: Some(&high),
    };
    let newest = samples(&store, door, Direction::Down, 2)?;
    assert_eq!(newest, [(999, 39), (998, 38)]);

    // One change, however many samples there are. Those of the other sensor stay.
    let oldest = key("door", MINUTES - KEPT);
    store.delete_range(KeyRange {
        low: Some(&low),
        high: Some(&oldest),
    })?;
    let left = samples(&store, door, Direction::Up, usize::MAX)?;
    assert_eq!(left.len() as u64, KEPT);
    assert_eq!(left[0].0, MINUTES - KEPT);
    let all = samples(&store, KeyRange::default(), Direction::Up, usize::MAX)?;
    assert_eq!(all.len() as u64, KEPT + MINUTES);
    println!("{} samples of the door, {} of all", left.len(), all.len());

    store.close()?;
    std::fs::remove_dir_all(&directory).ok();
    Ok(())
}
