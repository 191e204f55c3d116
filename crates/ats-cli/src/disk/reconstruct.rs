//! The reconstruction of a lost description, from the merge operator, the records and the options.
//! The options need to say only the part that the others leave open, and they must not contradict.

use super::evidence;
use super::table::{Table, mismatch};
use crate::arguments::{Output, TableOptions};
use crate::outcome::Failure;
use ats::terms::salvage::merge_of_operator;
use ats::terms::{Description, Zeros};
use ats_disk::Lifetime;
use ats_disk::offline::Survey;
use std::collections::BTreeSet;

/// Returns the table of a store. `None` if it has none.
pub(super) fn reconstruct(
    survey: &Survey,
    table: &Table,
    options: &TableOptions,
    operator_option: Option<&(String, u32)>,
    output: Output,
) -> Result<Option<Description>, Failure> {
    let given_operator = operator_option.map(|(name, version)| (&name[..], *version));
    let operator = survey.operator().or(given_operator);
    let of_operator = operator.and_then(|(name, version)| merge_of_operator(name, version));
    let is_asked_for = options.is_any() || matches!(table, Table::Spoilt(_));
    if let Some((name, version)) = operator
        && of_operator.is_none()
    {
        let why = format!("the merge operator {name}, version {version}, is not that of a table");
        return if is_asked_for {
            Err(Failure::Refused(why))
        } else {
            Ok(None)
        };
    }
    let is_of_table = of_operator
        .as_ref()
        .is_some_and(|(merge, _)| !merge.is_empty());
    let is_table = is_asked_for || is_of_table;
    let key_position = of_operator.as_ref().and_then(|(_, position)| *position);
    let merge = options.merge.as_ref().map(|merge| merge.0.clone());
    let merge = merge.or(of_operator.map(|(merge, _)| merge));
    let merge = merge.unwrap_or_default();
    let (evidence, has_operands) = evidence::all(survey, merge.clone(), is_table, output)?;
    let mut possible = evidence.possible().to_vec();
    if has_operands && merge.is_empty() && (is_table || !possible.is_empty()) {
        let why = "there are values to be merged, and no file tells how: tell it by --merge; if \
                   the store is that of another program, by --operator and --no-table";
        return Err(Failure::Refused(why.into()));
    }
    if possible.is_empty() {
        if !is_table {
            return Ok(None);
        }
        let (Some(table_type), Some(key_position)) =
            (options.table_type, options.keypos.or(key_position))
        else {
            let why = "no record tells what the table was: tell it by --type and --keypos";
            return Err(Failure::Refused(why.into()));
        };
        possible.extend([Zeros::Distinct, Zeros::Same].map(|zeros| Description {
            table_type: table_type.into(),
            key_position,
            zeros,
            merge: merge.clone(),
            has_shared: false,
            format: Vec::new(),
            lifetime: survey.expires().then_some(Lifetime::Forever),
        }));
    }
    let fits = |table: &Description| {
        options.fits(table)
            && key_position.is_none_or(|position| position == table.key_position)
            && (merge.is_empty() || !table.table_type.is_bag())
            && mismatch(survey, table).is_none()
    };
    possible.retain(fits);
    let mut chosen = choose(possible, evidence.possible(), table)?;
    // Some records were not read, and may be of the older kind.
    chosen.has_shared = chosen.table_type.is_bag();
    Ok(Some(chosen))
}

/// Chooses the only description that fits, or asks for the missing part.
fn choose(
    mut fitting: Vec<Description>,
    by_records: &[Description],
    table: &Table,
) -> Result<Description, Failure> {
    let Some(first) = fitting.first() else {
        let mut why = "the options do not fit the store".to_owned();
        if !by_records.is_empty() {
            why += "; its records are those of a table that is ";
            why += &join_alternatives(by_records.iter().map(Description::to_string));
        }
        return Err(Failure::Refused(why));
    };
    let is_same = |one: &Description| {
        (one.table_type, one.key_position) == (first.table_type, first.key_position)
    };
    if fitting.iter().all(is_same) {
        // Nothing is lost by keeping zeros apart if both rules for them fit.
        fitting.sort_by_key(|one| one.zeros == Zeros::Same);
        return Ok(fitting.swap_remove(0));
    }
    let why = match table {
        Table::Spoilt(why) => why,
        Table::Described(_) | Table::Missing => "it is missing",
    };
    let types = join_alternatives(fitting.iter().map(|one| one.table_type.name().to_owned()));
    let positions = join_alternatives(fitting.iter().map(|one| one.key_position.to_string()));
    Err(Failure::Refused(format!(
        "the file that describes the table, `{}`, says nothing: {why}. Tell what the table was: \
         --type {types} and --keypos {positions} fit the records",
        Description::FILE
    )))
}

/// Different texts in their order, as alternatives.
fn join_alternatives(texts: impl Iterator<Item = String>) -> String {
    let texts: BTreeSet<_> = texts.collect();
    let texts: Vec<_> = texts.into_iter().collect();
    texts.join(" or ")
}
