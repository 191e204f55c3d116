//! The command line.

use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

/// Measures the stores of ats beside other maps that threads can share.
#[derive(Parser)]
struct CommandLine {
    /// Measure less
    #[arg(long)]
    quick: bool,
    /// Rounds in which everything is measured
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// Milliseconds for which a workload that is not over by itself runs on one side
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    ms: Option<u64>,
    /// Only workloads whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Folder of the file of results
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
}

/// The amount of work.
pub struct Options {
    /// Rounds in which everything is measured.
    pub rounds: usize,
    /// The time for which a workload that is not over by itself runs on one side.
    pub time: Duration,
    /// Random keys are below this; half as many inserts fill a map.
    pub range: u32,
    /// Only workloads whose name contains this.
    pub only: String,
    /// Folder of the file of results.
    pub results: PathBuf,
}

impl Options {
    /// Returns the options of the command line of this process, which ends if there is something
    /// wrong with it.
    pub fn of_process() -> Self {
        let line = CommandLine::parse();
        let (rounds, ms, range) = if line.quick {
            (3, 40, 1 << 17)
        } else {
            (5, 400, 1 << 21)
        };
        Options {
            rounds: line.rounds.unwrap_or(rounds) as usize,
            time: Duration::from_millis(line.ms.unwrap_or(ms)),
            range,
            only: line.only,
            results: line.results,
        }
    }

    /// Returns `true` if a workload is to be measured.
    pub fn wants(&self, workload: &str) -> bool {
        workload.contains(&self.only)
    }
}
