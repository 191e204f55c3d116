//! The survey of a store that commands begin with.

use crate::outcome::{Failure, failure_in};
use ats_disk::Error;
use ats_disk::fs::RealFs;
use ats_disk::offline::Survey;
use std::path::Path;
use std::sync::Arc;

/// A sentence about a store that another program has open.
pub(super) const LIVE: &str = "live: a program has it open for writing; this is one moment of it, \
                               with what it has only in memory, by its journals";

/// Surveys the directory of a store, which no program may have open for writing.
pub(super) fn survey(directory: &Path) -> Result<Survey, Failure> {
    Survey::new(Arc::new(RealFs), directory).map_err(failure_in(directory.display().to_string()))
}

/// Surveys the directory of a store, as it is at this moment if a program has it open for writing.
pub(super) fn survey_live(directory: &Path) -> Result<Survey, Failure> {
    let survey = match Survey::new(Arc::new(RealFs), directory) {
        Err(Error::Locked) => Survey::live(Arc::new(RealFs), directory),
        survey => survey,
    };
    survey.map_err(failure_in(directory.display().to_string()))
}

/// Returns the name and the version of a merge operator.
pub(super) fn operator(survey: &Survey) -> String {
    match survey.operator() {
        Some((name, version)) => format!("{name}, version {version}"),
        None => "none".into(),
    }
}
