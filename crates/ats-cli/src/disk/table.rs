//! The table that a directory has: the file `table` beside its store tells `dats` of it.
//!
//! A store of another program has no such file. So where it is missing, the merge operator and the
//! records tell whether there should be one.

use super::evidence::sample;
use crate::outcome::{Failure, failure_in};
use ats::terms::salvage::{merge_of_operator, operator};
use ats::terms::{Description, NoDescription, Zeros};
use ats_disk::offline::{Fault, Survey};
use ats_disk::{Error, Lifetime};
use serde_json::{Value, json};
use std::path::Path;

/// Content of the file `table`.
pub(super) enum Table {
    /// Description of the table.
    Described(Description),
    /// Nothing, because of this.
    Spoilt(String),
    /// The file does not exist.
    Missing,
}

impl Table {
    /// Reads the file, and compares it with the merge operator of the store.
    pub(super) fn read(survey: &Survey) -> Result<Self, Failure> {
        let bytes = match survey.read(Description::FILE) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(Table::Missing),
            Err(Error::Corrupt(why)) => return Ok(Table::Spoilt(why)),
            Err(error) => return Err(failure_in(Description::FILE)(error)),
        };
        match Description::decode(&bytes) {
            Ok(description) => Ok(match mismatch(survey, &description) {
                Some(why) => Table::Spoilt(why),
                None => Table::Described(description),
            }),
            Err(NoDescription::Damaged) if bytes.is_empty() => {
                Ok(Table::Spoilt("it is empty".into()))
            }
            Err(NoDescription::Damaged) => Ok(Table::Spoilt("it was spoilt".into())),
            Err(error @ NoDescription::Newer(_)) => Err(Failure::Refused(error.to_string())),
        }
    }

    /// Returns the fault that there is, if the store should have a table.
    pub(super) fn fault(&self, survey: &Survey) -> Option<Fault> {
        let why = match self {
            Table::Described(_) => return None,
            Table::Spoilt(why) => why.clone(),
            Table::Missing => {
                let (name, version) = survey.operator()?;
                let (merge, _) = merge_of_operator(name, version)?;
                if merge.is_empty() {
                    return None;
                }
                format!("it is missing, and the merge operator {name} is that of a table")
            }
        };
        Some(fault(why))
    }

    /// Like [`fault`](Table::fault), and asks some records besides.
    pub(super) fn fault_by_records(&self, survey: &Survey, at: &Path) -> Option<Fault> {
        let known = self.fault(survey);
        // One that says only that records expire says nothing of tables.
        let merges = survey.operator().is_some_and(|(name, version)| {
            merge_of_operator(name, version).is_none_or(|(merge, _)| !merge.is_empty())
        });
        if known.is_some() || merges {
            return known;
        }
        let merge = self.description().map(|table| table.merge.clone());
        let evidence = sample(survey, at, merge.unwrap_or_default());
        let possible = evidence.possible();
        let first = possible.first()?;
        match self {
            Table::Described(table) if possible.iter().any(|it| it.has_records_of(table)) => None,
            Table::Described(table) => Some(fault(format!(
                "it says {table}, and the records are those of another table, such as {first}"
            ))),
            Table::Missing | Table::Spoilt(_) => {
                let what = format!("it is missing, and the records are those of a table: {first}");
                Some(fault(what))
            }
        }
    }

    /// Description of the table.
    pub(super) fn description(&self) -> Option<&Description> {
        match self {
            Table::Described(description) => Some(description),
            Table::Spoilt(_) | Table::Missing => None,
        }
    }
}

pub(super) fn fault(why: impl std::fmt::Display) -> Fault {
    Fault::new(Description::FILE, None, why)
}

/// Description of a table, for people. It is not described if that is a fault.
pub(super) fn describe(description: Option<&Description>, has_fault: bool) -> String {
    match description {
        Some(description) => description.to_string(),
        None if has_fault => "not described".into(),
        None => "none of dats".into(),
    }
}

/// Description of a table, as JSON.
pub(super) fn json(description: Option<&Description>) -> Value {
    let object = |table: &Description| {
        json!({
            "type": table.table_type.name(),
            "keypos": table.key_position,
            "merge": table.merge_text(),
            "format": table.format_text(),
            "ttl": match table.lifetime {
                None => json!(false),
                Some(Lifetime::For(time)) => json!(time.as_millis()),
                Some(_) => json!("infinity"),
            },
            "distinct_zeros": table.zeros == Zeros::Distinct,
        })
    };
    description.map_or(Value::Null, object)
}

/// Says where a description is not that of the table in a store.
pub(super) fn mismatch(survey: &Survey, description: &Description) -> Option<String> {
    let wanted = operator(description);
    if wanted.is_none() && !description.merge.is_empty() {
        return Some(format!("it says {description}, and there is no such merge"));
    }
    if !survey.knows_operator() {
        return None;
    }
    let wanted = wanted.as_ref().map(|(name, version)| (&name[..], *version));
    let found = survey.operator();
    let shown = |operator: Option<(&str, u32)>| match operator {
        Some((name, version)) => format!("{name}, version {version}"),
        None => "none".into(),
    };
    (wanted != found).then(|| {
        let (wanted, found) = (shown(wanted), shown(found));
        format!("it asks for the merge operator {wanted}, and the store has {found}")
    })
}
