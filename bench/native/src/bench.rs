//! The plan: which workload runs when, on which side.

use crate::hot;
use crate::maps::{Ats, LockedByParkingLot, LockedByStd};
use crate::operations::{disjoint, interleaved, keys, mix};
use crate::options::Options;
use crate::results::Results;
use crate::side::{Alone, SCAN, Shared, Side};
use crossbeam_skiplist::SkipMap;
use scc::TreeIndex;
use std::io;
use std::path::PathBuf;

const THREADS: [usize; 2] = [1, 2];
const HOT_THREADS: [usize; 4] = [1, 2, 4, 8];
const UPDATES: [u32; 4] = [0, 1, 10, 100];

const DISJOINT: &str = "ascending inserts, disjoint ranges";
const INTERLEAVED: &str = "ascending inserts, interleaved";
const RANDOM: &str = "random inserts";
const SCANS: &str = "scans of 1000 (records)";
const LOOKUPS: &str = "lookups, 64 under one guard";
const HOT: &str = "updates of one hot key";

fn mix_name(percent: u32) -> String {
    format!("mix with {percent} % updates")
}

/// The sides, and what was measured of them.
pub struct Bench {
    options: Options,
    sides: Vec<Box<dyn Side>>,
    /// Names of the sides, in the order of the table.
    names: Vec<&'static str>,
    results: Results,
}

impl Bench {
    /// Nothing measured yet.
    pub fn new(options: Options) -> Self {
        let sides: Vec<Box<dyn Side>> = vec![
            Box::new(Shared::<Ats>::default()),
            Box::new(Shared::<TreeIndex<u64, u64>>::default()),
            Box::new(Shared::<SkipMap<u64, u64>>::default()),
            Box::new(Shared::<LockedByParkingLot>::default()),
            Box::new(Shared::<LockedByStd>::default()),
            Box::new(Alone::default()),
        ];
        let mut names: Vec<_> = sides.iter().map(|side| side.name()).collect();
        for (name, _) in hot::contestants() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Bench {
            options,
            sides,
            names,
            results: Results::default(),
        }
    }

    /// Measures everything, in rounds. The sides take turns; who begins changes from round to round.
    ///
    /// # Panics
    /// If two sides do not answer the same.
    pub fn run(&mut self) {
        for round in 1..=self.options.rounds {
            eprintln!("round {round} of {}", self.options.rounds);
            for threads in THREADS {
                self.measure_inserts(DISJOINT, &disjoint(threads, self.options.range / 2));
            }
            self.measure_inserts(INTERLEAVED, &interleaved(2, self.options.range / 2));
            self.measure_random_keys();
            self.measure_hot_key();
            self.sides.rotate_left(1);
        }
        self.results.sort();
    }

    /// The table.
    pub fn report(&self) -> String {
        let hot_names: Vec<_> = hot::contestants().iter().map(|one| one.0).collect();
        let table = self.results.table(&self.names);
        let degradation = self.results.degradation(HOT, &hot_names);
        format!("{table}\n{degradation}")
    }

    /// Writes the results to a file and says to which.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, facts: &[(&'static str, String)]) -> io::Result<PathBuf> {
        self.results.write(&self.options.results, facts)
    }

    /// Fills empty maps, and empties them again.
    fn measure_inserts(&mut self, workload: &str, keys: &[Vec<u32>]) {
        if self.options.wants(workload) {
            self.fill(workload, keys);
            self.sides.iter_mut().for_each(|side| side.clear());
        }
    }

    fn fill(&mut self, workload: &str, keys: &[Vec<u32>]) {
        self.measure(workload, keys.len(), |side| {
            side.clear();
            side.insert(keys)
        });
    }

    /// Fills the maps with random keys, and does everything that is done to filled maps. Scans come
    /// before the updates, so that all sides have the same keys.
    fn measure_random_keys(&mut self) {
        let mixes = UPDATES.map(mix_name);
        let others = [RANDOM, SCANS, LOOKUPS].map(str::to_string);
        let mut all = mixes.iter().chain(&others);
        if !all.any(|name| self.options.wants(name)) {
            return;
        }
        let (range, time) = (self.options.range, self.options.time);
        let count = range as usize / 2;
        for threads in THREADS.into_iter().rev() {
            self.fill(RANDOM, &keys(threads, count / threads, range));
        }
        self.check();
        for threads in THREADS {
            let drawn = keys(threads, count, range);
            self.measure(SCANS, threads, |side| side.scans(&drawn, time));
            self.measure(LOOKUPS, threads, |side| side.lookups(&drawn, time));
        }
        for percent in UPDATES {
            for threads in THREADS {
                let drawn = mix(threads, count, range, percent);
                let name = mix_name(percent);
                self.measure(&name, threads, |side| side.mix(&drawn, time));
            }
        }
        self.sides.iter_mut().for_each(|side| side.clear());
    }

    /// All sides have been filled with the same keys, so they must answer the same.
    fn check(&self) {
        for key in keys(1, 100, self.options.range).into_iter().flatten() {
            let expected = self.sides[0].sum_above(key, SCAN);
            for side in &self.sides {
                let found = side.sum_above(key, SCAN);
                assert_eq!(found, expected, "{} above {key}", side.name());
            }
        }
    }

    fn measure_hot_key(&mut self) {
        if !self.options.wants(HOT) {
            return;
        }
        for threads in HOT_THREADS {
            for (name, rate) in hot::contestants() {
                let rate = rate(threads, self.options.time);
                self.results.add(HOT, threads, name, rate);
            }
        }
    }

    /// Runs one workload on each side.
    fn measure(
        &mut self,
        workload: &str,
        threads: usize,
        run: impl Fn(&mut dyn Side) -> Option<f64>,
    ) {
        if !self.options.wants(workload) && workload != RANDOM {
            return;
        }
        for side in &mut self.sides {
            let rate = run(side.as_mut());
            if let Some(rate) = rate.filter(|_| self.options.wants(workload)) {
                self.results.add(workload, threads, side.name(), rate);
            }
        }
    }
}
