//! `ats disk stat`: shows the contents of a store.

use super::survey::{LIVE, operator, survey_live};
use super::table::{self, Table};
use crate::arguments::Output;
use crate::outcome::{Failure, Outcome};
use crate::output::{bytes, json_faults, print_faults, print_json};
use crate::text::escape;
use ats_disk::offline::{Fault, FileSurvey, RunSurvey, Survey};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;

pub(super) fn run(directory: &Path, output: Output) -> Result<Outcome, Failure> {
    let survey = survey_live(directory)?;
    let table = Table::read(&survey)?;
    let fault = table.fault(&survey);
    let shown = table::describe(table.description(), fault.is_some());
    let mut faults = survey.faults().to_vec();
    faults.extend(fault);
    if output.json {
        print_json(&json(&survey, &table, &faults))?;
    } else {
        print(&survey, &shown, &faults)?;
    }
    Ok(Outcome::of_faults(!faults.is_empty()))
}

/// Returns a number for all files of a run.
fn sum(run: &RunSurvey, of: impl Fn(&FileSurvey) -> u64) -> u64 {
    run.files.iter().map(of).sum()
}

fn print(survey: &Survey, table: &str, faults: &[Fault]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if survey.is_live() {
        writeln!(out, "{LIVE}")?;
    }
    if let Some(store) = survey.store() {
        writeln!(out, "store            {store:032x}")?;
    }
    writeln!(out, "table            {table}")?;
    writeln!(out, "merge operator   {}", operator(survey))?;
    if let Some(runs) = survey.runs() {
        let all: u64 = runs.iter().map(|run| sum(run, |file| file.bytes)).sum();
        writeln!(out, "runs             {}, {}", runs.len(), bytes(all))?;
        for (number, run) in (1..).zip(&runs) {
            writeln!(
                out,
                "  {number}: {} files, {}, {} entries ({} operands, {} deletes), \
                 {} deleted ranges, changes {} to {}",
                run.files.len(),
                bytes(sum(run, |file| file.bytes)),
                sum(run, |file| file.entries),
                sum(run, |file| file.operands),
                sum(run, |file| file.deletes),
                sum(run, |file| file.range_deletes),
                run.changes.0,
                run.changes.1,
            )?;
        }
    }
    if let Some(merges) = survey.compactions().filter(|merges| *merges > 0) {
        writeln!(out, "unfinished merges {merges}")?;
    }
    for journal in survey.journals() {
        let needed = if journal.is_needed {
            ""
        } else {
            ", not needed"
        };
        writeln!(out, "{} {}{needed}", journal.name, bytes(journal.bytes))?;
    }
    for name in survey.unneeded_files() {
        writeln!(
            out,
            "{name} is not needed, and removed when the store is opened"
        )?;
    }
    print_faults(&mut out, "faults", faults)?;
    out.flush()
}

fn json(survey: &Survey, table: &Table, faults: &[Fault]) -> Value {
    let file = |file: &FileSurvey| {
        let keys = file.keys.as_ref();
        json!({
            "name": file.name,
            "bytes": file.bytes,
            "entries": file.entries,
            "operands": file.operands,
            "deletes": file.deletes,
            "range_deletes": file.range_deletes,
            "key_bytes": file.key_bytes,
            "value_bytes": file.value_bytes,
            "first_key": keys.map(|(first, _)| escape(first)),
            "last_key": keys.map(|(_, last)| escape(last)),
        })
    };
    let run = |run: RunSurvey| {
        json!({
            "first_change": run.changes.0,
            "last_change": run.changes.1,
            "files": run.files.iter().map(file).collect::<Value>(),
        })
    };
    let journals = survey.journals().into_iter().map(|journal| {
        json!({"name": journal.name, "bytes": journal.bytes, "is_needed": journal.is_needed})
    });
    let operator = survey.operator();
    let operator = operator.map(|(name, version)| json!({"name": name, "version": version}));
    json!({
        "is_live": survey.is_live(),
        "store": survey.store().map(|store| format!("{store:032x}")),
        "table": table::json(table.description()),
        "operator": operator,
        "runs": survey.runs().map(|runs| runs.into_iter().map(run).collect::<Value>()),
        "changes_in_runs": survey.changes_in_runs(),
        "unfinished_merges": survey.compactions(),
        "journals": journals.collect::<Value>(),
        "unneeded": survey.unneeded_files(),
        "faults": json_faults(faults),
    })
}
