//! Readings of sensors by time, and the number and sum of each sensor, with `fjall`. A batch of
//! readings and their changes of the totals are one write.

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Result};
use std::path::Path;
use std::sync::Mutex;

/// A sensor, a time, and a measured value.
type Reading = (&'static str, u64, i64);

struct Readings {
    database: Database,
    readings: Keyspace,
    totals: Keyspace,
    /// Totals are read, changed and written by one thread at a time.
    adding: Mutex<()>,
}

fn key(sensor: &str, time: u64) -> Vec<u8> {
    [sensor.as_bytes(), b"\0", &time.to_be_bytes()].concat()
}

fn time(key: &[u8]) -> u64 {
    u64::from_be_bytes(*key.last_chunk().expect("a key ends with a time"))
}

fn to_bytes((number, sum): (u64, i64)) -> Vec<u8> {
    [number.to_be_bytes(), sum.to_be_bytes()].concat()
}

fn from_bytes(bytes: &[u8]) -> (u64, i64) {
    let number = bytes.first_chunk().expect("a total begins with a number");
    let sum = bytes.last_chunk().expect("a total ends with a sum");
    (u64::from_be_bytes(*number), i64::from_be_bytes(*sum))
}

fn value(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes.try_into().expect("a reading has eight bytes"))
}

impl Readings {
    fn open(path: &Path) -> Result<Self> {
        let database = Database::builder(path).open()?;
        Ok(Readings {
            readings: database.keyspace("readings", KeyspaceCreateOptions::default)?,
            totals: database.keyspace("totals", KeyspaceCreateOptions::default)?,
            database,
            adding: Mutex::new(()),
        })
    }

    fn add(&self, readings: &[Reading]) -> Result<()> {
        let _adding = self.adding.lock().expect("no thread panics");
        let mut totals = std::collections::BTreeMap::new();
        let mut batch = self.database.batch();
        for (sensor, time, value) in readings {
            batch.insert(&self.readings, key(sensor, *time), value.to_be_bytes());
            let (number, sum) = match totals.get(sensor) {
                Some(total) => *total,
                None => self.total(sensor)?,
            };
            totals.insert(sensor, (number + 1, sum + value));
        }
        for (sensor, total) in totals {
            batch.insert(&self.totals, *sensor, to_bytes(total));
        }
        batch.commit()
    }

    fn total(&self, sensor: &str) -> Result<(u64, i64)> {
        let total = self.totals.get(sensor)?;
        Ok(total.map_or((0, 0), |total| from_bytes(&total)))
    }

    fn between(&self, sensor: &str, from: u64, to: u64) -> Result<Vec<(u64, i64)>> {
        let range = self.readings.range(key(sensor, from)..key(sensor, to));
        range
            .map(|reading| {
                let (key, bytes) = reading.into_inner()?;
                Ok((time(&key), value(&bytes)))
            })
            .collect()
    }

    fn last(&self, sensor: &str) -> Result<Option<(u64, i64)>> {
        let mut range = self.readings.range(key(sensor, 0)..=key(sensor, u64::MAX));
        let Some(reading) = range.next_back() else {
            return Ok(None);
        };
        let (key, bytes) = reading.into_inner()?;
        Ok(Some((time(&key), value(&bytes))))
    }

    /// Removes the readings of a sensor before a time. Totals stay.
    fn forget(&self, sensor: &str, before: u64) -> Result<()> {
        let mut batch = self.database.batch();
        for reading in self.readings.range(key(sensor, 0)..key(sensor, before)) {
            batch.remove(&self.readings, reading.key()?);
        }
        batch.commit()
    }
}

fn main() -> Result<()> {
    let name = format!("readings-fjall-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let readings = Readings::open(&path)?;
    for minute in 0..1_000 {
        let door = ("door", minute, (minute % 7) as i64);
        let roof = ("roof", minute, -(minute as i64));
        readings.add(&[door, roof])?;
    }
    readings.database.persist(PersistMode::SyncAll)?;
    drop(readings);

    let readings = Readings::open(&path)?;
    println!("door: {:?}", readings.total("door")?);
    println!("roof: {:?}", readings.total("roof")?);
    println!("{:?}", readings.between("roof", 118, 121)?);
    println!("last: {:?}", readings.last("door")?);
    println!("none: {:?}", readings.last("cellar")?);
    readings.forget("door", 990)?;
    println!("{:?}", readings.between("door", 0, 993)?);
    println!("door: {:?}", readings.total("door")?);
    println!("{} readings", readings.readings.len()?);
    drop(readings);
    std::fs::remove_dir_all(&path).ok();
    Ok(())
}
