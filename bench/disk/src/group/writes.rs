//! Overwrites loaded records and removes a part of them; and checks the rest after the process is
//! killed meanwhile.

use super::load::{BATCH, batch};
use super::{Calls, ms_since, rate};
use crate::child::{READY, State, Task, Usage, report, report_state, say, verify};
use crate::data::{self, RECORD_BYTES};
use crate::engine::{Engine, Merging, Outcome};
use crate::row::{
    DURABLE, DURABLE_BATCHES, DURABLE_BY_2, DURABLE_BY_8, DURABLE_BY_64, DURABLE_LONGEST,
    OPEN_KILLED, REMOVALS, REMOVALS_SIZE, WRITES, WRITES_LONGEST, WRITES_P999, WRITES_WRITTEN,
};
use crate::system;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

/// Writes records with these numbers, each durable, by threads that each write a part of them.
/// Returns the writes a second.
fn durable_by(engine: &dyn Engine, writers: u64, numbers: Range<u64>) -> Outcome<f64> {
    let count = numbers.end - numbers.start;
    rate(count, || {
        thread::scope(|scope| {
            let part = |writer| {
                let mut own = numbers
                    .clone()
                    .skip(writer as usize)
                    .step_by(writers as usize);
                scope.spawn(move || {
                    own.try_for_each(|number| {
                        let prefix = data::prefix(number);
                        engine.put(&data::key_with(prefix), &data::value(prefix, 0), true)
                    })
                })
            };
            let threads: Vec<_> = (0..writers).map(part).collect();
            let mut ends = threads.into_iter().map(thread::ScopedJoinHandle::join);
            ends.try_for_each(|end| end.map_err(|_| "a writer has panicked")?)
        })
    })
}

/// Writes new values, each with a call of its own; then durable ones with new keys.
pub(super) fn run(task: &Task) -> Outcome<()> {
    let limit = Duration::from_secs(task.sizes.limit_seconds);
    let mut state = task.state;
    let engine = task.open(Merging::Nothing)?;
    engine.settle()?;
    let usage = Usage::begin()?;
    let calls = Calls::make(state.records.min(1_000_000), limit, |number| {
        let prefix = data::prefix(number);
        engine.put(&data::key_with(prefix), &data::value(prefix, 1), false)
    })?;
    state.overwritten = calls.count;
    report(&WRITES, calls.rate());
    report(&WRITES_P999, calls.latencies.quantile_us(0.999));
    report(&WRITES_LONGEST, calls.latencies.longest_us() / 1e3);
    engine.settle()?;
    let logical = calls.count * RECORD_BYTES;
    report(
        &WRITES_WRITTEN,
        usage.bytes_written()? as f64 / logical as f64,
    );

    if task.profile.keeps_writes {
        system::write_back();
        let first = state.records;
        let calls = Calls::make(1000, limit, |at| {
            let prefix = data::prefix(first + at);
            engine.put(&data::key_with(prefix), &data::value(prefix, 0), true)
        })?;
        state.records += calls.count;
        report(&DURABLE, calls.rate());
        report(&DURABLE_LONGEST, calls.latencies.longest_us() / 1e3);
        for (writers, row) in [(2, &DURABLE_BY_2), (8, &DURABLE_BY_8), (64, &DURABLE_BY_64)] {
            let first = state.records;
            state.records += 64 * u64::max(32, 4 * writers);
            report(row, durable_by(&*engine, writers, first..state.records)?);
        }
        let (first, end) = (state.records, state.records + 100 * BATCH);
        report(
            &DURABLE_BATCHES,
            rate(end - first, || {
                let mut froms = (first..end).step_by(BATCH as usize);
                froms.try_for_each(|from| engine.put_all(&batch(from, end), true))
            })?,
        );
        state.records = end;
    }
    verify(&*engine, &state)?;
    report_state(&state);
    engine.close()
}

/// Removes a fifth of the records, in the order in which they were written, which is random in the
/// order of keys.
pub(super) fn remove(task: &Task) -> Outcome<()> {
    let limit = Duration::from_secs(task.sizes.limit_seconds);
    let mut state = task.state;
    let engine = task.open(Merging::Nothing)?;
    let calls = Calls::make(state.records / 5, limit, |at| {
        engine.remove(&data::key(task.state.removed + at))
    })?;
    state.removed += calls.count;
    report(&REMOVALS, calls.rate());
    engine.settle()?;
    verify(&*engine, &state)?;
    report_state(&state);
    engine.close()?;
    report(
        &REMOVALS_SIZE,
        system::size_of(&task.folder)? as f64 / state.bytes() as f64,
    );
    Ok(())
}

/// Writes 35 MB, less than a write buffer, and waits to be killed.
pub(super) fn write_until_killed(task: &Task) -> Outcome<()> {
    let first = task.state.records;
    let state = State {
        records: first + 200 * BATCH,
        ..task.state
    };
    let engine = task.open(Merging::Nothing)?;
    engine.settle()?;
    for from in (first..state.records).step_by(BATCH as usize) {
        engine.put_all(&batch(from, state.records), false)?;
    }
    report_state(&state);
    say(READY);
    loop {
        std::thread::park();
    }
}

/// Opens the store that a killed process has left. Its writes were handed to the system, so they
/// must be in it.
pub(super) fn recover(task: &Task) -> Outcome<()> {
    let start = Instant::now();
    let engine = task.open(Merging::Nothing)?;
    engine.get(&data::key(task.state.removed), &mut |_| {})?;
    report(&OPEN_KILLED, ms_since(start));
    verify(&*engine, &task.state)?;
    report_state(&task.state);
    engine.close()
}
