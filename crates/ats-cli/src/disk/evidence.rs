//! The records of a store, asked which table they are of.

use crate::arguments::Output;
use crate::outcome::{Failure, failure_in};
use crate::progress::Bar;
use ats::terms::salvage::Evidence;
use ats_disk::offline::{Salvage, Survey};
use ats_disk::{DiskStore, Error, Options, one_of_several};
use ats_store::Direction;
use std::path::Path;

/// Records that tell whether a store has a table.
const SAMPLE: usize = 100;

/// Evidence of the first records of a store, of which no file tells a merge operator, for a table
/// with this merge. It is empty if no record can be read.
pub(super) fn sample(survey: &Survey, at: &Path, merge: Vec<u8>) -> Evidence {
    let mut evidence = Evidence::new(merge, survey.expires());
    // Reasons why a store cannot be opened are named elsewhere. It takes much longer to find
    // records in it then.
    if add_first_records(at, &mut evidence).is_err()
        && let Ok(mut salvage) = Salvage::new(survey)
    {
        let _unreadable = add_records(&mut salvage, SAMPLE, &mut evidence);
    }
    evidence
}

fn add_first_records(at: &Path, evidence: &mut Evidence) -> Result<(), Error> {
    let options = Options::new().create(false).read_only(true);
    let store = DiskStore::open(at, options)?;
    let mut scan = store.scan_lending(.., Direction::Up)?;
    for _ in 0..SAMPLE {
        let Some((key, value)) = scan.next()? else {
            break;
        };
        add_record(evidence, key, value);
    }
    Ok(())
}

/// Evidence of all records for a table with this merge, and whether there are operands. Unless it
/// is sure that there is a table, the first ones decide whether the others are asked.
pub(super) fn all(
    survey: &Survey,
    merge: Vec<u8>,
    is_table: bool,
    output: Output,
) -> Result<(Evidence, bool), Failure> {
    let bar = Bar::new("reading", output);
    let mut evidence = Evidence::new(merge, survey.expires());
    let mut read = || -> Result<bool, Error> {
        let salvage = Salvage::with_progress(survey, &mut |progress| bar.show(progress))?;
        let Some(mut salvage) = salvage else {
            return Ok(false);
        };
        let mut has_operands = add_records(&mut salvage, SAMPLE, &mut evidence)?;
        if is_table || !evidence.possible().is_empty() {
            has_operands |= add_records(&mut salvage, usize::MAX, &mut evidence)?;
        }
        Ok(has_operands)
    };
    let has_operands = read().map_err(failure_in("reading the records"))?;
    Ok((evidence, has_operands))
}

/// Adds a record to the evidence.
fn add_record(evidence: &mut Evidence, key: &[u8], value: &[u8]) {
    match one_of_several(key, value) {
        Some((key, object)) => evidence.meet_alone(key, object),
        None => evidence.meet(key, value),
    }
}

/// Adds the next records to the evidence, as many at most. Returns `true` if they have operands.
fn add_records(salvage: &mut Salvage, most: usize, evidence: &mut Evidence) -> Result<bool, Error> {
    let mut has_operands = false;
    for _ in 0..most {
        let Some(record) = salvage.next()? else {
            break;
        };
        for value in record.value.iter().chain(&record.operands) {
            add_record(evidence, &record.key, value);
        }
        has_operands |= !record.operands.is_empty();
    }
    Ok(has_operands)
}
