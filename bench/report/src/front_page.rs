//! README's table of figures, and its sentences about small tables.

use crate::data::{Report, Row, geometric_mean};
use crate::text::{machine, shown, shown_time, wrapped};

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

impl Line {
    fn is_of(&self, row: &Row) -> bool {
        // The number of integers is in the name; the last row has most.
        let same = row.text("name") == self.name
            || self.set == "new" && row.text("name").ends_with(self.name);
        same && (self.set.is_empty() || row.text("set") == self.set)
    }

    /// Returns the row of the table, or that of an earlier one if it was not measured.
    fn row(&self, report: &Report, old: &str) -> Option<String> {
        let label = format!("{}{}", self.label, types_of(self.types));
        let Some(one) = self.ratios(report, 1) else {
            let begin = format!("| {label} | ");
            let mut rows = old_rows(old, self.experiment);
            return rows.find(|row| row.starts_with(&begin)).map(str::to_string);
        };
        let (beside, two) = match self.beside {
            None => ("`ets`", self.ratios(report, 2).unwrap_or_default()),
            Some("dets") => ("`dets`", String::new()),
            Some("rocksdb") => ("RocksDB", String::new()),
            Some(other) => (other, String::new()),
        };
        Some(row_of(
            [&label, beside, &one, &two],
            self.experiment,
            report,
        ))
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

/// Returns the rows of hot keys in which we are furthest behind.
fn hot_losses(report: &Report, old: &str) -> Vec<String> {
    let hot = "integers-hot";
    if report.rows(hot).is_empty() {
        return old_rows(old, hot).map(str::to_string).collect();
    }
    let ratio_of = |row: &Row, processes: u64| {
        let mut rows = report.rows(hot).iter();
        let twin = rows.find(|other| {
            let same = |name| other.text(name) == row.text(name);
            same("name") && same("type") && other.processes() == processes
        });
        twin.and_then(Row::ratio_to_best)
    };
    let rows = report.rows(hot).iter();
    let rows = rows.filter(|row| row.processes() == 1);
    let mut losses: Vec<(f64, String)> = rows
        .filter_map(|row| {
            let ratios = [ratio_of(row, 1)?, ratio_of(row, 2)?];
            let least = ratios[0].min(ratios[1]);
            let label = format!("{}, 1000 keys, `{}`", row.text("name"), row.text("type"));
            let [one, two] = ratios.map(shown);
            let row = row_of([&label, "`ets`", &one, &two], hot, report);
            (least < 0.995).then_some((least, row))
        })
        .collect();
    losses.sort_by(|a, b| a.0.total_cmp(&b.0));
    losses.truncate(MOST_HOT);
    losses.into_iter().map(|(_, row)| row).collect()
}

/// Returns README's table. Rows and sentences of experiments that were not measured stay as they
/// are in `old`, with their dates.
pub fn table(report: &Report, old: &str) -> String {
    let mut text = format!(
        "Ratios of throughput; more than 1 means that `ats` is faster. {}. In memory: integer \
         keys, half of 2^20 present, drawn as it goes, over the faster of a plain `ets` table and \
         one with `write_concurrency` and `read_concurrency`; medians within rounds. The rows \
         with 1000 keys are those in which `ats` is furthest behind. Each figure is of an \
         experiment of `make report`, which the last columns name, with its day: `make report \
         ARGS=\"--only NAME --again\"` measures it anew, and `make figures` writes this table.\n\n",
        machine(report)
    );
    if report.quick {
        text.insert_str(0, "A quick run, whose figures are rough. ");
    }
    text = wrapped(&text);
    text += "| operation | beside | 1 process | 2 processes | experiment | measured |\n\
             |---|---|---:|---:|---|---|\n";
    let rows = IN_MEMORY.iter().flat_map(|line| line.row(report, old));
    let rows = rows.chain(hot_losses(report, old));
    for row in rows.chain(ON_DISK.iter().flat_map(|line| line.row(report, old))) {
        text += &row;
        text.push('\n');
    }
    let sentences = [bytes(report), waits(report)].into_iter();
    let sentences = sentences.zip(["memory", "latency"]);
    let sentences: Vec<String> = sentences
        .filter_map(|(new, experiment)| new.or_else(|| old_sentence(old, experiment)))
        .collect();
    if !sentences.is_empty() {
        text += "\n";
        text += &wrapped(&(sentences.join(" ") + "\n"));
    }
    text
}

/// Returns a row of the table.
fn row_of([label, beside, one, two]: [&str; 4], experiment: &str, report: &Report) -> String {
    let day = report.day(experiment);
    format!("| {label} | {beside} | {one} | {two} | `{experiment}` | {day} |")
}

/// Returns the rows of an experiment in an earlier table.
fn old_rows<'o>(old: &'o str, experiment: &str) -> impl Iterator<Item = &'o str> {
    let cell = format!(" | `{experiment}` | ");
    old.lines().filter(move |line| line.contains(&cell))
}

/// Returns the sentence that names an experiment, in the text below an earlier table.
fn old_sentence(old: &str, experiment: &str) -> Option<String> {
    let text = old.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = format!("experiment `{experiment}`).");
    let sentence = &text[..text.find(&end)? + end.len()];
    // The table ends with a bar, and each sentence with the name of an experiment.
    let begin = [" | ", "`). "].map(|before| sentence.rfind(before).map(|at| at + before.len()));
    let begin = begin.into_iter().max().flatten().unwrap_or(0);
    Some(sentence[begin..].to_string())
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
        row.and_then(|row| Some(row.time_at("lookup", 0.999)? / 1000.0))
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

/// Returns README's sentences about small tables.
pub fn everyday(report: &Report) -> Option<String> {
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
