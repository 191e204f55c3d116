//! The figures of README and of the documents, from those of a run: `make figures`.
//!
//! A table stands between two lines of a document that name it. The files of `bench/results` have
//! the figures of the same run as data.

use crate::data::{Report, Row, geometric_mean};
use crate::plan::KINDS_OF_KEYS;
use crate::text::{machine, shown, shown_time, wrapped};
use crate::{front_page, picture};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Writes the tables of the documents in a folder, and the files beside the measurements. Those of
/// experiments that were not measured stay as they are.
///
/// # Errors
/// If a file cannot be read or written, or a document has no place for its table.
pub fn write(report: &Report, root: &Path) -> Result<(), String> {
    let readme = root.join("README.md");
    if !report.measured.is_empty() {
        renew(&readme, "figures", |old| front_page::table(report, old))?;
    }
    let limits = root.join("docs/inside/limits.md");
    if let Some(table) = latency(report) {
        renew(&limits, "latency", |_| table)?;
    }
    let small = root.join("docs/inside/small-tables.md");
    for (name, table) in small_tables(report) {
        renew(&small, name, |_| table)?;
    }
    if let Some(text) = front_page::everyday(report) {
        renew(&readme, "everyday", |_| text)?;
    }
    let results = root.join("bench/results");
    let put = |name: &str, text: String| {
        let file = results.join(name);
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
    };
    let has = |name| !report.rows(name).is_empty();
    if has("integers-wide") && has("integers-hot") {
        put("beside-ets.csv", picture::table(report))?;
    }
    for (name, experiments) in FILES {
        if let Some(text) = file_of_ratios(report, experiments) {
            put(name, text)?;
        }
    }
    match file_of_latencies(report) {
        Some(text) => put("latency.csv", text),
        None => Ok(()),
    }
}

/// Files of ratios, and the experiments whose rows they have.
const FILES: [(&str, &[&str]); 6] = [
    (
        "small-tables-beside-ets.csv",
        &["everyday-calls", "values", "programs"],
    ),
    ("select-beside-ets.csv", &["select", "select-on-disk"]),
    ("keys-beside-ets.csv", &KINDS_OF_KEYS),
    ("rust-maps.csv", &["rust-maps"]),
    ("disk-beside-dets.csv", &["tables-on-disk"]),
    ("disk-beside-stores.csv", &["stores-on-disk"]),
];

/// Replaces the text between the lines that begin and end a table.
fn renew(file: &Path, table: &str, text: impl FnOnce(&str) -> String) -> Result<(), String> {
    let of_file = |error: std::io::Error| format!("{}: {error}", file.display());
    let document = fs::read_to_string(file).map_err(of_file)?;
    let [begin, end] = [
        format!("<!-- {table}: make figures -->\n"),
        format!("<!-- end of {table} -->\n"),
    ];
    let parts = document
        .split_once(&begin)
        .and_then(|(before, rest)| Some((before, rest.split_once(&end)?)));
    let (before, (old, after)) = parts.ok_or_else(|| {
        let file = file.display();
        format!("{file} has no place for the table {table}")
    })?;
    let text = text(old);
    fs::write(file, format!("{before}{begin}{text}{end}{after}")).map_err(of_file)
}

/// Returns the machine, the versions and the last day of some experiments, in a sentence without
/// its full stop.
fn machine_and_day(report: &Report, experiments: &[&str]) -> String {
    let days = experiments.iter().map(|name| report.day(name));
    format!("{}; {}", machine(report), days.max().unwrap_or_default())
}

/// The calls of the table of waits.
const CALLS: [(&str, &str); 6] = [
    ("nothing", "none"),
    ("tab2list", "`tab2list`"),
    ("select", "`select` of all keys"),
    ("insert", "`insert` of a list of a million"),
    ("delete_all_objects", "`delete_all_objects`"),
    ("delete", "`delete`; lookups in another table"),
];

/// Returns the table of waits beside long calls on an `ordered_set`.
fn latency(report: &Report) -> Option<String> {
    let mut table =
        String::from("| call | `ats`, `ordered_set` | `ets`, `ordered_set` |\n|---|---|---|\n");
    let rows = report.rows("latency");
    let cell = |call: &str, side: &str| {
        let row = rows.iter().find(|row| {
            row.text("name") == call
                && row.text("side") == side
                && row.text("type") == "ordered_set"
        })?;
        let times = ["lookup", "message"].map(|what| row.time_at(what, 0.999));
        let [lookup, message] = [times[0]? / 1000.0, times[1]? / 1000.0];
        Some(format!("{} / {}", shown_time(lookup), shown_time(message)))
    };
    let mut some = false;
    for (call, label) in CALLS {
        if let (Some(ats), Some(ets)) = (cell(call, "ats"), cell(call, "ets")) {
            let _ = writeln!(table, "| {label} | {ats} | {ets} |");
            some = true;
        }
    }
    some.then_some(table)
}

/// The types of tables and numbers of processes of the columns of the tables of small tables.
const COLUMNS: [(&str, u64); 4] = [
    ("set", 1),
    ("set", 2),
    ("ordered_set", 1),
    ("ordered_set", 2),
];

/// Returns the tables of small tables that have been measured, with their names.
fn small_tables(report: &Report) -> Vec<(&'static str, String)> {
    let of = |name, rows: &[&str]| (name, table_of(report, name, rows));
    let tables = [
        of("everyday-calls", &["name", "keys", "set"]),
        of("values", &["name", "keys"]),
        of("programs", &["name"]),
    ];
    let measured = tables
        .into_iter()
        .filter_map(|(name, table)| Some((name, table?)));
    measured.collect()
}

/// Returns the ratios of an experiment to the best of the others; a row of the table for each
/// combination of `labels`.
fn table_of(report: &Report, experiment: &str, labels: &[&str]) -> Option<String> {
    let rows = report.rows(experiment);
    let label = |row: &Row| -> Vec<String> {
        let texts = labels.iter().map(|label| row.text(label).to_string());
        texts.collect()
    };
    let mut named: Vec<Vec<String>> = Vec::new();
    for row in rows {
        if !named.contains(&label(row)) {
            named.push(label(row));
        }
    }
    let columns: Vec<_> = COLUMNS
        .iter()
        .filter(|(kind, _)| rows.iter().any(|row| row.text("type") == *kind))
        .collect();
    let mut text = wrapped(&format!("{}.\n\n", machine_and_day(report, &[experiment])));
    let heads = columns.iter().map(|(kind, processes)| match columns.len() {
        2 => format!(
            "{processes} process{}",
            if *processes > 1 { "es" } else { "" }
        ),
        _ => format!("`{kind}`, {processes}"),
    });
    let heads: Vec<String> = heads.collect();
    let _ = writeln!(text, "| {} | {} |", labels.join(" | "), heads.join(" | "));
    let _ = writeln!(
        text,
        "|{}{}",
        "---|".repeat(labels.len()),
        "---:|".repeat(columns.len())
    );
    for name in &named {
        let cells = columns.iter().map(|(kind, processes)| {
            let mut rows = rows.iter().filter(|row| {
                row.text("type") == *kind && row.processes() == *processes && label(row) == *name
            });
            let ratio = rows.next().and_then(Row::ratio_to_best);
            ratio.map_or(String::new(), shown)
        });
        let cells: Vec<String> = cells.collect();
        let _ = writeln!(text, "| {} | {} |", name.join(" | "), cells.join(" | "));
    }
    let mean = |(kind, processes): &&(&str, u64)| {
        let of = rows
            .iter()
            .filter(|row| row.text("type") == *kind && row.processes() == *processes);
        geometric_mean(of).map_or(String::new(), shown)
    };
    let means: Vec<String> = columns.iter().map(mean).collect();
    let rest = " |".repeat(labels.len() - 1);
    let _ = writeln!(text, "| geometric mean{rest} | {} |", means.join(" | "));
    (!named.is_empty()).then_some(text)
}

/// Returns the lines that describe a file.
fn head(report: &Report, what: &str, experiments: &[&str]) -> String {
    let kind = if report.quick {
        "A quick run: rough. "
    } else {
        ""
    };
    format!(
        "# {what}: make report, experiments {}; written by make figures.\n# {kind}{}.\n",
        experiments.join(", "),
        machine_and_day(report, experiments)
    )
}

/// Returns the ratios of rows to each of the others.
fn file_of_ratios(report: &Report, experiments: &[&str]) -> Option<String> {
    let what = "How many times as good ours is as others, medians within rounds";
    let mut text = head(report, what, experiments) + "row,type,processes,ours,beside,ratio\n";
    let empty = text.len();
    for row in experiments.iter().flat_map(|name| report.rows(name)) {
        let sides = row.sides();
        let Some((ours, others)) = sides.split_first() else {
            continue;
        };
        let parts = ["name", "keys", "set"].map(|part| row.text(part));
        // Terms of several kinds, and tables that are new: nothing to name.
        let parts = parts
            .iter()
            .filter(|part| !["", "Term", "new"].contains(part));
        let name = parts.copied().collect::<Vec<_>>().join("; ");
        let name = name.replace(',', ";");
        for side in others {
            if let Some(ratio) = row.ratio(side) {
                let (kind, processes) = (row.text("type"), row.processes());
                let _ = writeln!(text, "{name},{kind},{processes},{ours},{side},{ratio:.3}");
            }
        }
    }
    (text.len() > empty).then_some(text)
}

fn file_of_latencies(report: &Report) -> Option<String> {
    let what = "99.9th percentile in milliseconds while one process makes a call on a large table";
    let mut text = head(report, what, &["latency"]) + "call,side,type,lookup_ms,message_ms\n";
    let empty = text.len();
    for row in report.rows("latency") {
        let times = ["lookup", "message"].map(|what| row.time_at(what, 0.999));
        if let [Some(lookup), Some(message)] = times {
            let [call, side, kind] = ["name", "side", "type"].map(|name| row.text(name));
            let (lookup, message) = (lookup / 1000.0, message / 1000.0);
            let _ = writeln!(text, "{call},{side},{kind},{lookup:.3},{message:.3}");
        }
    }
    (text.len() > empty).then_some(text)
}
