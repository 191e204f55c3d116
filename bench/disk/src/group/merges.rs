//! Merges: counters that are added to, and one key that much is merged into.

use super::{Calls, ms_since, rate};
use crate::child::{Task, Usage, empty, report};
use crate::data::{self, KEY_BYTES};
use crate::engine::{Engine, Merging, Outcome, number};
use crate::row::{
    HOT_COUNTER, HOT_COUNTER_READ, MERGES, MERGES_LONGEST, MERGES_READS, MERGES_WRITTEN, OPERANDS,
    OPERANDS_READ, OPERANDS_SETTLED,
};
use std::time::{Duration, Instant};

/// The number of operands that are appended to one key.
const OPERANDS_COUNT: u64 = 50_000;

/// Bytes of each operand.
const OPERAND_BYTES: usize = 72;

/// Increments random counters, reads them, and compares them with sums in an array.
pub(super) fn run(task: &Task) -> Outcome<()> {
    let limit = Duration::from_secs(task.sizes.limit_seconds);
    let counters = task.sizes.records / 5;
    let mut sums = vec![0u32; counters as usize];
    let engine = task.open(Merging::Sum)?;
    let usage = Usage::begin()?;
    let mut random = fastrand::Rng::with_seed(11);
    let calls = Calls::make(task.sizes.records, limit, |_| {
        let counter = random.u64(..counters);
        sums[counter as usize] += 1;
        engine.merge(&data::key(counter), &1u64.to_le_bytes())
    })?;
    report(&MERGES, calls.rate());
    report(&MERGES_LONGEST, calls.latencies.longest_us() / 1e3);
    let count = task.short(100_000, 500_000);
    let reads = rate(count, || {
        (0..count).try_for_each(|_| {
            let counter = random.u64(..counters);
            let mut sum = 0;
            engine.get(&data::key(counter), &mut |value| sum = number(value))?;
            if sum == u64::from(sums[counter as usize]) {
                Ok(())
            } else {
                Err("a counter is not the sum of what was added".into())
            }
        })
    })?;
    report(&MERGES_READS, reads);
    engine.settle()?;
    let logical = calls.count * (KEY_BYTES as u64 + 8);
    report(
        &MERGES_WRITTEN,
        usage.bytes_written()? as f64 / logical as f64,
    );
    compare(&*engine, &sums)?;
    engine.close()
}

/// Compares all counters with their sums.
fn compare(engine: &dyn Engine, sums: &[u32]) -> Outcome<()> {
    let (mut seen, mut right) = (0, true);
    engine.scan(&[], usize::MAX, &mut |key, value| {
        seen += 1;
        let counter = data::prefix_of(key).map(data::number_of);
        let sum = counter.and_then(|counter| sums.get(counter as usize));
        right &= sum.is_some_and(|sum| number(value) == u64::from(*sum));
    })?;
    if right && seen == sums.iter().filter(|sum| **sum > 0).count() {
        Ok(())
    } else {
        Err("the counters are not the sums of what was added".into())
    }
}

/// Merges into one key: many operands one behind the other, and a counter.
pub(super) fn one_key(task: &Task) -> Outcome<()> {
    // Others would write 90 GB to append 3.6 MB.
    if task.profile.merges {
        let engine = task.open(Merging::Append)?;
        append(&*engine)?;
        engine.close()?;
        empty(&task.folder)?;
    }
    let limit = Duration::from_secs(task.sizes.limit_seconds);
    let engine = task.open(Merging::Sum)?;
    let key = data::key(0);
    let calls = Calls::make(1_000_000, limit, |_| {
        engine.merge(&key, &1u64.to_le_bytes())
    })?;
    report(&HOT_COUNTER, calls.rate());
    let start = Instant::now();
    let mut sum = 0;
    engine.get(&key, &mut |value| sum = number(value))?;
    report(&HOT_COUNTER_READ, ms_since(start) * 1e3);
    if sum != calls.count {
        return Err(format!("the hot counter is {sum} and not {}", calls.count).into());
    }
    engine.close()
}

fn append(engine: &dyn Engine) -> Outcome<()> {
    let operand = |at: u64| data::value(data::prefix(at), 0);
    let key = data::key(0);
    let start = Instant::now();
    (0..OPERANDS_COUNT).try_for_each(|at| engine.merge(&key, &operand(at)[..OPERAND_BYTES]))?;
    report(&OPERANDS, ms_since(start));
    let right = |value: &[u8]| {
        value.len() == OPERANDS_COUNT as usize * OPERAND_BYTES
            && (0..)
                .zip(value.chunks(OPERAND_BYTES))
                .all(|(at, bytes)| bytes == &operand(at)[..OPERAND_BYTES])
    };
    for (row, settled) in [(&OPERANDS_READ, false), (&OPERANDS_SETTLED, true)] {
        if settled {
            engine.settle()?;
        }
        let mut read = Vec::new();
        let start = Instant::now();
        engine.get(&key, &mut |value| read.extend_from_slice(value))?;
        report(row, ms_since(start));
        if !right(&read) {
            return Err("the operands are not one behind the other".into());
        }
    }
    Ok(())
}
