//! The figures of README and of the documents, from those of a run: `make figures`.
//!
//! A table stands between two lines of a document that name it. The files of `bench/results` have
//! the figures of the same run as data.

use crate::data::{Report, Row};
use crate::picture;
use crate::plan::KINDS_OF_KEYS;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Writes the tables of the documents in a folder, and the files beside the measurements. Those of
/// experiments that were not measured stay as they are; the table of README is that of
/// `integers-wide`.
///
/// # Errors
/// If a file cannot be read or written, or a document has no place for its table.
pub fn write(report: &Report, root: &Path) -> Result<(), String> {
    let is_wide = !report.rows("integers-wide").is_empty();
    if is_wide {
        renew(&root.join("README.md"), "figures", &readme(report))?;
    }
    let limits = root.join("docs/inside/limits.md");
    if let Some(table) = latency(report) {
        renew(&limits, "latency", &table)?;
    }
    let small = root.join("docs/inside/small-tables.md");
    for (name, table) in small_tables(report) {
        renew(&small, name, &table)?;
    }
    if let Some(text) = everyday(report) {
        renew(&root.join("README.md"), "everyday", &text)?;
    }
    let results = root.join("bench/results");
    let put = |name: &str, text: String| {
        let file = results.join(name);
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
    };
    if is_wide {
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

/// Puts a text between the lines that begin and end a table.
fn renew(file: &Path, table: &str, text: &str) -> Result<(), String> {
    let of_file = |error: std::io::Error| format!("{}: {error}", file.display());
    let document = fs::read_to_string(file).map_err(of_file)?;
    let [begin, end] = [
        format!("<!-- {table}: make figures -->\n"),
        format!("<!-- end of {table} -->\n"),
    ];
    let parts = document
        .split_once(&begin)
        .and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let (before, after) = parts.ok_or_else(|| {
        let file = file.display();
        format!("{file} has no place for the table {table}")
    })?;
    fs::write(file, format!("{before}{begin}{text}{end}{after}")).map_err(of_file)
}

/// A row of README's table.
struct Line {
    label: &'static str,
    experiment: &'static str,
    /// The side to compare with; the best of the others if there is none.
    beside: Option<&'static str>,
    name: &'static str,
    set: &'static str,
    types: &'static [&'static str],
}

const BOTH: &[&str] = &["ordered_set", "set"];
const ORDERED: &[&str] = &["ordered_set"];
/// The types of rows that are of no table.
const ONE: &[&str] = &[""];

const fn line(
    label: &'static str,
    experiment: &'static str,
    name: &'static str,
    set: &'static str,
    types: &'static [&'static str],
) -> Line {
    Line {
        label,
        experiment,
        beside: None,
        name,
        set,
        types,
    }
}

const fn beside(
    label: &'static str,
    experiment: &'static str,
    name: &'static str,
    side: &'static str,
) -> Line {
    Line {
        beside: Some(side),
        ..line(label, experiment, name, "", ONE)
    }
}

const IN_MEMORY: [Line; 11] = [
    line("lookup", "integers-wide", "100 % lookup", "wide", BOTH),
    line(
        "50 % insert, 50 % delete",
        "integers-wide",
        "50 % insert, 50 delete",
        "wide",
        BOTH,
    ),
    line(
        "80 % lookup, 10 % insert, 10 % delete",
        "integers-wide",
        "80 % lookup, 10 insert, 10 delete",
        "wide",
        BOTH,
    ),
    line(
        "chains of 10 `next`, with lookups and updates",
        "integers-wide",
        "40 % lookup, 20 updates, 40 chains of 10 next",
        "wide",
        ORDERED,
    ),
    line(
        "counts of 1000 keys, with lookups and updates",
        "integers-wide",
        "79 % lookup, 20 updates, 1 count of 1000",
        "wide",
        ORDERED,
    ),
    line("counters", "integers-wide", "update_counter", "wide", BOTH),
    line("one counter", "one-counter", "update_counter", "one", BOTH),
    line(
        "lists of 10 objects",
        "integers-wide",
        "insert lists of 10",
        "wide",
        BOTH,
    ),
    line(
        "ascending inserts, a range for each process",
        "insert-disjoint-ranges",
        "disjoint ranges",
        "new",
        ORDERED,
    ),
    line(
        "a table made, filled with one object and deleted",
        "small-tables",
        "new, insert, delete",
        "new",
        BOTH,
    ),
    line(
        "`select_count` of 1000 of 500,000 keys, bounded by guards",
        "select",
        "select_count of 1000 keys by guards, of 500k",
        "new",
        ORDERED,
    ),
];

const ON_DISK: [Line; 9] = [
    beside(
        "`insert` one by one",
        "tables-on-disk",
        "insert one by one",
        "dets",
    ),
    beside("`lookup`", "tables-on-disk", "lookup", "dets"),
    beside(
        "opening after a crash",
        "tables-on-disk",
        "open after a crash",
        "dets",
    ),
    beside(
        "bulk load",
        "stores-on-disk",
        "bulk load, batches of 1000",
        "rocksdb",
    ),
    beside(
        "single writes",
        "stores-on-disk",
        "single writes",
        "rocksdb",
    ),
    beside(
        "durable single writes",
        "stores-on-disk",
        "durable single writes",
        "rocksdb",
    ),
    beside(
        "point reads, hot",
        "stores-on-disk",
        "point reads, hot (cache of the engine)",
        "rocksdb",
    ),
    beside(
        "point reads, cold",
        "stores-on-disk",
        "point reads, cold",
        "rocksdb",
    ),
    beside(
        "median read of counters that are being incremented",
        "stores-on-disk",
        "osmos: a read, p50",
        "fjall",
    ),
];

/// The most rows of hot keys.
const MOST_HOT: usize = 6;

/// Returns a ratio; bold where we are behind.
fn shown(ratio: f64) -> String {
    let text = match ratio {
        9.95.. => format!("{ratio:.0}"),
        0.995.. => format!("{ratio:.1}"),
        _ => format!("{ratio:.2}"),
    };
    if ratio < 0.995 {
        format!("**{text}**")
    } else {
        text
    }
}

impl Line {
    fn is_of(&self, row: &Row) -> bool {
        // The number of integers is in the name; the last row has most.
        let same = row.text("name") == self.name
            || self.set == "new" && row.text("name").ends_with(self.name);
        same && (self.set.is_empty() || row.text("set") == self.set)
    }

    /// Returns the ratios of the types with `processes` processes; `None` if one was not measured.
    fn ratios(&self, report: &Report, processes: u64) -> Option<String> {
        let ratios = self.types.iter().map(|table_type| {
            let rows = report.rows(self.experiment).iter();
            let mut rows = rows.filter(|row| {
                let same_type = row.text("type") == *table_type;
                same_type && row.processes() == processes && self.is_of(row)
            });
            let row = rows.next_back()?;
            match self.beside {
                Some(side) => row.ratio(side),
                None => row.ratio_to_best(),
            }
        });
        let ratios: Option<Vec<f64>> = ratios.collect();
        Some(cell(&ratios?))
    }
}

fn cell(ratios: &[f64]) -> String {
    let shown: Vec<String> = ratios.iter().map(|ratio| shown(*ratio)).collect();
    shown.join(" / ")
}

fn types_of(types: &[&str]) -> String {
    match types {
        [""] => String::new(),
        _ => format!(", `{}`", types.join("` / `")),
    }
}

/// Returns the rows of hot keys in which we are furthest behind: label and cells.
fn hot_losses(report: &Report) -> Vec<[String; 3]> {
    let ratio_of = |row: &Row, processes: u64| {
        let mut rows = report.rows("integers-hot").iter();
        let twin = rows.find(|other| {
            let same = |name| other.text(name) == row.text(name);
            same("name") && same("type") && other.processes() == processes
        });
        twin.and_then(Row::ratio_to_best)
    };
    let rows = report.rows("integers-hot").iter();
    let rows = rows.filter(|row| row.processes() == 1);
    let mut losses: Vec<(f64, [String; 3])> = rows
        .filter_map(|row| {
            let ratios = [ratio_of(row, 1)?, ratio_of(row, 2)?];
            let least = ratios[0].min(ratios[1]);
            let label = format!("{}, 1000 keys, `{}`", row.text("name"), row.text("type"));
            let cells = [label, shown(ratios[0]), shown(ratios[1])];
            (least < 0.995).then_some((least, cells))
        })
        .collect();
    losses.sort_by(|a, b| a.0.total_cmp(&b.0));
    losses.truncate(MOST_HOT);
    losses.into_iter().map(|(_, cells)| cells).collect()
}

fn readme(report: &Report) -> String {
    let mut text = format!(
        "Ratios of throughput; more than 1 means that `ats` is faster. {}. In memory: integer \
         keys, half of 2^20 present, drawn as it goes, over the faster of a plain `ets` table and \
         one with `write_concurrency` and `read_concurrency`; medians within rounds. The rows \
         with 1000 keys are those in which `ats` is furthest behind. Each figure is of an \
         experiment of `make report`, which the last column names: `make report ARGS=\"--only \
         NAME --again\"` measures it anew, and `make figures` writes this table.\n\n",
        machine(report)
    );
    if report.quick {
        text.insert_str(0, "A quick run, whose figures are rough. ");
    }
    text = wrapped(&text);
    text +=
        "| operation | beside | 1 process | 2 processes | experiment |\n|---|---|---:|---:|---|\n";
    let mut put = |label: &str, beside: &str, one: &str, two: &str, experiment: &str| {
        let _ = writeln!(
            text,
            "| {label} | {beside} | {one} | {two} | `{experiment}` |"
        );
    };
    for line in &IN_MEMORY {
        if let Some(one) = line.ratios(report, 1) {
            let two = line.ratios(report, 2).unwrap_or_default();
            let label = format!("{}{}", line.label, types_of(line.types));
            put(&label, "`ets`", &one, &two, line.experiment);
        }
    }
    for [label, one, two] in hot_losses(report) {
        put(&label, "`ets`", &one, &two, "integers-hot");
    }
    for line in &ON_DISK {
        if let Some(one) = line.ratios(report, 1) {
            let beside = match line.beside {
                Some("dets") => "`dets`",
                Some("rocksdb") => "RocksDB",
                other => other.unwrap_or_default(),
            };
            put(line.label, beside, &one, "", line.experiment);
        }
    }
    let sentences = [bytes(report), waits(report)].into_iter().flatten();
    let sentences: Vec<String> = sentences.collect();
    if !sentences.is_empty() {
        text += "\n";
        text += &wrapped(&(sentences.join(" ") + "\n"));
    }
    text
}

/// Returns the bytes of an object.
fn bytes(report: &Report) -> Option<String> {
    let mut rows = report.rows("memory").iter();
    let is_it =
        |row: &&Row| row.text("objects") == "{Int,Int}" && row.text("type") == "ordered_set";
    let row = rows.find(is_it)?;
    Some(format!(
        "An object `{{Int, Int}}` of an `ordered_set` takes {:.0} bytes (`ets`: {:.0}; experiment \
         `memory`).",
        row.median("ats")?,
        row.median("ets")?
    ))
}

/// Returns the waits of others beside a long call: of the insert of a list, or another if that is
/// missing.
fn waits(report: &Report) -> Option<String> {
    let millis = |call: &str, side: &str| {
        let mut rows = report.rows("latency").iter();
        let of = |name, row: &Row, text| row.text(name) == text;
        let row = rows.find(|row| {
            of("name", row, call) && of("side", row, side) && of("type", row, "ordered_set")
        });
        row.and_then(|row| Some(time_at(row, "lookup", 0.999)? / 1000.0))
    };
    let (call, words) = [
        ("insert", "inserts a list of a million objects"),
        ("tab2list", "calls `tab2list` on a large table"),
    ]
    .into_iter()
    .find(|(call, _)| millis(call, "ats").is_some())?;
    Some(format!(
        "While one process {words}, lookups of others take {} ms in 999 of 1000 cases (`ets`: {} \
         ms; experiment `latency`).",
        shown_time(millis(call, "ats")?),
        shown_time(millis(call, "ets")?)
    ))
}

fn time_at(row: &Row, what: &str, part: f64) -> Option<f64> {
    let pairs = row.0[what].as_array()?;
    pairs.iter().find(|pair| pair[0].as_f64() == Some(part))?[1].as_f64()
}

fn shown_time(millis: f64) -> String {
    match millis {
        9.95.. => format!("{millis:.0}"),
        0.095.. => format!("{millis:.1}"),
        _ => format!("{millis:.2}"),
    }
}

/// Returns the machine and the versions, in a sentence without its full stop.
fn machine(report: &Report) -> String {
    let mut machines = report.measured.iter().map(|one| &one.machine);
    let known = machines.rfind(|machine| machine["erlang"].is_string());
    let Some(machine) = known else {
        return "The machine is not known".to_string();
    };
    let text = |name: &str| machine[name].as_str().unwrap_or("unknown").to_string();
    let date = text("date");
    format!(
        "{} cores of a machine with \"{}\", Erlang/OTP {}; {}",
        machine["schedulers"],
        text("processor"),
        text("erlang").split(',').next().unwrap_or_default(),
        date.get(..10).unwrap_or(&date)
    )
}

/// Lines of at most a hundred columns; empty lines at the end stay.
fn wrapped(text: &str) -> String {
    let body = text.trim_end();
    let (mut lines, mut line) = (String::new(), String::new());
    for word in body.split_whitespace() {
        if line.len() + word.len() >= 100 {
            lines += &line;
            lines.push('\n');
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &line + &text[body.len()..]
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
        let times = ["lookup", "message"].map(|what| time_at(row, what, 0.999));
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
    let mut text = wrapped(&format!("{}.\n\n", machine(report)));
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

/// Returns the geometric mean of the ratios to the best of the others.
fn geometric_mean<'r>(rows: impl Iterator<Item = &'r Row>) -> Option<f64> {
    let logarithms: Vec<f64> = rows.filter_map(Row::ratio_to_best).map(f64::ln).collect();
    let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
    (!logarithms.is_empty()).then(|| mean.exp())
}

/// Returns README's sentences about small tables.
fn everyday(report: &Report) -> Option<String> {
    let mean = |experiment: &str, processes: u64| {
        let rows = report.rows(experiment).iter();
        geometric_mean(rows.filter(|row| row.processes() == processes)).map(shown)
    };
    let pair = |experiment: &str| {
        let (one, two) = (mean(experiment, 1)?, mean(experiment, 2)?);
        Some(format!("{one} with one process and {two} with two"))
    };
    Some(wrapped(&format!(
        "Tables of 10 to 10,000 objects are in the caches. There the geometric mean of [the calls \
         that programs make most often](docs/inside/small-tables.md) is {}; of calls on objects \
         with maps, lists, binaries and other values {}; of ten small programs {}.\n",
        pair("everyday-calls")?,
        pair("values")?,
        pair("programs")?,
    )))
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
        machine(report)
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
        let times = ["lookup", "message"].map(|what| time_at(row, what, 0.999));
        if let [Some(lookup), Some(message)] = times {
            let [call, side, kind] = ["name", "side", "type"].map(|name| row.text(name));
            let (lookup, message) = (lookup / 1000.0, message / 1000.0);
            let _ = writeln!(text, "{call},{side},{kind},{lookup:.3},{message:.3}");
        }
    }
    (text.len() > empty).then_some(text)
}
