//! Measures the stores of ats beside other maps that threads can share.
//!
//! The mixes are those of `ets_bench` (bencherl): 2^20 inserts of random keys below 2^21, then
//! lookups with 0, 1, 10 and 100 per cent updates, half inserts and half removals. Sides take turns
//! within a round, and another one begins in each; see `results` for the statistics.

mod bench;
mod bf_tree;
mod caches;
mod caching;
mod crew;
mod hashed;
mod hot;
mod keys;
mod machine;
mod maps;
mod masstree;
mod mcs;
mod operations;
mod options;
mod results;
mod side;

use bench::Bench;
use options::Options;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let options = Options::of_process();
    let facts = machine::facts();
    println!("ats beside other maps: {}\n", results::heading(&facts));
    let mut bench = Bench::new(options);
    bench.run();
    println!("{}", bench.report());
    match bench.write(&facts) {
        Ok(file) => println!("written to {}", file.display()),
        Err(error) => eprintln!("not written: {error}"),
    }
}
