//! The command line.

use crate::engine::{self, ENGINES, Profile};
use crate::row::Group;
use std::path::PathBuf;

/// What is written if the command line is not understood.
pub const USAGE: &str = "usage: ats-bench-disk [--quick] [--rounds N] [--records N] \
[--only GROUP,...] [--engines NAME,...] [--osmos-seconds N] [--limit-seconds N] [--data FOLDER] \
[--results FOLDER]
groups: load, reads, writes, removals, kill, merges, one-key, osmos";

/// The root folder of the project.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What a child process is told, too.
#[derive(Clone)]
pub struct Sizes {
    /// Records that are loaded.
    pub records: u64,
    /// Whether it is only a short run.
    pub quick: bool,
    /// How long single writes and merges go on at most.
    pub limit_seconds: u64,
    /// How long the benchmark of osmos takes.
    pub osmos_seconds: u64,
}

/// What is measured, and how much.
pub struct Options {
    /// How much.
    pub sizes: Sizes,
    /// How often everything is measured.
    pub rounds: usize,
    /// What.
    pub groups: Vec<Group>,
    /// Of which engines.
    pub engines: Vec<&'static Profile>,
    /// Whether the command line names the engines.
    pub engines_named: bool,
    /// Where the stores are made.
    pub data: PathBuf,
    /// Where the file of results goes.
    pub results: PathBuf,
}

impl Options {
    /// The options of a command line without the name of the program.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let (mut quick, mut only, mut engines) = (false, None, None);
        let (mut rounds, mut records, mut osmos_seconds, mut limit_seconds) =
            (None, None, None, None);
        let mut data = PathBuf::from(ROOT).join("target/bench-disk");
        let mut results = PathBuf::from(ROOT).join("bench/results");
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "--quick" => quick = true,
                "--rounds" => rounds = Some(positive(&value()?)? as usize),
                "--records" => records = Some(positive(&value()?)?),
                "--only" => only = Some(value()?),
                "--engines" => engines = Some(value()?),
                "--osmos-seconds" => osmos_seconds = Some(positive(&value()?)?),
                "--limit-seconds" => limit_seconds = Some(positive(&value()?)?),
                "--data" => data = PathBuf::from(value()?),
                "--results" => results = PathBuf::from(value()?),
                _ => return Err(format!("what is {argument}?")),
            }
        }
        let or = |quickly, fully| if quick { quickly } else { fully };
        let sizes = Sizes {
            records: records.unwrap_or(or(500_000, 5_000_000)),
            quick,
            limit_seconds: limit_seconds.unwrap_or(or(10, 60)),
            osmos_seconds: osmos_seconds.unwrap_or(or(10, 60)),
        };
        if sizes.records < 10_000 {
            return Err("less than 10,000 records say nothing".to_string());
        }
        let engines_named = engines.is_some();
        Ok(Options {
            sizes,
            rounds: rounds.unwrap_or(or(1, 3) as usize),
            groups: match only {
                Some(names) => chosen(&names, |name| {
                    Group::ALL.into_iter().find(|group| group.name() == name)
                })?,
                None => Group::ALL.to_vec(),
            },
            engines: match engines {
                Some(names) => chosen(&names, engine::find)?,
                None => ENGINES.iter().collect(),
            },
            engines_named,
            data,
            results,
        })
    }
}

fn chosen<T>(names: &str, find: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let found = names
        .split(',')
        .map(|name| find(name).ok_or_else(|| format!("what is {name}?")));
    found.collect()
}

fn positive(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{text} is not a positive number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_string))
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
