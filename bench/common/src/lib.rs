//! The part that all measurements share: facts about the machine, statistics, and the file of
//! results.

mod figures;
mod latency;
mod machine;

pub use figures::{Facts, median, round_to, write};
pub use latency::Latencies;
pub use machine::{common_facts, locked_version};
