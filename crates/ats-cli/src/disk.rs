//! Commands on stores on disk, one module for each. `table` reads what a directory says of its
//! table, `reconstruct` finds it out where it does not say it, and `evidence` asks the records.

mod compact;
mod dump;
mod evidence;
mod reconstruct;
mod salvage;
mod stat;
mod table;
mod verify;

use crate::arguments::DiskCommand;
use crate::outcome::{Failure, Outcome, failed};
use ats_disk::fs::RealFs;
use ats_disk::offline::Survey;
use std::path::Path;
use std::sync::Arc;

/// Does what is asked for.
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

/// Surveys the directory of a store.
fn survey(directory: &Path) -> Result<Survey, Failure> {
    Survey::new(Arc::new(RealFs), directory).map_err(failed(directory.display().to_string()))
}

/// The name and the version of a merge operator.
fn operator(survey: &Survey) -> String {
    match survey.operator() {
        Some((name, version)) => format!("{name}, version {version}"),
        None => "none".into(),
    }
}
