//! `ats disk salvage`: makes a new store of the readable records of a damaged one.

use super::reconstruct::reconstruct;
use super::survey::survey;
use super::table::{self, Table};
use crate::arguments::{Output, TableOptions};
use crate::outcome::{Failure, Outcome, failure_in};
use crate::output::{json_faults, print_faults, print_json};
use crate::progress::Bar;
use ats::terms::{Description, salvage};
use ats_disk::Options;
use ats_disk::offline::{self, Fault, KeepOperands, Survey};
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(
    source: &Path,
    target: &Path,
    operator: Option<&(String, u32)>,
    table_options: &TableOptions,
    output: Output,
) -> Result<Outcome, Failure> {
    if offline::is_within(target, source) {
        let why = "the new store would be within the damaged one, into which nothing is written";
        return Err(Failure::Refused(why.into()));
    }
    let survey = survey(source)?;
    let (table, fault) = if table_options.no_table {
        (None, None)
    } else {
        find_table(&survey, table_options, operator, output)?
    };
    let of_table = table.as_ref().and_then(salvage::operator);
    let options = options(of_table.as_ref().or(operator));
    let file = table.as_ref().map(Description::encode);
    let beside = file.iter().map(|bytes| (Description::FILE, &bytes[..]));
    let beside: Vec<_> = beside.collect();
    let bar = Bar::new("salvaging", output);
    let on_progress = &mut |progress| bar.show(progress);
    let salvaged = offline::salvage(&survey, target, options, &beside, on_progress);
    drop(bar);
    let what = format!("{} to {}", source.display(), target.display());
    let mut salvaged = salvaged.map_err(failure_in(what))?;
    salvaged.faults.extend(fault);
    if output.json {
        print_json(&json!({
            "table": table::json(table.as_ref()),
            "records": salvaged.records,
            "records_with_operands": salvaged.with_operands,
            "keys_without_newer_operands": salvaged.outdated,
            "lost_entries": salvaged.lost_entries,
            "faults": json_faults(&salvaged.faults),
        }))?;
    } else {
        let mut out = io::stdout().lock();
        writeln!(out, "{} records were saved", salvaged.records)?;
        writeln!(out, "table: {}", table::describe(table.as_ref(), false))?;
        if salvaged.lost_entries > 0 {
            writeln!(
                out,
                "{} entries of run files are lost",
                salvaged.lost_entries
            )?;
        }
        if salvaged.outdated > 0 {
            let keys = salvaged.outdated;
            writeln!(
                out,
                "{keys} keys lack newer operands, since what these are merged with is lost"
            )?;
        }
        print_faults(&mut out, "faults", &salvaged.faults)?;
        out.flush()?;
    }
    Ok(Outcome::of_faults(!salvaged.faults.is_empty()))
}

/// Returns the table of a store, if it has one; and the fault, if the file that describes it says
/// nothing.
fn find_table(
    survey: &Survey,
    table_options: &TableOptions,
    operator: Option<&(String, u32)>,
    output: Output,
) -> Result<(Option<Description>, Option<Fault>), Failure> {
    let found = Table::read(survey)?;
    if let Table::Described(table) = found {
        return if table_options.fits(&table) {
            Ok((Some(table), None))
        } else {
            Err(Failure::Refused(format!(
                "the options do not fit the table, which is described: {table}"
            )))
        };
    }
    let table = reconstruct(survey, &found, table_options, operator, output)?;
    let fault = table.as_ref().map(|_| match found {
        Table::Spoilt(why) => table::fault(why),
        Table::Described(_) | Table::Missing => table::fault("it is missing"),
    });
    Ok((table, fault))
}

/// Returns the options of the new store.
fn options(operator: Option<&(String, u32)>) -> Options {
    match operator {
        Some((name, version)) => {
            Options::new().operator(Arc::new(KeepOperands::new(name, *version)))
        }
        None => Options::new(),
    }
}
