//! The start of the measurements, which are built from source.

use crate::outcome::Outcome;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `make report` in the folder with the source.
pub(crate) fn run(source: Option<PathBuf>, arguments: &[String]) -> Outcome {
    let Some(source) = source.or_else(source_around) else {
        return Outcome::Failed(
            "the measurements are built from the source of ats, and none of its folders is this \
             one or above it; see --source"
                .into(),
        );
    };
    if !has_measurements(&source) {
        let folder = source.display();
        return Outcome::Failed(format!("{folder} has no source of the measurements of ats"));
    }
    let mut make = Command::new("make");
    make.arg("-C").arg(source).arg("report");
    make.arg(format!("ARGS={}", arguments.join(" ")));
    Outcome::of_program("make", "ats bench", make.status())
}

/// Returns the folder with the source that is this one or above it, or that the command was built
/// in.
fn source_around() -> Option<PathBuf> {
    let starts = [env::current_dir().ok(), env::current_exe().ok()];
    let folders = starts.iter().flatten().flat_map(|start| start.ancestors());
    let mut found = folders.filter(|folder| has_measurements(folder));
    found.next().map(Path::to_path_buf)
}

fn has_measurements(folder: &Path) -> bool {
    folder.join("Makefile").is_file() && folder.join("bench/report/Cargo.toml").is_file()
}
