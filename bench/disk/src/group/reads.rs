//! Reads the loaded records, first with nothing cached, then with more and more.

use super::{ms_since, rate};
use crate::child::{Task, Usage, report};
use crate::data::{self, MISSING};
use crate::engine::{Engine, Merging, Outcome};
use crate::row::{
    OPEN_CLEAN, RANGES_10, RANGES_1000, READS_COLD, READS_HOT, READS_MEMORY, READS_MISSING,
    READS_WARM,
};
use crate::system;
use std::time::Instant;

/// Neighbours in the order of keys that are read again and again: some 90 MB, which the cache of
/// each engine holds.
const HOT_RECORDS: usize = 500_000;

/// The records that are read.
struct Reader<'a> {
    task: &'a Task,
    engine: Box<dyn Engine>,
    /// The prefixes of all keys, in order.
    prefixes: Vec<u64>,
}

pub(super) fn run(task: &Task) -> Outcome<()> {
    let prefixes: Vec<u64> = {
        let state = &task.state;
        let mut prefixes: Vec<u64> = (state.removed..state.records).map(data::prefix).collect();
        prefixes.sort_unstable();
        prefixes
    };
    system::forget_files(&task.folder)?;
    let usage = Usage::begin()?;
    let start = Instant::now();
    let engine = task.open(Merging::Nothing)?;
    let reader = Reader {
        task,
        engine,
        prefixes,
    };
    reader.get(reader.prefixes[0])?;
    report(&OPEN_CLEAN, ms_since(start));

    let count = task.short(2_000, 20_000);
    report(&READS_COLD, reader.points(1, &reader.prefixes, count)?);
    system::read_files(&task.folder)?;
    let hot = &reader.prefixes[..reader.prefixes.len().min(HOT_RECORDS)];
    hot.iter().try_for_each(|prefix| reader.get(*prefix))?;
    report(
        &READS_HOT,
        reader.points(2, hot, task.short(300_000, 2_000_000))?,
    );
    let count = task.short(200_000, 1_000_000);
    reader.points(3, &reader.prefixes, count / 4)?;
    report(&READS_WARM, reader.points(4, &reader.prefixes, count)?);
    report(&READS_MISSING, reader.missing(count)?);
    let count = task.short(50_000, 250_000);
    report(&RANGES_10, reader.ranges(6, 10, count)?);
    let count = task.short(1_000, 5_000);
    report(&RANGES_1000, 1000.0 * reader.ranges(7, 1000, count)?);
    report(&READS_MEMORY, usage.memory()?.0);
    reader.engine.close()
}

impl Reader<'_> {
    fn get(&self, prefix: u64) -> Outcome<()> {
        let version = self.task.state.version(data::number_of(prefix));
        let mut right = false;
        self.engine.get(&data::key_with(prefix), &mut |value| {
            right = version.is_some_and(|version| data::looks_like_value(value, prefix, version));
        })?;
        if right {
            Ok(())
        } else {
            Err("a read has not found what was written".into())
        }
    }

    /// Random ones of these keys.
    fn points(&self, seed: u64, prefixes: &[u64], count: u64) -> Outcome<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        rate(count, || {
            (0..count)
                .try_for_each(|_| self.get(prefixes[random.u64(..prefixes.len() as u64) as usize]))
        })
    }

    fn missing(&self, count: u64) -> Outcome<f64> {
        let mut random = fastrand::Rng::with_seed(5);
        rate(count, || {
            (0..count).try_for_each(|_| {
                let key = data::key(MISSING + random.u64(..MISSING));
                if self.engine.get(&key, &mut |_| {})? {
                    Err("a read has found what was never written".into())
                } else {
                    Ok(())
                }
            })
        })
    }

    /// Ranges of a length, from random keys on.
    fn ranges(&self, seed: u64, length: usize, count: u64) -> Outcome<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let state = &self.task.state;
        rate(count, || {
            (0..count).try_for_each(|_| {
                let at = random.u64(..(self.prefixes.len() - length) as u64) as usize;
                let mut wanted = self.prefixes[at..at + length].iter();
                let (mut seen, mut right) = (0, true);
                let from = data::key_with(self.prefixes[at]);
                self.engine.scan(&from, length, &mut |key, value| {
                    seen += 1;
                    right &= wanted.next().is_some_and(|prefix| {
                        let version = state.version(data::number_of(*prefix)).unwrap_or_default();
                        key.first_chunk() == Some(&prefix.to_be_bytes())
                            && data::looks_like_value(value, *prefix, version)
                    });
                })?;
                if right && seen == length {
                    Ok(())
                } else {
                    Err("a range is not what was written".into())
                }
            })
        })
    }
}
