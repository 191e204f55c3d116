//! The survey of a store that commands begin with.

use crate::outcome::{Failure, failure_in};
use ats_disk::fs::RealFs;
use ats_disk::offline::Survey;
use std::path::Path;
use std::sync::Arc;

/// Surveys the directory of a store.
pub(super) fn survey(directory: &Path) -> Result<Survey, Failure> {
    Survey::new(Arc::new(RealFs), directory).map_err(failure_in(directory.display().to_string()))
}

/// The name and the version of a merge operator.
pub(super) fn operator(survey: &Survey) -> String {
    match survey.operator() {
        Some((name, version)) => format!("{name}, version {version}"),
        None => "none".into(),
    }
}
