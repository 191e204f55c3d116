//! Where and when the figures were taken.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Facts about this run, with names.
pub fn facts() -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let allocator = match cfg!(feature = "mimalloc") {
        true => "mimalloc",
        false => "of the system",
    };
    vec![
        ("date", date(SystemTime::now())),
        ("cores", cores.to_string()),
        ("processor", after_colon("/proc/cpuinfo", "model name")),
        ("memory", after_colon("/proc/meminfo", "MemTotal")),
        ("allocator", allocator.to_string()),
        ("scc", locked_version("scc")),
        ("crossbeam-skiplist", locked_version("crossbeam-skiplist")),
        ("bf-tree", locked_version("bf-tree")),
        ("parking_lot", locked_version("parking_lot")),
        ("dashmap", locked_version("dashmap")),
        ("papaya", locked_version("papaya")),
    ]
}

/// What stands behind the colon of the first line that begins so.
fn after_colon(file: &str, begin: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(begin));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or_else(
        || "unknown".to_string(),
        |(_, value)| value.trim().to_string(),
    )
}

/// The version of a dependency that this program was built with.
fn locked_version(name: &str) -> String {
    let lock = include_str!("../Cargo.lock");
    let begin = format!("name = \"{name}\"\nversion = \"");
    let rest = lock.split_once(&begin).map(|(_, rest)| rest);
    let version = rest.and_then(|rest| rest.split_once('"'));
    version.map_or_else(|| "unknown".to_string(), |(version, _)| version.to_string())
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
    // Until 2100 every fourth year has a leap day. Counted from March the leap day is the last of its year.
    let days = days + 671;
    let (cycle, rest) = (days / 1461, days % 1461);
    let year_of_cycle = (rest / 365).min(3);
    let day_of_year = rest - year_of_cycle * 365;
    // From March on, the lengths of five months add up to 153 days, again and again.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = 1968 + 4 * cycle + year_of_cycle + u32::from(month >= 10);
    (year, if month < 10 { month + 3 } else { month - 9 }, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(58), (1970, 2, 28));
        assert_eq!(civil(789), (1972, 2, 29));
        assert_eq!(civil(790), (1972, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_453), (2025, 12, 31));
        assert_eq!(civil(20_454), (2026, 1, 1));
    }
}
