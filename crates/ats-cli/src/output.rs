//! Results as text or JSON.

use crate::text::escape;
use ats_disk::offline::{Fault, LostKeys};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::ops::Bound;

/// Prints one JSON object.
pub(crate) fn print_json(value: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    out.flush()
}

/// Returns a number of bytes for people.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// Keys that are lost, as an interval.
fn interval(keys: &LostKeys) -> String {
    let low = match &keys.low {
        Bound::Unbounded => "from the first".to_owned(),
        Bound::Included(key) => format!("from \"{}\"", escape(key)),
        Bound::Excluded(key) => format!("behind \"{}\"", escape(key)),
    };
    let high = match &keys.high {
        Bound::Unbounded => "to the last".to_owned(),
        Bound::Included(key) => format!("to \"{}\"", escape(key)),
        Bound::Excluded(key) => format!("before \"{}\"", escape(key)),
    };
    format!("{low} {high}")
}

/// Prints faults, one in a line.
pub(crate) fn print_faults(out: &mut dyn Write, title: &str, faults: &[Fault]) -> io::Result<()> {
    if !faults.is_empty() {
        writeln!(out, "{title}:")?;
    }
    for fault in faults {
        write!(out, "  {fault}")?;
        if let Some(keys) = &fault.keys {
            write!(out, "; lost of keys {}", interval(keys))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn json_of_bound(bound: &Bound<Vec<u8>>) -> Value {
    match bound {
        Bound::Unbounded => Value::Null,
        Bound::Included(key) => json!({"key": escape(key), "included": true}),
        Bound::Excluded(key) => json!({"key": escape(key), "included": false}),
    }
}

/// Faults as JSON.
pub(crate) fn json_faults(faults: &[Fault]) -> Value {
    let faults = faults.iter().map(|fault| {
        let mut object = Map::new();
        object.insert("file".into(), json!(fault.file));
        object.insert("offset".into(), json!(fault.offset));
        object.insert("what".into(), json!(fault.what));
        if let Some(keys) = &fault.keys {
            let lost = json!({"low": json_of_bound(&keys.low), "high": json_of_bound(&keys.high)});
            object.insert("lost_keys".into(), lost);
        }
        Value::Object(object)
    });
    faults.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_bytes_are_short() {
        let shown = [0, 1023, 1024, 1536, 10 << 20, u64::MAX].map(bytes);
        assert_eq!(
            shown,
            [
                "0 B", "1023 B", "1.0 KiB", "1.5 KiB", "10.0 MiB", "16.0 EiB"
            ]
        );
    }

    #[test]
    fn intervals_say_whether_their_ends_belong_to_them() {
        let keys = |low, high| interval(&LostKeys { low, high });
        let key = || b"\0k".to_vec();
        assert_eq!(
            keys(Bound::Unbounded, Bound::Unbounded),
            "from the first to the last"
        );
        assert_eq!(
            keys(Bound::Excluded(key()), Bound::Included(key())),
            "behind \"\\x00k\" to \"\\x00k\""
        );
        assert_eq!(
            keys(Bound::Included(key()), Bound::Excluded(key())),
            "from \"\\x00k\" before \"\\x00k\""
        );
    }
}
