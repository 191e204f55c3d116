//! One side of the comparison: a map, and how to run each workload on it.

use crate::crew::{rate_of_work, rate_over_time};
use crate::maps::{Map, sum_of_btree};
use crate::operations::{Kind, Operation, value_of};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

/// The number of records that a scan visits.
pub const SCAN: usize = 1000;

/// Operations between two looks at the clock, and lookups under one guard.
const CHUNK: usize = 64;

/// A map that workloads are run on. A side returns `None` for workloads that it cannot run; rates
/// are operations per second of all threads together, and there are as many threads as lists.
pub trait Side {
    /// Returns the name in the table of results.
    fn name(&self) -> &'static str;

    /// Replaces the map by an empty one.
    fn clear(&mut self);

    /// Inserts keys.
    fn insert(&mut self, keys: &[Vec<u32>]) -> Option<f64>;

    /// Lookups, inserts and removals.
    fn mix(&self, operations: &[Vec<Operation>], time: Duration) -> Option<f64>;

    /// Lookups only, many under one guard.
    fn lookups(&self, keys: &[Vec<u32>], time: Duration) -> Option<f64>;

    /// Sums of the values above keys; visiting one record is an operation.
    fn scans(&self, keys: &[Vec<u32>], time: Duration) -> Option<f64>;

    /// Returns the sum of the values above a key, to compare with other sides.
    fn sum_above(&self, key: u32, count: usize) -> Option<(u64, usize)>;

    /// Returns the sum of the values of keys, to compare with other sides.
    fn sum_of(&self, keys: &[u32]) -> u64;
}

/// A map that threads can share.
#[derive(Default)]
pub struct Shared<M>(M);

impl<M: Map> Side for Shared<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn clear(&mut self) {
        self.0 = M::default();
    }

    fn insert(&mut self, keys: &[Vec<u32>]) -> Option<f64> {
        let rate = rate_of_work(keys.len(), |thread| {
            for key in &keys[thread] {
                self.0.insert(u64::from(*key), value_of(*key));
            }
            keys[thread].len() as u64
        });
        Some(rate)
    }

    fn mix(&self, operations: &[Vec<Operation>], time: Duration) -> Option<f64> {
        let rate = rate_over_time(operations.len(), time, |thread| {
            let mut chunks = operations[thread].chunks_exact(CHUNK).cycle();
            move || {
                let chunk = chunks.next().expect("chunks go round");
                for operation in chunk {
                    do_one(&self.0, *operation);
                }
                CHUNK as u64
            }
        });
        Some(rate)
    }

    fn lookups(&self, keys: &[Vec<u32>], time: Duration) -> Option<f64> {
        let rate = rate_over_time(keys.len(), time, |thread| {
            let mut chunks = keys[thread].chunks_exact(CHUNK).cycle();
            move || {
                black_box(self.0.lookups(chunks.next().expect("chunks go round")));
                CHUNK as u64
            }
        });
        Some(rate)
    }

    fn scans(&self, keys: &[Vec<u32>], time: Duration) -> Option<f64> {
        self.0.sum_above(0, 1)?;
        let scan = |key| self.0.sum_above(key, SCAN).unwrap_or_default();
        Some(rate_of_scans(keys, time, scan))
    }

    fn sum_above(&self, key: u32, count: usize) -> Option<(u64, usize)> {
        self.0.sum_above(u64::from(key), count)
    }

    fn sum_of(&self, keys: &[u32]) -> u64 {
        self.0.lookups(keys)
    }
}

#[inline(always)]
fn do_one<M: Map>(map: &M, operation: Operation) {
    let key = operation.key();
    match operation.kind() {
        Kind::Lookup => {
            black_box(map.lookup(u64::from(key)));
        }
        Kind::Insert => map.insert(u64::from(key), value_of(key)),
        Kind::Remove => {
            black_box(map.remove(u64::from(key)));
        }
    }
}

/// A `BTreeMap` that one thread fills and that every thread may read afterwards, without any lock.
#[derive(Default)]
pub struct Alone(BTreeMap<u64, u64>);

impl Side for Alone {
    fn name(&self) -> &'static str {
        "BTreeMap"
    }

    fn clear(&mut self) {
        self.0 = BTreeMap::new();
    }

    /// Measured only for one thread, but the keys of all are inserted.
    fn insert(&mut self, keys: &[Vec<u32>]) -> Option<f64> {
        let start = std::time::Instant::now();
        for key in keys.iter().flatten() {
            self.0.insert(u64::from(*key), value_of(*key));
        }
        let count: usize = keys.iter().map(Vec::len).sum();
        (keys.len() == 1).then(|| count as f64 / start.elapsed().as_secs_f64())
    }

    fn mix(&self, _operations: &[Vec<Operation>], _time: Duration) -> Option<f64> {
        None
    }

    fn lookups(&self, keys: &[Vec<u32>], time: Duration) -> Option<f64> {
        let rate = rate_over_time(keys.len(), time, |thread| {
            let mut chunks = keys[thread].chunks_exact(CHUNK).cycle();
            move || {
                for key in chunks.next().expect("chunks go round") {
                    black_box(self.0.get(&u64::from(*key)));
                }
                CHUNK as u64
            }
        });
        Some(rate)
    }

    fn scans(&self, keys: &[Vec<u32>], time: Duration) -> Option<f64> {
        let scan = |key| sum_of_btree(&self.0, key, SCAN);
        Some(rate_of_scans(keys, time, scan))
    }

    fn sum_above(&self, key: u32, count: usize) -> Option<(u64, usize)> {
        Some(sum_of_btree(&self.0, u64::from(key), count))
    }

    fn sum_of(&self, keys: &[u32]) -> u64 {
        let values = keys.iter().filter_map(|key| self.0.get(&u64::from(*key)));
        values.fold(0, |sum, value| sum.wrapping_add(*value))
    }
}

fn rate_of_scans(
    keys: &[Vec<u32>],
    time: Duration,
    scan: impl Fn(u64) -> (u64, usize) + Sync,
) -> f64 {
    rate_over_time(keys.len(), time, |thread| {
        let mut keys = keys[thread].iter().cycle();
        let scan = &scan;
        move || {
            let key = keys.next().expect("keys go round");
            let (sum, seen) = scan(u64::from(*key));
            black_box(sum);
            seen as u64
        }
    })
}
