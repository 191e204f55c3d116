//! `ats disk verify`: all files are read and checked.

use crate::arguments::Output;
use crate::outcome::{Failure, Outcome, failed};
use crate::output::{bytes, json_faults, print_faults, print_json};
use crate::progress::Bar;
use ats_disk::offline::verify;
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;

pub(super) fn run(directory: &Path, output: Output) -> Result<Outcome, Failure> {
    let survey = super::survey(directory)?;
    let bar = Bar::new("verifying", output);
    let report = verify(&survey, &mut |progress| bar.show(progress));
    drop(bar);
    let report = report.map_err(failed(directory.display().to_string()))?;
    if output.json {
        print_json(&json!({
            "files": report.files,
            "bytes": report.bytes,
            "entries": report.entries,
            "changes_in_journals": report.changes,
            "unfinished": json_faults(&report.unfinished),
            "faults": json_faults(&report.faults),
        }))?;
    } else {
        let mut out = io::stdout().lock();
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
