//! Operations on closed tables: remove, rename, copy and repair.
//!
//! Each function locks its directories, so that nobody opens the tables meanwhile. Only files of
//! tables are touched. The description file is removed last and copied last, so the same call can
//! remove the remains of a crash.

use super::description_file::{TABLE_FILES, decode_description, directory_failure};
use super::failure::Failure;
use super::target::{Target, check_outside_tables};
use crate::atoms::KnownAtom;
use ats::terms::salvage::{self, Evidence, merge_of_operator};
use ats::terms::{Description, TableType};
use ats_disk::fs::{RealFs, Sharing};
use ats_disk::offline::{self, KeepOperands, Salvage, Salvaged, Survey, Temporary};
use ats_disk::{Error, Lifetime, Options, StoreDirectory, one_of_several};
use std::io::ErrorKind;
use std::iter::once;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory that a failure is about.
pub enum Side {
    /// The existing directory.
    Source,
    /// The directory to be made.
    Target,
    /// The directory of an earlier checkpoint.
    Earlier,
}

pub(super) type TwoDirectoryResult<T> = Result<T, (Side, Failure)>;

fn source_failure(failure: impl Into<Failure>) -> (Side, Failure) {
    (Side::Source, failure.into())
}

fn target_failure(failure: impl Into<Failure>) -> (Side, Failure) {
    (Side::Target, failure.into())
}

/// Locks the directory of a table, whose description may be damaged.
pub(super) fn lock_table(directory: &Path, sharing: Sharing) -> Result<StoreDirectory, Failure> {
    let locked =
        StoreDirectory::open(Arc::new(RealFs), directory, sharing).map_err(directory_failure)?;
    if is_table(&locked.names()?) {
        Ok(locked)
    } else {
        Err(Failure::new(
            KnownAtom::NotADatsTable,
            "there is no table in the directory",
        ))
    }
}

/// Returns `true` if these files are those of a table.
fn is_table(names: &[String]) -> bool {
    names.iter().any(|name| name == Description::FILE)
}

/// Returns the names of files that do not belong to a table.
fn list_foreign_files(locked: &StoreDirectory) -> Result<Vec<String>, Failure> {
    let is_foreign =
        |name: &String| !TABLE_FILES.contains(&name.as_str()) && !offline::is_of_store(name);
    Ok(locked.names()?.into_iter().filter(is_foreign).collect())
}

/// Removes a table, and its directory unless it has other files, whose names are returned.
///
/// # Errors
/// Returns a [`Failure`]; the call can be repeated.
pub fn destroy(directory: &Path) -> Result<Vec<String>, Failure> {
    let locked = lock_table(directory, Sharing::Exclusive)?;
    destroy_locked(&locked, directory)
}

fn destroy_locked(locked: &StoreDirectory, directory: &Path) -> Result<Vec<String>, Failure> {
    let foreign = locked.remove_store(&TABLE_FILES)?;
    if foreign.is_empty() {
        offline::remove_dir(directory)?;
    }
    Ok(foreign)
}

/// Renames the directory of a table. A table that already has the name is removed: the two
/// directories are exchanged in one step.
///
/// # Errors
/// Returns a [`Failure`] with the directory concerned. Either nothing has changed, or the second
/// directory is already the renamed table, and the first one holds the remains of the other.
pub fn rename(source: &Path, target: &Path) -> TwoDirectoryResult<()> {
    let _locked = lock_table(source, Sharing::Exclusive).map_err(source_failure)?;
    check_outside_tables(target).map_err(target_failure)?;
    let replaced = match StoreDirectory::open(Arc::new(RealFs), target, Sharing::Exclusive) {
        Err(Error::Missing) => None,
        replaced => Some(
            replaced
                .map_err(directory_failure)
                .map_err(target_failure)?,
        ),
    };
    let Some(replaced) = replaced else {
        return offline::rename(source, target).map_err(source_failure);
    };
    let names = replaced.names().map_err(target_failure)?;
    if names.is_empty() {
        return offline::rename(source, target).map_err(source_failure);
    }
    if !is_table(&names)
        || !list_foreign_files(&replaced)
            .map_err(target_failure)?
            .is_empty()
    {
        let text = "the directory has other files than those of a table";
        return Err(target_failure(Failure::new(KnownAtom::NotADatsTable, text)));
    }
    offline::exchange(source, target).map_err(target_failure)?;
    destroy_locked(&replaced, source).map_err(source_failure)?;
    Ok(())
}

/// Copies a table to a directory that is empty or missing.
///
/// # Errors
/// Returns a [`Failure`] with the directory concerned. Then there is no copy.
pub fn copy(source: &Path, target: &Path) -> TwoDirectoryResult<()> {
    let locked = lock_table(source, Sharing::Shared).map_err(source_failure)?;
    let made = Target::make(source, target).map_err(target_failure)?;
    let copied = made.fill(|made| locked.copy_store(made, &[Description::FILE]));
    copied.map_err(target_failure)
}

/// The description of a table, given by the caller in case the description file is lost.
pub struct DescriptionHint {
    /// The type of the table.
    pub table_type: TableType,
    /// The position of the key in objects, from 1.
    pub key_position: usize,
    /// The merge of values, if the caller gives it.
    pub merge: Option<Vec<u8>>,
}

/// The outcome of a repair.
pub struct RepairOutcome {
    /// Numbers of saved and lost records, and the faults.
    pub salvaged: Salvaged,
    /// The directory that now holds the damaged files, unless nothing was lost.
    pub kept: Option<PathBuf>,
}

/// Rewrites the readable records of a table to new files, which replace the old ones. If any old
/// file is damaged, the old files are kept beside the directory.
///
/// # Errors
/// Returns a [`Failure`]; the table is then unchanged.
pub fn repair(directory: &Path, hint: Option<&DescriptionHint>) -> Result<RepairOutcome, Failure> {
    // A symbolic link is kept: its target is repaired.
    let resolved = directory
        .is_symlink()
        .then(|| directory.canonicalize().ok());
    let resolved = resolved.flatten();
    let directory = resolved.as_deref().unwrap_or(directory);
    let locked = StoreDirectory::open(Arc::new(RealFs), directory, Sharing::Exclusive);
    let locked = locked.map_err(directory_failure)?;
    if let Some(other) = list_foreign_files(&locked)?.first() {
        let text = format!("the directory has other files than those of a table, such as {other}");
        return Err(Failure::new(KnownAtom::NotADatsTable, text));
    }
    let survey = Survey::of(locked).map_err(|error| match error {
        Error::Missing => Failure::new(KnownAtom::Damaged, "all files of the store are missing"),
        error => directory_failure(error),
    })?;
    let description = find_description(&survey, hint)?;
    let temporary = Temporary::make(directory, &TABLE_FILES)?;
    let new = temporary.store();
    let mut options = Options::new();
    if let Some((name, version)) = salvage::operator(&description) {
        options = options.operator(Arc::new(KeepOperands::new(&name, version)));
    }
    let files = [(Description::FILE, &description.encode()[..])];
    let go_on = &mut |_| ControlFlow::Continue(());
    let salvaged = offline::salvage(&survey, &new, options, &files, go_on)?;
    let is_whole = salvaged.faults.is_empty() && salvaged.lost_entries == 0;
    let old = survey.into_directory();
    if is_whole {
        offline::exchange(directory, &new)?;
        destroy_locked(&old, &new)?;
        return Ok(RepairOutcome {
            salvaged,
            kept: None,
        });
    }
    // The damaged files must never be in a temporary directory, which might be removed.
    let kept = publish_beside(&temporary, directory)?;
    if let Err(error) = offline::exchange(directory, &kept) {
        destroy(&kept)?;
        return Err(error.into());
    }
    Ok(RepairOutcome {
        salvaged,
        kept: Some(kept),
    })
}

/// Moves a temporary directory to the name under which damaged files are kept.
fn publish_beside(temporary: &Temporary, directory: &Path) -> Result<PathBuf, Failure> {
    let names = once(".damaged".to_owned()).chain((2..).map(|n: u64| format!(".damaged-{n}")));
    for end in names {
        let mut kept = directory.as_os_str().to_owned();
        kept.push(end);
        match temporary.publish(Path::new(&kept)) {
            Err(Error::Io { error, .. }) if error.kind == ErrorKind::AlreadyExists => {}
            published => return Ok(published.map(|()| kept.into())?),
        }
    }
    unreachable!("there are fewer files than numbers")
}

/// Finds the description of a table: that of its file, if it fits the store; else the hint, if it
/// fits the records.
fn find_description(
    survey: &Survey,
    hint: Option<&DescriptionHint>,
) -> Result<Description, Failure> {
    match decode_description(survey.read(Description::FILE)) {
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
    let hinted_merge = hint.and_then(|hint| hint.merge.clone());
    let merge = hinted_merge.or(of_operator.map(|(merge, _)| merge));
    let merge = merge.unwrap_or_default();
    let mut evidence = Evidence::new(merge.clone(), survey.expires());
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
    let fits_hint = |one: &&Description| {
        hint.is_none_or(|hint| {
            (one.table_type, one.key_position) == (hint.table_type, hint.key_position)
        })
    };
    let possible: Vec<_> = evidence
        .possible()
        .iter()
        .filter(|one| fits(survey, one))
        .collect();
    let fitting: Vec<_> = possible.iter().copied().filter(fits_hint).collect();
    match (&fitting[..], hint) {
        // Distinct zeros are the safe choice where both rules fit.
        ([first, ..], _) if fitting.iter().all(|one| is_same(one, first)) => {
            let distinct = fitting
                .iter()
                .find(|one| one.zeros == ats::terms::Zeros::Distinct);
            let made = (*distinct.unwrap_or(first)).clone();
            Ok(Description {
                // Lost records may have been of the older kind.
                has_shared: made.table_type.is_bag(),
                ..made
            })
        }
        ([], Some(hint)) if evidence.possible().is_empty() => Ok(Description {
            table_type: hint.table_type,
            key_position: hint.key_position,
            zeros: crate::otp_release::zeros(),
            merge,
            format: Vec::new(),
            lifetime: survey.expires().then_some(Lifetime::Forever),
            has_shared: hint.table_type.is_bag(),
        }),
        _ => {
            let shown: Vec<_> = possible.iter().map(ToString::to_string).collect();
            let text = format!(
                "the file that describes the table says nothing, and the records are those of a \
                 table that is {}",
                if shown.is_empty() {
                    "of any type".to_owned()
                } else {
                    shown.join(" or ")
                }
            );
            Err(Failure::new(KnownAtom::Damaged, text))
        }
    }
}

fn is_same(one: &Description, other: &Description) -> bool {
    (one.table_type, one.key_position) == (other.table_type, other.key_position)
}

/// Returns `true` if the store has the merge operator of the table, as far as the files record it.
fn fits(survey: &Survey, description: &Description) -> bool {
    let wanted = salvage::operator(description);
    if wanted.is_none() && !description.merge.is_empty() {
        return false;
    }
    let wanted = wanted.as_ref().map(|(name, version)| (&name[..], *version));
    !survey.knows_operator() || wanted == survey.operator()
}
