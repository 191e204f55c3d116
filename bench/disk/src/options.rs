//! The command line.

use crate::engine::{self, ENGINES, Profile};
use crate::row::Group;
use clap::Parser;
use std::path::PathBuf;

/// Measures tables on disk beside other embedded stores.
#[derive(Parser)]
struct CommandLine {
    /// Measure less
    #[arg(long)]
    quick: bool,
    /// Rounds in which everything is measured
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// Records that are loaded; less than 10,000 say nothing
    #[arg(long, value_parser = clap::value_parser!(u64).range(10_000..))]
    records: Option<u64>,
    /// Groups: load, reads, writes, removals, kill, merges, one-key, osmos
    #[arg(long, value_delimiter = ',', value_parser = group)]
    only: Vec<Group>,
    /// Names of engines
    #[arg(long, value_delimiter = ',', value_parser = profile)]
    engines: Vec<&'static Profile>,
    /// Duration of the benchmark of osmos
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    osmos_seconds: Option<u64>,
    /// Longest time for which single writes and merges go on
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    limit_seconds: Option<u64>,
    /// Folder in which the stores are made
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/bench-disk"))]
    data: PathBuf,
    /// Folder of the file of results
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../results"))]
    results: PathBuf,
}

/// The options that a child process gets, too.
#[derive(Clone)]
pub struct Sizes {
    /// Records that are loaded.
    pub records: u64,
    /// `true` if it is only a short run.
    pub quick: bool,
    /// Longest time for which single writes and merges go on.
    pub limit_seconds: u64,
    /// Duration of the benchmark of osmos.
    pub osmos_seconds: u64,
}

/// The choice of measurements, and their amount.
pub struct Options {
    /// The amount of work.
    pub sizes: Sizes,
    /// Rounds in which everything is measured.
    pub rounds: usize,
    /// The rows.
    pub groups: Vec<Group>,
    /// The engines.
    pub engines: Vec<&'static Profile>,
    /// `true` if the command line names the engines.
    pub engines_named: bool,
    /// Folder in which the stores are made.
    pub data: PathBuf,
    /// Folder of the file of results.
    pub results: PathBuf,
}

impl Options {
    /// Returns the options of the command line of this process, which ends if there is something
    /// wrong with it.
    pub fn of_process() -> Self {
        Self::of(CommandLine::parse())
    }

    fn of(line: CommandLine) -> Self {
        let or = |quickly, fully| if line.quick { quickly } else { fully };
        Options {
            sizes: Sizes {
                records: line.records.unwrap_or(or(500_000, 5_000_000)),
                quick: line.quick,
                limit_seconds: line.limit_seconds.unwrap_or(or(10, 60)),
                osmos_seconds: line.osmos_seconds.unwrap_or(or(10, 60)),
            },
            rounds: line.rounds.unwrap_or(or(1, 3)) as usize,
            groups: if line.only.is_empty() {
                Group::ALL.to_vec()
            } else {
                line.only
            },
            engines_named: !line.engines.is_empty(),
            engines: if line.engines.is_empty() {
                ENGINES.iter().collect()
            } else {
                line.engines
            },
            data: line.data,
            results: line.results,
        }
    }
}

fn group(name: &str) -> Result<Group, String> {
    let found = Group::ALL.into_iter().find(|group| group.name() == name);
    found.ok_or_else(|| format!("no group is called {name}"))
}

fn profile(name: &str) -> Result<&'static Profile, String> {
    engine::find(name).ok_or_else(|| format!("no engine is called {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, clap::Error> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        CommandLine::try_parse_from(words).map(Options::of)
    }

    #[test]
    fn what_is_named_is_measured() {
        let options = parse("--quick --only reads,osmos --engines fjall --records 20000").unwrap();
        assert_eq!(options.groups, [Group::Reads, Group::Osmos]);
        assert_eq!(options.engines.len(), 1);
        assert_eq!(options.sizes.records, 20_000);
        assert_eq!(parse("").unwrap().groups.len(), Group::ALL.len());
    }

    #[test]
    fn other_words_are_refused() {
        for line in [
            "--fast",
            "--only nothing",
            "--engines",
            "--rounds 0",
            "--records 7",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
