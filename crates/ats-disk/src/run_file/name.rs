//! The names of the files of runs.

use crate::ids::FileNumber;

/// Returns the name of the file of a run with this number.
pub(crate) fn file_name(number: FileNumber) -> String {
    format!("run-{number:08}")
}

/// Returns the number of the file of a run with this name.
pub(crate) fn file_number(name: &str) -> Option<FileNumber> {
    let number = FileNumber::new(name.strip_prefix("run-")?.parse().ok()?);
    (file_name(number) == name).then_some(number)
}
