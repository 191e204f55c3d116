//! `ats disk dump`: the records.

use super::survey::survey;
use crate::arguments::{Format, Output};
use crate::outcome::{Failure, Outcome, failed};
use crate::output::print_faults;
use crate::progress::Bar;
use crate::text::shown;
use ats_disk::offline::{Salvage, SalvagedRecord};
use serde_json::{Map, json};
use std::io::{self, BufWriter, Write};
use std::path::Path;

pub(super) fn run(
    directory: &Path,
    format: Format,
    limit: Option<u64>,
    output: Output,
) -> Result<Outcome, Failure> {
    let survey = survey(directory)?;
    let failed = || failed(directory.display().to_string());
    let bar = Bar::new("reading", output);
    let salvage = Salvage::with_progress(&survey, &mut |progress| bar.show(progress));
    drop(bar);
    let Some(mut salvage) = salvage.map_err(failed())? else {
        return Ok(Outcome::Right);
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut left = limit.unwrap_or(u64::MAX);
    while left > 0
        && let Some(record) = salvage.next().map_err(failed())?
    {
        left -= 1;
        match output.json {
            true => print_json(&mut out, &record, format)?,
            false => print(&mut out, &record, format)?,
        }
    }
    out.flush()?;
    let faults = salvage.faults();
    print_faults(&mut io::stderr(), "faults", faults)?;
    Ok(Outcome::of_faults(!faults.is_empty()))
}

fn print(out: &mut dyn Write, record: &SalvagedRecord, format: Format) -> io::Result<()> {
    write!(out, "{}", shown(&record.key, format))?;
    if let Some(value) = &record.value {
        write!(out, "\t{}", shown(value, format))?;
    }
    for operand in &record.operands {
        write!(out, "\t+{}", shown(operand, format))?;
    }
    writeln!(out)
}

fn print_json(out: &mut dyn Write, record: &SalvagedRecord, format: Format) -> io::Result<()> {
    let mut object = Map::new();
    object.insert("key".into(), json!(shown(&record.key, format)));
    let value = record.value.as_ref().map(|value| shown(value, format));
    object.insert("value".into(), json!(value));
    if !record.operands.is_empty() {
        let operands = record.operands.iter().map(|operand| shown(operand, format));
        object.insert("operands".into(), operands.collect());
    }
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}
