//! What the command is asked for.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0  all is right
  1  faults were found
  2  the arguments are wrong
  3  the store could not be opened, or something else could not be done";

/// Adaptive Term Storage.
#[derive(Debug, Parser)]
#[command(name = "ats", version, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Stores on disk: what they have, whether they are sound, and what is left of them
    #[command(after_help = EXIT_CODES)]
    Disk {
        #[command(subcommand)]
        command: DiskCommand,
    },
}

/// The store must not be open in another program. Only `compact` and the target of `salvage` are written to.
#[derive(Debug, Subcommand)]
pub(crate) enum DiskCommand {
    /// Show what a store has: runs, files, journals
    #[command(after_help = EXIT_CODES)]
    Stat {
        /// The directory of the store
        directory: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Read all files, check them, and name each fault
    #[command(after_help = EXIT_CODES)]
    Verify {
        /// The directory of the store
        directory: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Print the records, in the order of their keys
    ///
    /// A line has the key, a tab and the value. Where operands cannot be merged without the program that the store belongs
    /// to, they follow, each behind a tab and a plus sign, from the oldest to the newest. If the store is damaged, what is
    /// left of it is printed.
    #[command(after_help = EXIT_CODES)]
    Dump {
        /// The directory of the store
        directory: PathBuf,
        /// How keys and values are printed
        #[arg(long, value_enum, default_value_t = Format::Escaped)]
        format: Format,
        /// Print at most so many records
        #[arg(long, value_name = "RECORDS")]
        limit: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Merge all runs into one, which frees the space of what was replaced or deleted
    #[command(after_help = EXIT_CODES)]
    Compact {
        /// The directory of the store
        directory: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Save what can be read of a damaged store into a new one
    ///
    /// Each record is what its key was after some write; it is the last one, unless the key is among those that are named
    /// as lost. Nothing is written into the source.
    #[command(after_help = EXIT_CODES)]
    Salvage {
        /// The directory of the damaged store
        source: PathBuf,
        /// The directory of the new store, which is not there or is empty
        target: PathBuf,
        /// The merge operator of the store, if no file of it tells it any more
        #[arg(long, value_name = "NAME:VERSION", value_parser = operator)]
        operator: Option<(String, u32)>,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Print JSON: one object; of `dump`, one in each line
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// How keys and values are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Printable ASCII as it is, other bytes as in Rust: \n, \\, \x00
    Escaped,
    /// Two hexadecimal digits for each byte
    Hex,
}

/// The name and the version of a merge operator.
fn operator(argument: &str) -> Result<(String, u32), String> {
    let parts = argument.rsplit_once(':');
    let parts = parts.and_then(|(name, version)| Some((name.to_owned(), version.parse().ok()?)));
    parts.ok_or_else(|| "it is a name, a colon and a number".into())
}
