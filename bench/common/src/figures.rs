//! Figures of several rounds, and the file of results.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Facts about a run, with names.
pub type Facts = Vec<(&'static str, String)>;

/// Returns the median of some numbers, if there are any.
pub fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => None,
        length if length % 2 == 1 => Some(numbers[middle]),
        _ => Some((numbers[middle - 1] + numbers[middle]) / 2.0),
    }
}

/// Returns a number with `digits` digits behind the point, for files that people read.
pub fn round_to(number: f64, digits: i32) -> Value {
    let scale = 10_f64.powi(digits);
    json!((number * scale).round() / scale)
}

/// Writes one JSON object a line: the machine first, then every row. The name of the file begins
/// with the kind of measurement and ends with the date.
///
/// # Errors
/// Those of the file system.
pub fn write(
    folder: &Path,
    kind: &str,
    facts: &Facts,
    rows: impl IntoIterator<Item = Value>,
) -> io::Result<PathBuf> {
    let machine = facts.iter().map(|(name, value)| (*name, value.as_str()));
    let machine: Value = [("kind", "machine")].into_iter().chain(machine).collect();
    let lines = std::iter::once(machine).chain(rows);
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let date = facts.iter().find(|(name, _)| *name == "date");
    let date = date.map_or("undated", |(_, date)| date);
    let date = date
        .trim_end_matches('Z')
        .replace('T', "_")
        .replace(':', "");
    let file = folder.join(format!("{kind}_{date}.jsonl"));
    fs::create_dir_all(folder)?;
    fs::write(&file, text)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_lie_in_the_middle() {
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }
}
