//! The command line.

use std::path::PathBuf;
use std::time::Duration;

/// What is written if the command line is not understood.
pub const USAGE: &str =
    "usage: ats-bench-native [--quick] [--rounds N] [--ms N] [--only TEXT] [--results FOLDER]";

/// How much is measured.
pub struct Options {
    /// How often everything is measured.
    pub rounds: usize,
    /// How long a workload that is not over by itself runs on one side.
    pub time: Duration,
    /// Random keys are below this; half as many inserts fill a map.
    pub range: u32,
    /// Only workloads whose name contains this.
    pub only: String,
    /// Where the file of results goes.
    pub results: PathBuf,
}

impl Options {
    /// The options of a command line without the name of the program.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Options {
            rounds: 5,
            time: Duration::from_millis(400),
            range: 1 << 21,
            only: String::new(),
            results: PathBuf::from("bench/results"),
        };
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "--quick" => {
                    options.rounds = 3;
                    options.time = Duration::from_millis(40);
                    options.range = 1 << 17;
                }
                "--rounds" => options.rounds = positive(&value()?)? as usize,
                "--ms" => options.time = Duration::from_millis(positive(&value()?)?),
                "--only" => options.only = value()?,
                "--results" => options.results = PathBuf::from(value()?),
                _ => return Err(format!("what is {argument}?")),
            }
        }
        Ok(options)
    }

    /// Whether a workload is to be measured.
    pub fn wants(&self, workload: &str) -> bool {
        workload.contains(&self.only)
    }
}

fn positive(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{text} is not a positive number")),
    }
}
