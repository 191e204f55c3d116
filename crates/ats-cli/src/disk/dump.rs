//! `ats disk dump`: the records.

use super::survey::{LIVE, survey_live};
use crate::arguments::{Format, Output};
use crate::outcome::{Failure, Outcome, failure_in};
use crate::output::print_faults;
use crate::progress::Bar;
use crate::text::format_bytes;
use ats::terms::{Term, salvage};
use ats_disk::offline::{Salvage, SalvagedRecord};
use ats_disk::{Lifetime, one_of_several};
use serde_json::{Map, json};
use std::io::{self, BufWriter, Write};
use std::path::Path;

pub(super) fn run(
    directory: &Path,
    format: Format,
    limit: Option<u64>,
    output: Output,
) -> Result<Outcome, Failure> {
    let survey = survey_live(directory)?;
    if survey.is_live() {
        writeln!(io::stderr(), "{LIVE}")?;
    }
    let failure = || failure_in(directory.display().to_string());
    let bar = Bar::new("reading", output);
    let salvage = Salvage::with_progress(&survey, &mut |progress| bar.show(progress));
    drop(bar);
    let Some(mut salvage) = salvage.map_err(failure())? else {
        return Ok(Outcome::Right);
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut left = limit.unwrap_or(u64::MAX);
    while left > 0
        && let Some(record) = salvage.next().map_err(failure())?
    {
        left -= 1;
        let mut record = record;
        let deadline = if survey.expires() {
            take_deadline(&mut record)
        } else {
            None
        };
        if output.json {
            print_json(&mut out, &record, deadline, format)?;
        } else {
            print(&mut out, &record, deadline, format)?;
        }
    }
    out.flush()?;
    let faults = salvage.faults();
    print_faults(&mut io::stderr(), "faults", faults)?;
    Ok(Outcome::of_faults(!faults.is_empty()))
}

/// Takes the deadline off the value of a record. Returns it in milliseconds since 1970, if the
/// record expires.
fn take_deadline(record: &mut SalvagedRecord) -> Option<u128> {
    let value = record.value.take()?;
    let Some((lifetime, content)) = Lifetime::split(&value) else {
        record.value = Some(value);
        return None;
    };
    record.value = Some(content.to_vec());
    match lifetime {
        Lifetime::Until(deadline) => Some(deadline.as_millis()),
        _ => None,
    }
}

/// Returns the objects of a record of a table. `None` if the record is that of another store.
fn objects_of(record: &SalvagedRecord) -> Option<Vec<Term>> {
    let values = record.value.iter().chain(&record.operands);
    let objects = values.map(|value| match one_of_several(&record.key, value) {
        Some((_, object)) => Some(vec![salvage::object_alone(object)?]),
        None => salvage::objects_of(value),
    });
    let objects: Option<Vec<Vec<Term>>> = objects.collect();
    Some(objects?.concat())
}

/// Prints the objects of a record, each in a line. Those of a record of a table that merges values
/// follow each other, from the oldest to the newest.
fn print_objects(out: &mut dyn Write, objects: &[Term], deadline: Option<u128>) -> io::Result<()> {
    for object in objects {
        write!(out, "{object}.")?;
        if let Some(deadline) = deadline {
            write!(out, " % until {deadline}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn print(
    out: &mut dyn Write,
    record: &SalvagedRecord,
    deadline: Option<u128>,
    format: Format,
) -> io::Result<()> {
    if format == Format::Term {
        if let Some(objects) = objects_of(record) {
            return print_objects(out, &objects, deadline);
        }
        write!(out, "% ")?;
    }
    write!(out, "{}", format_bytes(&record.key, format))?;
    if let Some(value) = &record.value {
        write!(out, "\t{}", format_bytes(value, format))?;
    }
    for operand in &record.operands {
        write!(out, "\t+{}", format_bytes(operand, format))?;
    }
    if let Some(deadline) = deadline {
        write!(out, "\tuntil {deadline}")?;
    }
    writeln!(out)
}

fn print_json(
    out: &mut dyn Write,
    record: &SalvagedRecord,
    deadline: Option<u128>,
    format: Format,
) -> io::Result<()> {
    let mut object = Map::new();
    if format == Format::Term
        && let Some(objects) = objects_of(record)
    {
        let objects: Vec<_> = objects.iter().map(Term::to_string).collect();
        object.insert("objects".into(), json!(objects));
        if let Some(deadline) = deadline {
            object.insert("deadline".into(), json!(deadline));
        }
        serde_json::to_writer(&mut *out, &object)?;
        return writeln!(out);
    }
    object.insert("key".into(), json!(format_bytes(&record.key, format)));
    let value = record
        .value
        .as_ref()
        .map(|value| format_bytes(value, format));
    object.insert("value".into(), json!(value));
    if !record.operands.is_empty() {
        let operands = record
            .operands
            .iter()
            .map(|operand| format_bytes(operand, format));
        object.insert("operands".into(), operands.collect());
    }
    if let Some(deadline) = deadline {
        object.insert("deadline".into(), json!(deadline));
    }
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}
