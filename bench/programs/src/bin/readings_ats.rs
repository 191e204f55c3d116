//! Readings of sensors by time, and the number and sum of each sensor, with `ats`. A batch of
//! readings and their changes of the totals are one write.

use ats::{DiskBatch, DiskMap, Key};
use ats_disk::{Error, Options};
use std::path::Path;

/// A sensor, a time, and a measured value.
type Reading = (&'static str, u64, i64);
/// A reading counts as one.
type Total = (u64, i64);

#[derive(Key)]
enum Row {
    Total(String),
    Reading(String, u64),
}

struct Readings(DiskMap<Row, Total>);

fn total(sensor: &str) -> Row {
    Row::Total(sensor.into())
}

fn reading(sensor: &str, time: u64) -> Row {
    Row::Reading(sensor.into(), time)
}

fn time((row, (_, value)): (Row, Total)) -> (u64, i64) {
    match row {
        Row::Reading(_, time) => (time, value),
        Row::Total(_) => unreachable!("a range of readings has no total"),
    }
}

impl Readings {
    fn open(path: &Path) -> Result<Self, Error> {
        let add = |a: Total, b: Total| (a.0 + b.0, a.1 + b.1);
        DiskMap::open_merging(path, Options::new(), "add", 1, add).map(Readings)
    }

    fn add(&self, readings: &[Reading]) -> Result<(), Error> {
        let mut batch = DiskBatch::new();
        for (sensor, time, value) in readings {
            let counted: Total = (1, *value);
            batch.put(reading(sensor, *time), counted)?;
            batch.merge(total(sensor), counted)?;
        }
        self.0.write(&batch)
    }

    fn total(&self, sensor: &str) -> Result<Total, Error> {
        Ok(self.0.get(total(sensor))?.unwrap_or((0, 0)))
    }

    fn between(&self, sensor: &str, from: u64, to: u64) -> Result<Vec<(u64, i64)>, Error> {
        let range = self.0.range(reading(sensor, from)..reading(sensor, to));
        range.map(|pair| pair.map(time)).collect()
    }

    fn last(&self, sensor: &str) -> Result<Option<(u64, i64)>, Error> {
        let range = reading(sensor, 0)..=reading(sensor, u64::MAX);
        Ok(self.0.range(range).next_back().transpose()?.map(time))
    }

    /// Removes the readings of a sensor before a time. Totals stay.
    fn forget(&self, sensor: &str, before: u64) -> Result<(), Error> {
        self.0
            .remove_range(reading(sensor, 0)..reading(sensor, before))
    }
}

fn main() -> Result<(), Error> {
    let name = format!("readings-ats-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let readings = Readings::open(&path)?;
    for minute in 0..1_000 {
        let door = ("door", minute, (minute % 7) as i64);
        let roof = ("roof", minute, -(minute as i64));
        readings.add(&[door, roof])?;
    }
    readings.0.sync()?;
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
    let all = reading("", 0)..;
    println!("{} readings", readings.0.range(all).count());
    drop(readings);
    std::fs::remove_dir_all(&path).ok();
    Ok(())
}
