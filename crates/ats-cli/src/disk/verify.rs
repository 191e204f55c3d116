//! `ats disk verify`: all files are read and checked.

use super::survey::{LIVE, survey_live};
use super::table::{self, Table};
use crate::arguments::Output;
use crate::outcome::{Failure, Outcome, failure_in};
use crate::output::{bytes, json_faults, print_faults, print_json};
use crate::progress::Bar;
use ats_disk::offline::verify;
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;

pub(super) fn run(directory: &Path, no_table: bool, output: Output) -> Result<Outcome, Failure> {
    let survey = survey_live(directory)?;
    let table = if no_table {
        Table::Missing
    } else {
        Table::read(&survey)?
    };
    let bar = Bar::new("verifying", output);
    let report = verify(&survey, &mut |progress| bar.show(progress));
    drop(bar);
    let mut report = report.map_err(failure_in(directory.display().to_string()))?;
    let fault = if no_table {
        None
    } else {
        table.fault_by_records(&survey, directory)
    };
    let shown = table::describe(table.description(), fault.is_some());
    report.faults.extend(fault);
    if output.json {
        print_json(&json!({
            "is_live": survey.is_live(),
            "table": table::json(table.description()),
            "files": report.files,
            "bytes": report.bytes,
            "entries": report.entries,
            "changes_in_journals": report.changes,
            "unfinished": json_faults(&report.unfinished),
            "faults": json_faults(&report.faults),
        }))?;
    } else {
        let mut out = io::stdout().lock();
        if survey.is_live() {
            writeln!(out, "{LIVE}")?;
        }
        writeln!(out, "table: {shown}")?;
        writeln!(
            out,
            "{} run files with {} entries, {}; {} changes in journals",
            report.files,
            report.entries,
            bytes(report.bytes),
            report.changes
        )?;
        print_faults(&mut out, "never finished", &report.unfinished)?;
        print_faults(&mut out, "faults", &report.faults)?;
        if report.faults.is_empty() {
            writeln!(out, "no faults")?;
        }
        out.flush()?;
    }
    Ok(Outcome::of_faults(!report.faults.is_empty()))
}
