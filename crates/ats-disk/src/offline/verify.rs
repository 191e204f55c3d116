//! Checking all files of a store.

use super::Fault;
use super::journal::Journals;
use super::run::ScannedFile;
use super::survey::Survey;
use crate::error::Error;
use crate::manifest::RunMeta;
use crate::progress::{OnProgress, Progress};
use crate::run_file::file_name;
use crate::run_file::{BlockCache, FileMeta, Identity, Run, RunFile};
use std::sync::Arc;

/// The findings of a check of a store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The faults. If it is empty, the store can be opened, and all of it can be read.
    pub faults: Vec<Fault>,
    /// The parts that were never finished when the machine stopped. Opening the store truncates the
    /// journal before them.
    pub unfinished: Vec<Fault>,
    /// Run files that were read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries in them.
    pub entries: u64,
    /// Changes in journals that are not in runs.
    pub changes: u64,
    /// `true` if it was broken off.
    pub is_broken_off: bool,
}

/// Reads all files of a store and checks them: the manifest against the directory; of each run file
/// all checksums, that every byte belongs to something, the order of keys, that index, filters and
/// restart points find each key, counts and bounds; the checksums of journals, and that no change
/// is missing.
///
/// # Errors
/// No error stands for damage of the store.
pub fn verify(survey: &Survey, on_progress: &mut OnProgress<'_>) -> Result<Report, Error> {
    let mut report = Report {
        faults: survey.faults().to_vec(),
        ..Report::default()
    };
    let Some(contents) = &survey.contents else {
        return Ok(report);
    };
    let cache = Arc::new(BlockCache::new(0));
    let mut progress = Progress {
        done: 0,
        total: contents.runs.iter().map(RunMeta::bytes).sum(),
    };
    for run in &contents.runs {
        let mut files = Vec::new();
        for meta in &run.files {
            if on_progress(progress).is_break() {
                report.is_broken_off = true;
                return Ok(report);
            }
            files.extend(file(survey, meta, &cache, &mut report));
            progress.done += meta.bytes;
        }
        if files.len() == run.files.len()
            && !files.is_empty()
            && let Err(error) = Run::new(files)
        {
            report
                .faults
                .push(Fault::new(&file_name(run.files[0].number), None, error));
        }
    }
    let journals = Journals::read(survey, contents.flushed);
    report.faults.extend(journals.faults);
    report.unfinished = journals.unfinished;
    report.changes = journals.changes;
    let _last = on_progress(progress);
    Ok(report)
}

/// Checks a run file. The file, if it can be opened.
fn file(
    survey: &Survey,
    meta: &FileMeta,
    cache: &Arc<BlockCache>,
    report: &mut Report,
) -> Option<Arc<RunFile>> {
    // A file that differs from its description in the manifest is reported already.
    let found = survey.run_files.get(&meta.number)?;
    let identity = Identity {
        store: survey.store?,
        number: meta.number,
    };
    let opened = survey.open(&found.name).ok()?;
    report.files += 1;
    report.bytes += found.bytes;
    let scanned = ScannedFile::read(&found.as_of(meta), Arc::from(opened), identity, Some(meta));
    report.entries += scanned.entries;
    let is_whole = scanned.faults.is_empty();
    report.faults.extend(scanned.faults);
    // Without it, the file cannot be opened.
    found.as_of(meta).footer.as_ref()?;
    let opened = survey.open(&found.name).ok()?;
    let operator = survey.operator.as_ref();
    let file = RunFile::open(opened, meta.clone(), identity, operator, Arc::clone(cache));
    let checked = file.map(Arc::new).and_then(|file| {
        if is_whole {
            file.verify().map(|()| file)
        } else {
            Ok(file)
        }
    });
    match checked {
        Ok(file) => Some(file),
        Err(error) if is_whole => {
            report.faults.push(Fault::new(&found.name, None, error));
            None
        }
        Err(_) => None,
    }
}
