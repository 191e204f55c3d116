//! The machine and the day of the figures.

use crate::Facts;
use std::fs;
use std::time::SystemTime;

/// Returns the facts that every measurement tells.
pub fn common_facts() -> Facts {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let date = humantime::format_rfc3339_seconds(SystemTime::now());
    vec![
        ("date", date.to_string()),
        ("cores", cores.to_string()),
        ("processor", after_colon("/proc/cpuinfo", "model name")),
        ("memory", after_colon("/proc/meminfo", "MemTotal")),
        ("kernel", line_of("/proc/sys/kernel/osrelease")),
    ]
}

/// Returns the text of a file, without spaces around it.
fn line_of(file: &str) -> String {
    fs::read_to_string(file).map_or_else(|_| unknown(), |text| text.trim().to_string())
}

/// Returns the version of a dependency that the measurements are built with.
pub fn locked_version(name: &str) -> String {
    let lock = include_str!("../../Cargo.lock");
    let begin = format!("name = \"{name}\"\nversion = \"");
    let rest = lock.split_once(&begin).map(|(_, rest)| rest);
    let version = rest.and_then(|rest| rest.split_once('"'));
    version.map_or_else(unknown, |(version, _)| version.to_string())
}

/// Returns the text behind the colon of the first line that begins so.
fn after_colon(file: &str, begin: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(begin));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or_else(unknown, |(_, value)| value.trim().to_string())
}

fn unknown() -> String {
    "unknown".to_string()
}
