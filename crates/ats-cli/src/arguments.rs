//! The arguments of the command.

use ats::terms::salvage::parse_merge;
use ats::terms::{Description, TableType, Zeros};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
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
    /// Stores on disk: show their contents, check them, and save the rest of damaged ones
    #[command(after_help = EXIT_CODES)]
    Disk {
        #[command(subcommand)]
        command: DiskCommand,
    },
    /// Copy compiled applications so that they use `ats` in the place of `ets`, and list the tables
    /// that they share with others
    ///
    /// It starts `erl`, and needs the compiled application `ats`: where `erl` finds it (ERL_LIBS),
    /// or in the folder that this command is installed or was built in. An Erlang that is started
    /// with ERL_LIBS=OUT runs the copies.
    #[command(name = "try", after_help = EXIT_CODES)]
    Try(TryArguments),
    /// Measure all there is, and draw a report in HTML; needs the source of ats
    #[command(after_help = EXIT_CODES)]
    Bench {
        /// The folder with the source of ats, if that is neither this one nor one above, and the
        /// command was not built there
        #[arg(long, value_name = "FOLDER")]
        source: Option<PathBuf>,
        /// Arguments for the measurements, for example --quick
        #[arg(last = true)]
        arguments: Vec<String>,
    },
}

#[derive(Args, Clone, Debug)]
pub(crate) struct TryArguments {
    /// A module that stays with `ets`; may be given several times
    #[arg(long, value_name = "MODULE")]
    pub(crate) except: Vec<OsString>,
    /// A folder with compiled modules for `erl`; may be given several times
    #[arg(long, value_name = "EBIN")]
    pub(crate) path: Vec<PathBuf>,
    /// The folder of the application `ats`
    #[arg(long, value_name = "FOLDER")]
    pub(crate) ats: Option<PathBuf>,
    /// Applications, each a folder or a name that `erl` knows; and the folder for the copies
    #[arg(required = true, num_args = 2.., value_names = ["APPLICATION", "OUT"])]
    pub(crate) applications: Vec<OsString>,
}

/// `stat`, `verify` and `dump` show one moment of a store that another program has open. For
/// `compact` and `salvage` it must be closed. Only `compact` and the target of `salvage` are
/// written to.
#[derive(Debug, Subcommand)]
pub(crate) enum DiskCommand {
    /// Show the runs, files and journals of a store
    #[command(after_help = EXIT_CODES)]
    Stat {
        /// The directory of the store
        directory: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Read all files, check them, and name each fault
    #[command(after_help = EXIT_CODES)]
    ///
    /// The directory of a table of `dats` has a file `table` beside its store. It is checked, too,
    /// and should be there if the merge operator or the records are those of a table.
    Verify {
        /// The directory of the store
        directory: PathBuf,
        /// The store is that of another program, and needs no file `table`
        #[arg(long)]
        no_table: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Print the records, in the order of their keys
    ///
    /// A line has the key, a tab and the value, or an object of a table. Where operands cannot be
    /// merged without the program that the store belongs to, they follow, each behind a tab and a
    /// plus sign, from the oldest to the newest. If the store is damaged, its readable records are
    /// printed.
    #[command(after_help = EXIT_CODES)]
    Dump {
        /// The directory of the store
        directory: PathBuf,
        /// The form in which keys and values are printed
        #[arg(long, value_enum, default_value_t = Format::Escaped)]
        format: Format,
        /// Print at most so many records
        #[arg(long, value_name = "RECORDS")]
        limit: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Compact all runs into one, which frees the space of replaced and deleted records
    #[command(after_help = EXIT_CODES)]
    Compact {
        /// The directory of the store
        directory: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Save the readable records of a damaged store into a new one
    ///
    /// Each record is a value that its key had after some write; it is the last one, unless the key
    /// is among those that are named as lost. Nothing is written into the source.
    ///
    /// A table of `dats` is saved as a table. If the file `table`, which describes it, is damaged,
    /// the records and the merge operator tell its type, and options where these leave it open.
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
        table: TableOptions,
        #[command(flatten)]
        output: Output,
    },
}

/// Description of a table of `dats`, if its file `table` does not say it any more.
#[derive(Args, Clone, Debug)]
pub(crate) struct TableOptions {
    /// The type of the table, if the file `table` is damaged
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    pub(crate) table_type: Option<Type>,
    /// The position of the key, from 1, if the file `table` is damaged
    #[arg(long, value_name = "POSITION", value_parser = position)]
    pub(crate) keypos: Option<usize>,
    /// The merge of the table, if no file tells it: sum, '{prune, sum}', '{module, highest_bid, 1}'
    /// with the version
    #[arg(long, value_parser = merge)]
    pub(crate) merge: Option<Merge>,
    /// `true` if 0.0 and -0.0 are the same key, if the file `table` is damaged: for a table made
    /// before Erlang/OTP 27
    #[arg(long, value_enum)]
    pub(crate) zeros: Option<ZerosOption>,
    /// The store is that of another program, and gets no file `table`
    #[arg(long, conflicts_with_all = ["table_type", "keypos", "merge", "zeros"])]
    pub(crate) no_table: bool,
}

impl TableOptions {
    /// Returns `true` if something was told of a table.
    pub(crate) fn is_any(&self) -> bool {
        self.table_type.is_some()
            || self.keypos.is_some()
            || self.merge.is_some()
            || self.zeros.is_some()
    }

    /// Returns `true` if a table is as was told.
    pub(crate) fn fits(&self, table: &Description) -> bool {
        self.table_type
            .is_none_or(|told| TableType::from(told) == table.table_type)
            && self.keypos.is_none_or(|told| told == table.key_position)
            && self.merge.as_ref().is_none_or(|told| told.0 == table.merge)
            && self
                .zeros
                .is_none_or(|told| Zeros::from(told) == table.zeros)
    }
}

/// The types of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Type {
    Set,
    OrderedSet,
    Bag,
    DuplicateBag,
    OrderedBag,
    OrderedDuplicateBag,
}

impl From<Type> for TableType {
    fn from(from: Type) -> Self {
        match from {
            Type::Set => TableType::Set,
            Type::OrderedSet => TableType::OrderedSet,
            Type::Bag => TableType::Bag,
            Type::DuplicateBag => TableType::DuplicateBag,
            Type::OrderedBag => TableType::OrderedBag,
            Type::OrderedDuplicateBag => TableType::OrderedDuplicateBag,
        }
    }
}

/// The rules for zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ZerosOption {
    Same,
    Distinct,
}

impl From<ZerosOption> for Zeros {
    fn from(from: ZerosOption) -> Self {
        match from {
            ZerosOption::Same => Zeros::Same,
            ZerosOption::Distinct => Zeros::Distinct,
        }
    }
}

/// A merge, as a description has it.
#[derive(Clone, Debug)]
pub(crate) struct Merge(pub(crate) Vec<u8>);

fn merge(argument: &str) -> Result<Merge, String> {
    let merge = parse_merge(argument).map(Merge);
    merge.ok_or_else(|| {
        "there is no such merge; a module has its version: {module, NAME, VERSION}".into()
    })
}

fn position(argument: &str) -> Result<usize, String> {
    let position = argument.parse().ok().filter(|position| *position > 0);
    position.ok_or_else(|| "it is a number from 1".into())
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

/// The form in which keys and values are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Printable ASCII as it is, other bytes as in Rust: \n, \\, \x00
    Escaped,
    /// Two hexadecimal digits for each byte
    Hex,
    /// Objects of a table of `dats`, each a line that Erlang's file:consult/1 reads
    Term,
}

/// Returns the name and the version of a merge operator.
fn operator(argument: &str) -> Result<(String, u32), String> {
    let parts = argument.rsplit_once(':');
    let parts = parts.and_then(|(name, version)| Some((name.to_owned(), version.parse().ok()?)));
    parts.ok_or_else(|| "it is a name, a colon and a number".into())
}
