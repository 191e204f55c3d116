//! Tables that are not open: removing, renaming, copying and repairing them.
//!
//! Each function locks the directories of which it is about, so that nobody has their tables open
//! meanwhile. Only files of tables are touched. The file that describes a table is removed last and
//! copied last: what a crash leaves can be removed by the same call.

use super::described::{description, of_directory};
use super::failure::Failure;
use crate::atoms::KnownAtom;
use ats::salvage::{self, Evidence, merge_of_operator};
use ats::{Description, TableType};
use ats_disk::fs::{RealFs, Sharing};
use ats_disk::offline::{self, KeepOperands, Salvage, Salvaged, Survey};
use ats_disk::{Error, Options, StoreDirectory, one_of_several};
use ats_store::MergeOperator;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The one of two directories that a failure is about.
pub enum Side {
    /// The one that is there.
    Source,
    /// The one that shall be there.
    Target,
}

/// Files of a table that are not those of its store, in the order in which they are removed. The
/// first one is what a crash has left of the second.
const BESIDE: [&str; 2] = ["table.new", Description::FILE];

type OfTwo<T> = Result<T, (Side, Failure)>;

fn of_source(failure: impl Into<Failure>) -> (Side, Failure) {
    (Side::Source, failure.into())
}

fn of_target(failure: impl Into<Failure>) -> (Side, Failure) {
    (Side::Target, failure.into())
}

/// Locks the directory of a table, whose description may be spoilt.
fn hold(directory: &Path, sharing: Sharing) -> Result<StoreDirectory, Failure> {
    let held = StoreDirectory::open(Arc::new(RealFs), directory, sharing).map_err(of_directory)?;
    match is_table(&held.names()?) {
        true => Ok(held),
        false => Err(Failure::new(
            KnownAtom::NotADatsTable,
            "there is no table in the directory",
        )),
    }
}

/// Returns `true` if a directory with these files has a table.
fn is_table(names: &[String]) -> bool {
    names.iter().any(|name| name == Description::FILE)
}

/// Names of files that are not those of a table.
fn foreign(held: &StoreDirectory) -> Result<Vec<String>, Failure> {
    let is_foreign =
        |name: &String| !BESIDE.contains(&name.as_str()) && !offline::is_of_store(name);
    Ok(held.names()?.into_iter().filter(is_foreign).collect())
}

/// Removes a table, and its directory unless other files are there, whose names are returned.
///
/// # Errors
/// [`Failure`]; the call can be made again.
pub fn destroy(directory: &Path) -> Result<Vec<String>, Failure> {
    let held = hold(directory, Sharing::Exclusive)?;
    destroy_held(&held, directory)
}

fn destroy_held(held: &StoreDirectory, directory: &Path) -> Result<Vec<String>, Failure> {
    let foreign = held.remove_store(&BESIDE)?;
    if foreign.is_empty() {
        offline::remove_dir(directory)?;
    }
    Ok(foreign)
}

/// Gives the directory of a table another name. A table that has the name is removed; its files and
/// the new ones change places in one step.
///
/// # Errors
/// [`Failure`] with the directory that it is about. Either both are what they were, or the second
/// one is the renamed table already, and the first one has what is left of the other.
pub fn rename(source: &Path, target: &Path) -> OfTwo<()> {
    let _held = hold(source, Sharing::Exclusive).map_err(of_source)?;
    let replaced = match StoreDirectory::open(Arc::new(RealFs), target, Sharing::Exclusive) {
        Err(Error::Missing) => None,
        replaced => Some(replaced.map_err(of_directory).map_err(of_target)?),
    };
    let Some(replaced) = replaced else {
        return offline::rename(source, target).map_err(of_source);
    };
    let names = replaced.names().map_err(of_target)?;
    if names.is_empty() {
        return offline::rename(source, target).map_err(of_source);
    }
    if !is_table(&names) || !foreign(&replaced).map_err(of_target)?.is_empty() {
        let text = "the directory has other files than those of a table";
        return Err(of_target(Failure::new(KnownAtom::NotADatsTable, text)));
    }
    offline::exchange(source, target).map_err(of_target)?;
    destroy_held(&replaced, source).map_err(of_source)?;
    Ok(())
}

/// Copies a table to a directory that is empty or missing.
///
/// # Errors
/// [`Failure`] with the directory that it is about. Then there is no copy.
pub fn copy(source: &Path, target: &Path) -> OfTwo<()> {
    let held = hold(source, Sharing::Shared).map_err(of_source)?;
    let Some(parent) = target.parent().filter(|parent| parent.is_dir()) else {
        let text = "the directory in which it shall be is not there";
        return Err(of_target(Failure::new(KnownAtom::Enoent, text)));
    };
    if offline::is_within(parent, source) {
        let text = "a table cannot be copied into its own directory";
        return Err(of_target(Failure::new(KnownAtom::Einval, text)));
    }
    let was_there = target.is_dir();
    let made = StoreDirectory::make(Arc::new(RealFs), target);
    let made = made.map_err(of_directory).map_err(of_target)?;
    if !made.names().map_err(of_target)?.is_empty() {
        let text = "there are files in the directory";
        return Err(of_target(Failure::new(KnownAtom::Eexist, text)));
    }
    held.copy_store(&made, &[Description::FILE])
        .map_err(|error| {
            // What cannot be removed is no table: the file that describes it comes last.
            let _left = made.remove_store(&BESIDE);
            if !was_there {
                let _left = offline::remove_dir(target);
            }
            of_target(error)
        })
}

/// Description of a table, told for the case that its file does not say it any more.
pub struct Told {
    /// Its type.
    pub table_type: TableType,
    /// The position of the key in objects, from 1.
    pub key_position: usize,
    /// The merge of values, if that is told.
    pub merge: Option<Vec<u8>>,
}

/// The outcome of a repair.
pub struct Repaired {
    /// The numbers of what was saved and what was lost, and the faults.
    pub salvaged: Salvaged,
    /// The directory that has the damaged files now, unless nothing was lost.
    pub kept: Option<PathBuf>,
}

/// Writes what can be read of a table to new files, which take the place of the old ones. Those are
/// kept beside the directory if any of them is damaged.
///
/// # Errors
/// [`Failure`]; then the table is what it was.
pub fn repair(directory: &Path, told: Option<&Told>) -> Result<Repaired, Failure> {
    let held = StoreDirectory::open(Arc::new(RealFs), directory, Sharing::Exclusive);
    let held = held.map_err(of_directory)?;
    if let Some(other) = foreign(&held)?.first() {
        let text = format!("the directory has other files than those of a table, such as {other}");
        return Err(Failure::new(KnownAtom::NotADatsTable, text));
    }
    let survey = Survey::of(held).map_err(|error| match error {
        Error::Missing => Failure::new(KnownAtom::Damaged, "all files of the store are missing"),
        error => of_directory(error),
    })?;
    let description = described(&survey, told)?;
    let new = beside(directory, ".repair");
    remove_left(&new)?;
    let operator = salvage::operator(&description).map(|(name, version)| {
        let operator: Arc<dyn MergeOperator> = Arc::new(KeepOperands::new(&name, version));
        operator
    });
    let options = Options {
        operator,
        ..Options::default()
    };
    let files = [(Description::FILE, &description.encode()[..])];
    let go_on = &mut |_| ControlFlow::Continue(());
    let salvaged = offline::salvage(&survey, &new, options, &files, go_on)?;
    let is_whole = salvaged.faults.is_empty() && salvaged.lost_entries == 0;
    let old = survey.into_directory();
    offline::exchange(directory, &new)?;
    let kept = match is_whole {
        true => {
            destroy_held(&old, &new)?;
            None
        }
        false => {
            let kept = unused(directory);
            offline::rename(&new, &kept)?;
            Some(kept)
        }
    };
    Ok(Repaired { salvaged, kept })
}

/// The path with an end.
fn beside(directory: &Path, end: &str) -> PathBuf {
    let mut path = directory.as_os_str().to_owned();
    path.push(end);
    path.into()
}

/// A name for the damaged files.
fn unused(directory: &Path) -> PathBuf {
    let numbered = |number: u64| beside(directory, &format!(".damaged-{number}"));
    let names = std::iter::once(beside(directory, ".damaged")).chain((2..).map(numbered));
    let is_free = |path: &PathBuf| path.symlink_metadata().is_err();
    names
        .into_iter()
        .find(is_free)
        .expect("there are fewer files")
}

/// Removes what a repair has left that was broken off.
fn remove_left(new: &Path) -> Result<(), Failure> {
    match StoreDirectory::open(Arc::new(RealFs), new, Sharing::Exclusive) {
        Err(Error::Missing) => Ok(()),
        held => {
            let held = held.map_err(of_directory)?;
            match foreign(&held)?.is_empty() {
                true => destroy_held(&held, new).map(|_none| ()),
                false => Err(Failure::new(
                    KnownAtom::Eexist,
                    format!("{} has other files than those of a table", new.display()),
                )),
            }
        }
    }
}

/// The description of the table: what its file says, if that fits the store; else what is told, if
/// that fits the records.
fn described(survey: &Survey, told: Option<&Told>) -> Result<Description, Failure> {
    match description(survey.read(Description::FILE)) {
        Ok(Some(description)) if fits(survey, &description) => return Ok(description),
        Err(failure) if failure.cause != KnownAtom::Damaged => return Err(failure),
        _ => {}
    }
    let operator = survey.operator();
    let of_operator = operator.and_then(|(name, version)| merge_of_operator(name, version));
    if operator.is_some() && of_operator.is_none() {
        let text = "the store has a merge operator that is not that of a table";
        return Err(Failure::new(KnownAtom::NotADatsTable, text));
    }
    let told_merge = told.and_then(|told| told.merge.clone());
    let merge = told_merge.or(of_operator.map(|(merge, _)| merge));
    let merge = merge.unwrap_or_default();
    let mut evidence = Evidence::new(merge.clone());
    let mut salvage = Salvage::new(survey)?;
    while let Some(record) = salvage.next()? {
        if merge.is_empty() && !record.operands.is_empty() {
            let text =
                "there are values to be merged, and no file tells how; the option merge does";
            return Err(Failure::new(KnownAtom::Damaged, text));
        }
        for value in record.value.iter().chain(&record.operands) {
            match one_of_several(&record.key, value) {
                Some((key, object)) => evidence.meet_alone(key, object),
                None => evidence.meet(&record.key, value),
            }
        }
    }
    let is_told = |one: &&Description| {
        told.is_none_or(|told| {
            (one.table_type, one.key_position) == (told.table_type, told.key_position)
        })
    };
    let possible: Vec<_> = evidence
        .possible()
        .iter()
        .filter(|one| fits(survey, one))
        .collect();
    let fitting: Vec<_> = possible.iter().copied().filter(is_told).collect();
    match (&fitting[..], told) {
        // Where both rules for zeros will do, nothing is lost by keeping zeros apart.
        ([first, ..], _) if fitting.iter().all(|one| is_same(one, first)) => {
            let distinct = fitting.iter().find(|one| one.zeros == ats::Zeros::Distinct);
            let made = (*distinct.unwrap_or(first)).clone();
            Ok(Description {
                // Lost records may have been of the older kind.
                has_shared: made.table_type.is_bag(),
                ..made
            })
        }
        ([], Some(told)) if evidence.possible().is_empty() => Ok(Description {
            table_type: told.table_type,
            key_position: told.key_position,
            zeros: crate::release::zeros(),
            merge,
            format: Vec::new(),
            has_shared: told.table_type.is_bag(),
        }),
        _ => {
            let shown: Vec<_> = possible.iter().map(ToString::to_string).collect();
            let text = format!(
                "the file that describes the table says nothing, and the records are those of a \
                 table that is {}",
                match shown.is_empty() {
                    true => "of any type".to_owned(),
                    false => shown.join(" or "),
                }
            );
            Err(Failure::new(KnownAtom::Damaged, text))
        }
    }
}

fn is_same(one: &Description, other: &Description) -> bool {
    (one.table_type, one.key_position) == (other.table_type, other.key_position)
}

/// Returns `true` if the store has the merge operator of the table, as far as a file tells it.
fn fits(survey: &Survey, description: &Description) -> bool {
    let wanted = salvage::operator(description);
    if wanted.is_none() && !description.merge.is_empty() {
        return false;
    }
    let wanted = wanted.as_ref().map(|(name, version)| (&name[..], *version));
    !survey.knows_operator() || wanted == survey.operator()
}
