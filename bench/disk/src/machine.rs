//! Where and when the figures were taken.

use crate::engine::{CACHE_BYTES, ENGINES};
use crate::options::Options;
use crate::system;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Facts about this run, with names.
pub fn facts(options: &Options) -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut facts = vec![
        ("date", date(SystemTime::now())),
        ("cores", cores.to_string()),
        ("processor", after_colon("/proc/cpuinfo", "model name")),
        ("memory", after_colon("/proc/meminfo", "MemTotal")),
        ("kernel", line_of("/proc/sys/kernel/osrelease")),
        ("file system", file_system(&options.data)),
        ("cold", system::how_files_are_forgotten().to_string()),
        ("cache", format!("{} MiB", CACHE_BYTES >> 20)),
        ("records", options.sizes.records.to_string()),
        ("rounds", options.rounds.to_string()),
    ];
    facts.extend(
        ENGINES
            .iter()
            .map(|engine| (engine.name, locked_version(engine.package))),
    );
    facts
}

fn line_of(file: &str) -> String {
    fs::read_to_string(file).map_or_else(|_| unknown(), |text| text.trim().to_string())
}

fn unknown() -> String {
    "unknown".to_string()
}

/// What stands behind the colon of the first line that begins so.
fn after_colon(file: &str, begin: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(begin));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or_else(unknown, |(_, value)| value.trim().to_string())
}

/// The type, the device and the options of the file system that holds a folder.
fn file_system(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let fields = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let holding = fields.filter(|fields| fields.len() > 3 && folder.starts_with(fields[1]));
    let nearest = holding.max_by_key(|fields| fields[1].len());
    nearest.map_or_else(unknown, |fields| {
        format!("{} on {} ({})", fields[2], fields[0], fields[3])
    })
}

/// The version of a dependency that this program was built with.
fn locked_version(name: &str) -> String {
    let lock = include_str!("../Cargo.lock");
    let begin = format!("name = \"{name}\"\nversion = \"");
    let rest = lock.split_once(&begin).map(|(_, rest)| rest);
    let version = rest.and_then(|rest| rest.split_once('"'));
    version.map_or_else(unknown, |(version, _)| version.to_string())
}

/// A moment in the format of RFC 3339, in UTC.
fn date(moment: SystemTime) -> String {
    let seconds = moment
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (year, month, day) = civil((seconds / 86_400) as u32);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a number of days since the beginning of 1970, for years before 2100.
fn civil(days: u32) -> (u32, u32, u32) {
    let (mut year, mut rest) = (1970, days);
    // Until 2100 every fourth year is a leap year.
    let leap = |year: u32| u32::from(year.is_multiple_of(4));
    while rest >= 365 + leap(year) {
        rest -= 365 + leap(year);
        year += 1;
    }
    let lengths = [31, 28 + leap(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    (year, month, rest + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(58), (1970, 2, 28));
        assert_eq!(civil(789), (1972, 2, 29));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_453), (2025, 12, 31));
    }

    #[test]
    fn engines_are_in_the_lock_file() {
        for engine in ENGINES {
            assert_ne!(locked_version(engine.package), "unknown", "{}", engine.name);
        }
    }
}
