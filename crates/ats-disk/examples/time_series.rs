//! A time series: keys that begin with the name of a sensor and go on with the time.
//!
//! Numbers in keys have their most significant byte first, so the order of bytes is that of time.
//! The newest samples are read downwards, and samples that are too old go by one `delete_range`.

use ats_disk::{DiskStore, Error, Options};

const MINUTES: u64 = 1000;
/// Samples are kept for so many minutes.
const KEPT: u64 = 100;

fn key(sensor: &str, minute: u64) -> Vec<u8> {
    [sensor.as_bytes(), b"/", &minute.to_be_bytes()].concat()
}

/// Returns the minute and the value of a record.
fn sample(record: Result<(Vec<u8>, Vec<u8>), Error>) -> Result<(u64, u8), Error> {
    let (key, value) = record?;
    let (_, minute) = key.split_last_chunk().expect("keys end with a minute");
    Ok((u64::from_be_bytes(*minute), value[0]))
}

fn main() -> Result<(), Error> {
    let directory = std::env::temp_dir().join(format!("ats-series-{}", std::process::id()));
    let store = DiskStore::open(&directory, Options::new())?;
    for minute in 0..MINUTES {
        for sensor in ["door", "roof"] {
            store.put(&key(sensor, minute), &[(minute % 60) as u8])?;
        }
    }

    // Some minutes of a sensor.
    let minutes = store.scan(key("roof", 118)..=key("roof", 120)).map(sample);
    let found: Vec<_> = minutes.collect::<Result<_, Error>>()?;
    assert_eq!(found, [(118, 58), (119, 59), (120, 0)]);

    // The newest ones first.
    let door = key("door", 0)..=key("door", u64::MAX);
    let newest = store.scan(&door).rev().take(2).map(sample);
    let newest: Vec<_> = newest.collect::<Result<_, Error>>()?;
    assert_eq!(newest, [(999, 39), (998, 38)]);

    // One change, however many samples there are. Those of the other sensor stay.
    store.delete_range(key("door", 0)..key("door", MINUTES - KEPT))?;
    let left: Vec<_> = (store.scan(&door).map(sample)).collect::<Result<_, Error>>()?;
    assert_eq!(left.len() as u64, KEPT);
    assert_eq!(left[0].0, MINUTES - KEPT);
    assert_eq!(store.len()? as u64, KEPT + MINUTES);
    println!("{} samples of the door", left.len());

    store.close()?;
    std::fs::remove_dir_all(&directory).ok();
    Ok(())
}
