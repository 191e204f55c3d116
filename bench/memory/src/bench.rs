//! The plan: which workload runs when, on which side.

use crate::bf_tree::CacheOnly;
use crate::caching;
use crate::hashed::{Dash, PapayaMap, SccMap};
use crate::hot;
use crate::keys::Bytes;
use crate::maps::{AtsHash, AtsOrdered, LockedByParkingLot, LockedByStd, Typed};
use crate::masstree::Trie;
use crate::operations::{deal_in_turn, disjoint, keys, mix};
use crate::options::Options;
use crate::results::{self, Results};
use crate::side::{Alone, SCAN, Shared, Side};
use crossbeam_skiplist::SkipMap;
use scc::TreeIndex;
use std::io;
use std::path::PathBuf;

const THREADS: [usize; 2] = [1, 2];
const HOT_THREADS: [usize; 4] = [1, 2, 4, 8];
/// The bound of keys of small maps.
const SMALL: u32 = 1024;
/// The least number of operations that are drawn, so that a processor cannot learn their order.
const LEAST_DRAWN: usize = 1 << 16;
const UPDATES: [u32; 5] = [0, 1, 10, 50, 100];

const DISJOINT: &str = "ascending inserts, disjoint ranges";
const INTERLEAVED: &str = "ascending inserts, interleaved";
const RANDOM: &str = "random inserts";
const SCANS: &str = "scans of 1000 (records)";
const LOOKUPS: &str = "lookups, 64 under one guard";
const HOT: &str = "updates of one hot key";

fn mix_name(percent: u32) -> String {
    format!("mix with {percent} % updates")
}

/// Maps of one kind, and their measurements.
struct Field {
    /// The beginning of the names of its workloads.
    prefix: &'static str,
    /// The bound of keys, if it is not that of the options.
    range: Option<u32>,
    sides: Vec<Box<dyn Side>>,
    /// Names of the sides, in the order of the table.
    names: Vec<&'static str>,
    results: Results,
}

impl Field {
    fn new(prefix: &'static str, sides: Vec<Box<dyn Side>>) -> Self {
        Field {
            prefix,
            range: None,
            names: sides.iter().map(|side| side.name()).collect(),
            sides,
            results: Results::default(),
        }
    }

    fn new_ordered() -> Self {
        let mut field = Self::new(
            "",
            vec![
                Box::new(Shared::<AtsOrdered<8>>::default()),
                Box::new(Shared::<TreeIndex<u64, u64>>::default()),
                Box::new(Shared::<SkipMap<u64, u64>>::default()),
                Box::new(Shared::<CacheOnly>::default()),
                Box::new(Shared::<LockedByParkingLot<u64>>::default()),
                Box::new(Shared::<LockedByStd<u64>>::default()),
                Box::new(Alone::default()),
            ],
        );
        for (name, _) in hot::contestants() {
            if !field.names.contains(&name) {
                field.names.push(name);
            }
        }
        field
    }

    /// Byte strings of a length as keys for all: the longer ones begin alike, and differ in
    /// the last eight bytes.
    fn new_bytes<const LENGTH: usize>(prefix: &'static str) -> Self {
        Self::new(
            prefix,
            vec![
                Box::new(Shared::<AtsOrdered<LENGTH>>::default()),
                Box::new(Shared::<Trie<LENGTH>>::default()),
                Box::new(Shared::<TreeIndex<Bytes<LENGTH>, u64>>::default()),
                Box::new(Shared::<SkipMap<Bytes<LENGTH>, u64>>::default()),
                Box::new(Shared::<LockedByParkingLot<Bytes<LENGTH>>>::default()),
                Box::new(Shared::<LockedByStd<Bytes<LENGTH>>>::default()),
            ],
        )
    }

    fn new_hash() -> Self {
        Self::new(
            "hash: ",
            vec![
                Box::new(Shared::<AtsHash>::default()),
                Box::new(Shared::<Dash<Bytes<8>>>::default()),
                Box::new(Shared::<SccMap<Bytes<8>>>::default()),
                Box::new(Shared::<PapayaMap<Bytes<8>>>::default()),
            ],
        )
    }

    /// Typed hash maps with numbers as keys.
    fn new_numbers(prefix: &'static str, range: Option<u32>) -> Self {
        let sides: Vec<Box<dyn Side>> = vec![
            Box::new(Shared::<Typed>::default()),
            Box::new(Shared::<Dash<u64>>::default()),
            Box::new(Shared::<SccMap<u64>>::default()),
            Box::new(Shared::<PapayaMap<u64>>::default()),
        ];
        Field {
            range,
            ..Self::new(prefix, sides)
        }
    }
}

/// The fields, and the workloads to measure.
pub struct Bench {
    options: Options,
    ordered: Field,
    /// Fields in which only random keys are measured.
    others: [Field; 6],
    caches: Results,
    /// Hits of 100 look-ups of caches.
    hits: Results,
}

impl Bench {
    /// Nothing measured yet.
    pub fn new(options: Options) -> Self {
        Bench {
            options,
            ordered: Field::new_ordered(),
            others: [
                Field::new_bytes::<8>("8 bytes: "),
                Field::new_bytes::<16>("16 bytes: "),
                Field::new_bytes::<40>("40 bytes: "),
                Field::new_hash(),
                Field::new_numbers("numbers: ", None),
                Field::new_numbers("small numbers: ", Some(SMALL)),
            ],
            caches: Results::default(),
            hits: Results::default(),
        }
    }

    /// Measures everything, in rounds. The sides take turns; another one begins in each round.
    ///
    /// # Panics
    /// If two sides do not answer the same.
    pub fn run(&mut self) {
        let Bench {
            options,
            ordered,
            others,
            caches,
            hits,
        } = self;
        for round in 1..=options.rounds {
            eprintln!("round {round} of {}", options.rounds);
            for threads in THREADS {
                ordered.measure_inserts(options, DISJOINT, &disjoint(threads, options.range / 2));
            }
            ordered.measure_inserts(options, INTERLEAVED, &deal_in_turn(2, options.range / 2));
            ordered.measure_random_keys(options);
            ordered.measure_hot_key(options);
            ordered.sides.rotate_left(1);
            for field in others.iter_mut() {
                field.measure_random_keys(options);
                field.sides.rotate_left(1);
            }
            caching::measure(options, round, caches);
            caching::measure_hits(options, hits);
        }
        caches.sort();
        ordered.results.sort();
        others.iter_mut().for_each(|field| field.results.sort());
    }

    /// Returns the tables.
    pub fn report(&self) -> String {
        let hot_names: Vec<_> = hot::contestants().iter().map(|one| one.0).collect();
        let ordered = self.ordered.results.table(&self.ordered.names);
        let degradation = self.ordered.results.degradation(HOT, &hot_names);
        let others = self.others.iter();
        let others = others.map(|field| format!("\n{}", field.results.table(&field.names)));
        let others: String = others.collect();
        let caches = self.caches.table(&caching::NAMES);
        let hits = self.hits.medians(&caching::NAMES);
        format!("{ordered}\n{degradation}{others}\n{caches}\n{hits}")
    }

    /// Writes the results to a file and says to which.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, facts: &ats_bench_common::Facts) -> io::Result<PathBuf> {
        let fields = std::iter::once(&self.ordered).chain(&self.others);
        let results = fields.map(|field| &field.results);
        let results: Vec<&Results> = results.chain([&self.caches, &self.hits]).collect();
        results::write(&self.options.results, facts, &results)
    }
}

impl Field {
    fn name(&self, workload: &str) -> String {
        format!("{}{workload}", self.prefix)
    }

    /// Fills empty maps, looks whether all keys came in, and empties the maps again.
    fn measure_inserts(&mut self, options: &Options, workload: &str, keys: &[Vec<u32>]) {
        if options.wants(&self.name(workload)) {
            self.fill(options, workload, keys);
            self.check(options.range / 2);
            self.sides.iter_mut().for_each(|side| side.clear());
        }
    }

    fn fill(&mut self, options: &Options, workload: &str, keys: &[Vec<u32>]) {
        self.measure(options, workload, keys.len(), |side| {
            side.clear();
            side.insert(keys)
        });
    }

    /// Fills the maps with random keys, and does everything that is done to filled maps. Scans come
    /// before the updates, so that all sides have the same keys.
    fn measure_random_keys(&mut self, options: &Options) {
        let mixes = UPDATES.map(mix_name);
        let others = [RANDOM, SCANS, LOOKUPS].map(str::to_string);
        let mut all = mixes.iter().chain(&others);
        if !all.any(|name| options.wants(&self.name(name))) {
            return;
        }
        let (range, time) = (self.range.unwrap_or(options.range), options.time);
        let count = range as usize / 2;
        for threads in THREADS.into_iter().rev() {
            self.fill(options, RANDOM, &keys(threads, count / threads, range));
        }
        self.check(range);
        let count = count.max(LEAST_DRAWN);
        for threads in THREADS {
            let drawn = keys(threads, count, range);
            self.measure(options, SCANS, threads, |side| side.scans(&drawn, time));
            self.measure(options, LOOKUPS, threads, |side| side.lookups(&drawn, time));
        }
        for percent in UPDATES {
            for threads in THREADS {
                let drawn = mix(threads, count, range, percent);
                let name = mix_name(percent);
                self.measure(options, &name, threads, |side| side.mix(&drawn, time));
            }
        }
        self.sides.iter_mut().for_each(|side| side.clear());
    }

    /// Checks that all sides have been filled with the same keys, so they must answer the same.
    fn check(&self, range: u32) {
        let keys: Vec<u32> = keys(1, 100, range).into_iter().flatten().collect();
        let expected = self.sides[0].sum_of(&keys);
        for side in &self.sides {
            assert_eq!(side.sum_of(&keys), expected, "{}", side.name());
        }
        for key in keys {
            let expected = self.sides[0].sum_above(key, SCAN);
            for side in &self.sides {
                let found = side.sum_above(key, SCAN);
                assert_eq!(found, expected, "{} above {key}", side.name());
            }
        }
    }

    fn measure_hot_key(&mut self, options: &Options) {
        if !options.wants(HOT) {
            return;
        }
        for threads in HOT_THREADS {
            for (name, rate) in hot::contestants() {
                let rate = rate(threads, options.time);
                self.results.add(HOT, threads, name, rate);
            }
        }
    }

    /// Runs one workload on each side.
    fn measure(
        &mut self,
        options: &Options,
        workload: &str,
        threads: usize,
        run: impl Fn(&mut dyn Side) -> Option<f64>,
    ) {
        let name = self.name(workload);
        // Filling a small map is over too soon to be measured.
        let is_too_short = workload == RANDOM && self.range.is_some();
        let wanted = options.wants(&name) && !is_too_short;
        if !wanted && workload != RANDOM {
            return;
        }
        for side in &mut self.sides {
            let rate = run(side.as_mut());
            if let Some(rate) = rate.filter(|_| wanted) {
                self.results.add(&name, threads, side.name(), rate);
            }
        }
    }
}
