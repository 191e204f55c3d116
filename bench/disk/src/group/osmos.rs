//! The benchmark of osmos (Radford, 2009): one writer that counts keys as fast as it can, beside
//! one reader.
//!
//! Keys are byte strings of random length, geometrically distributed with a mean of 15; each byte
//! is the sum of four random numbers below 64. So there are short keys that are counted very often,
//! and long ones that come once.

use crate::child::{Task, Usage, mib, report};
use crate::engine::{Engine, Merging, Outcome, number};
use crate::row::{
    OSMOS, OSMOS_MEMORY, OSMOS_READ_LONGEST, OSMOS_READ_P50, OSMOS_READ_P90, OSMOS_READ_P99,
    OSMOS_SIZE, OSMOS_TENTHS, OSMOS_WRITE_LONGEST, OSMOS_WRITE_P50, OSMOS_WRITE_P99,
    OSMOS_WRITE_P999,
};
use crate::system;
use ats_bench_common::Latencies;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The pause of the reader after each read.
const SLEEP: Duration = Duration::from_millis(1);

/// Keys are counted beside in this many sums, by their hash.
const BUCKETS: usize = 1 << 16;

/// The first byte of each key, so that none is empty, as no encoding of a term is.
const TAG: u8 = b'm';

/// Keys are not longer. One in ten million would be.
const LONGEST_KEY: usize = 255;

/// Draws a key.
fn draw(random: &mut fastrand::Rng, key: &mut Vec<u8>) {
    key.clear();
    key.push(TAG);
    while random.u64(..16) != 0 && key.len() < LONGEST_KEY {
        let word = random.u64(..);
        let byte: u64 = (0..4).map(|at| word >> (6 * at) & 63).sum();
        key.push(byte as u8);
    }
}

fn bucket(key: &[u8]) -> usize {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    (hash >> 32) as usize % BUCKETS
}

/// The work of the writer.
struct Written {
    latencies: Latencies,
    sums: Vec<u64>,
    /// Writes in each tenth of the time.
    tenths: [u64; 10],
}

pub(super) fn run(task: &Task) -> Outcome<()> {
    let time = Duration::from_secs(task.sizes.osmos_seconds);
    let usage = Usage::begin()?;
    let engine = task.open(Merging::Sum)?;
    // Writes that have begun, which no counter exceeds.
    let begun = AtomicU64::new(0);
    let (written, reads) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&*engine, time, &begun));
        let reads = read(&*engine, time, &begun);
        (writer.join(), reads)
    });
    let (written, reads) = (written.map_err(|_| "the writer has panicked")??, reads?);
    for (row, count) in OSMOS_TENTHS.iter().zip(written.tenths) {
        report(row, count as f64 * 10.0 / time.as_secs_f64());
    }
    let count: u64 = written.tenths.iter().sum();
    report(&OSMOS, count as f64 / time.as_secs_f64());
    let writes = &written.latencies;
    report(&OSMOS_WRITE_P50, writes.quantile_us(0.5));
    report(&OSMOS_WRITE_P99, writes.quantile_us(0.99));
    report(&OSMOS_WRITE_P999, writes.quantile_us(0.999));
    report(&OSMOS_WRITE_LONGEST, writes.longest_us() / 1e3);
    report(&OSMOS_READ_P50, reads.quantile_us(0.5));
    report(&OSMOS_READ_P90, reads.quantile_us(0.9));
    report(&OSMOS_READ_P99, reads.quantile_us(0.99));
    report(&OSMOS_READ_LONGEST, reads.longest_us() / 1e3);
    report(&OSMOS_SIZE, mib(system::size_of(&task.folder)?));
    report(&OSMOS_MEMORY, usage.memory()?.1);
    compare(&*engine, &written.sums)?;
    engine.close()
}

fn write(engine: &dyn Engine, time: Duration, begun: &AtomicU64) -> Outcome<Written> {
    let mut written = Written {
        latencies: Latencies::default(),
        sums: vec![0; BUCKETS],
        tenths: [0; 10],
    };
    let mut random = fastrand::Rng::with_seed(21);
    let mut key = Vec::new();
    let start = Instant::now();
    loop {
        draw(&mut random, &mut key);
        begun.fetch_add(1, Ordering::Relaxed);
        let begin = Instant::now();
        engine.merge(&key, &1u64.to_le_bytes())?;
        let end = Instant::now();
        written.latencies.add((end - begin).as_nanos() as u64);
        written.sums[bucket(&key)] += 1;
        let tenth = (end - start).as_nanos() * 10 / time.as_nanos();
        // A write that ends after the time counts for the last tenth.
        written.tenths[tenth.min(9) as usize] += 1;
        if tenth > 9 {
            return Ok(written);
        }
    }
}

fn read(engine: &dyn Engine, time: Duration, begun: &AtomicU64) -> Outcome<Latencies> {
    let mut latencies = Latencies::default();
    let mut random = fastrand::Rng::with_seed(22);
    let mut key = Vec::new();
    let start = Instant::now();
    while start.elapsed() < time {
        draw(&mut random, &mut key);
        let mut sum = 0;
        let begin = Instant::now();
        engine.get(&key, &mut |value| sum = number(value))?;
        latencies.add(begin.elapsed().as_nanos() as u64);
        if sum > begun.load(Ordering::Relaxed) {
            return Err(format!("a counter is {sum}, which is more than all writes").into());
        }
        std::thread::sleep(SLEEP);
    }
    Ok(latencies)
}

/// Compares all counters with the sums kept beside.
fn compare(engine: &dyn Engine, sums: &[u64]) -> Outcome<()> {
    let mut found = vec![0; BUCKETS];
    let mut before = Vec::new();
    let mut ascending = true;
    engine.scan(&[], usize::MAX, &mut |key, value| {
        ascending &= before.as_slice() < key;
        before.clear();
        before.extend_from_slice(key);
        found[bucket(key)] += number(value);
    })?;
    if ascending && found == sums {
        Ok(())
    } else {
        Err("the counters are not the sums of what was added".into())
    }
}
