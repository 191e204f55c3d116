//! Fills a new store: batches of 1000 records with random keys, handed to the system.

use super::ms_since;
use crate::child::{Task, Usage, report, report_state, verify};
use crate::data::Record;
use crate::engine::{Merging, Outcome};
use crate::row::{
    BULK, BULK_BATCH_LONGEST, BULK_BATCH_P999, BULK_MEMORY, BULK_SETTLED, BULK_SIZE, BULK_WRITTEN,
};
use crate::system;
use ats_bench_common::Latencies;
use std::time::Instant;

/// Records of a batch.
pub(super) const BATCH: u64 = 1000;

/// Returns the records from a number on, of one batch.
pub(super) fn batch(from: u64, to: u64) -> Vec<Record> {
    (from..to.min(from + BATCH))
        .map(|number| Record::new(number, 0))
        .collect()
}

pub(super) fn run(task: &Task) -> Outcome<()> {
    let state = task.state;
    let usage = Usage::begin()?;
    let engine = task.open(Merging::Nothing)?;
    let mut latencies = Latencies::default();
    let start = Instant::now();
    for from in (0..state.records).step_by(BATCH as usize) {
        let records = batch(from, state.records);
        let begin = Instant::now();
        engine.put_all(&records, false)?;
        latencies.add(begin.elapsed().as_nanos() as u64);
    }
    report(&BULK, state.records as f64 * 1e3 / ms_since(start));
    engine.settle()?;
    report(&BULK_SETTLED, state.records as f64 * 1e3 / ms_since(start));
    report(&BULK_BATCH_P999, latencies.quantile_us(0.999) / 1e3);
    report(&BULK_BATCH_LONGEST, latencies.longest_us() / 1e3);
    report(&BULK_MEMORY, usage.memory()?.1);
    engine.close()?;
    report(
        &BULK_WRITTEN,
        usage.bytes_written()? as f64 / state.bytes() as f64,
    );
    report(
        &BULK_SIZE,
        system::size_of(&task.folder)? as f64 / state.bytes() as f64,
    );
    let engine = task.open(Merging::Nothing)?;
    verify(&*engine, &state)?;
    report_state(&state);
    engine.close()
}
