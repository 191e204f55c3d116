//! Commands on stores on disk, one module for each. `table` reads the description of a table in its
//! directory, `reconstruct` finds out a lost one, and `evidence` asks the records.

mod compact;
mod dump;
mod evidence;
mod reconstruct;
mod salvage;
mod stat;
mod survey;
mod table;
mod verify;

use crate::arguments::DiskCommand;
use crate::outcome::Outcome;

/// Runs a command.
pub(crate) fn run(command: &DiskCommand) -> Outcome {
    let result = match command {
        DiskCommand::Stat { directory, output } => stat::run(directory, *output),
        DiskCommand::Verify {
            directory,
            no_table,
            output,
        } => verify::run(directory, *no_table, *output),
        DiskCommand::Dump {
            directory,
            format,
            limit,
            output,
        } => dump::run(directory, *format, *limit, *output),
        DiskCommand::Compact { directory, output } => compact::run(directory, *output),
        DiskCommand::Salvage {
            source,
            target,
            operator,
            table,
            output,
        } => salvage::run(source, target, operator.as_ref(), table, *output),
    };
    result.into()
}
