//! Tables in the text of `docs/inside/scaling.md`, and the pictures beside it.

use crate::counts::{CORES, Counts, FIGURES as COUNTED};
use crate::designs::{BOUNDS, Ets, HERE, LARGE, PUBLISHED, find_counts, ours};
use crate::mixes::Mix;
use crate::model::Machine;
use crate::plot::{Chart, Series};
use crate::published::{self, FIGURES};
use crate::rates::Rate;
use crate::tables::TableKind;
use std::fmt::Write;
use std::path::Path;

/// The counts and measurements.
pub struct Data {
    /// All counts.
    pub counts: Vec<Counts>,
    /// All rates.
    pub rates: Vec<Rate>,
    /// Seconds under the lock of a pool of the slab for one block.
    pub in_pool: f64,
}

/// The file of counts, in the folder of documents.
pub const COUNTS_FILE: &str = "scaling-counts.csv";
/// The file of rates.
pub const RATES_FILE: &str = "scaling-rates.csv";

impl Data {
    /// Reads both files.
    pub fn read(docs: &Path) -> Result<Self, String> {
        let read = |file: &str| {
            let file = docs.join(file);
            std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
        };
        let (counts, rates) = (read(COUNTS_FILE)?, read(RATES_FILE)?);
        let in_pool = rates.lines().find_map(|line| line.strip_prefix("pool,"));
        let in_pool = in_pool.and_then(|seconds| seconds.parse().ok());
        Ok(Data {
            counts: counts.lines().filter_map(Counts::from_csv).collect(),
            rates: rates.lines().filter_map(Rate::from_csv).collect(),
            in_pool: in_pool.ok_or("no time of a pool among the rates")?,
        })
    }

    fn rate(&self, kind: TableKind, mix: Mix, threads: usize) -> Option<f64> {
        let mut rates = self.rates.iter();
        let rate = rates.find(|rate| (rate.kind, rate.mix, rate.threads) == (kind, mix, threads));
        rate.map(|rate| rate.per_second)
    }

    /// Operations a second in the model.
    fn model(&self, kind: TableKind, mix: Mix, machine: &Machine, threads: usize) -> Option<f64> {
        let counts = find_counts(&self.counts, kind, mix)?;
        let alone = 1.0 / self.rate(kind, mix, 1)?;
        let operation = ours(counts, alone, self.in_pool, threads);
        Some(operation.throughput(machine, threads))
    }

    /// Writes tables into the text, and pictures beside it.
    pub fn write(&self, docs: &Path) -> Result<(), String> {
        let file = docs.join("scaling.md");
        let failed = |error| format!("{}: {error}", file.display());
        let mut text = std::fs::read_to_string(&file).map_err(failed)?;
        for (name, table) in [
            ("counts", self.counts_table()),
            ("published", published_table()),
            ("check", self.check_table()),
            ("prediction", self.prediction_table()),
            ("where", self.where_table()),
        ] {
            text = replace_table(&text, name, &table)?;
        }
        std::fs::write(&file, text).map_err(failed)?;
        for (name, chart) in self.charts() {
            let svg = chart.to_svg().map_err(|error| format!("{name}: {error}"))?;
            std::fs::write(docs.join(name), svg).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    }

    /// Returns all charts, with the names of their files.
    pub fn charts(&self) -> [(&'static str, Chart); 3] {
        [
            ("scaling-published.svg", published_chart()),
            ("scaling-prediction.svg", self.prediction_chart()),
            ("scaling-designs.svg", self.designs_chart()),
        ]
    }

    fn counts_table(&self) -> String {
        let mut table = String::from("| table | operation | locks of the table |");
        for name in COUNTED {
            let _ = write!(table, " {name} |");
        }
        table += " lines fetched, 8 cores | 128 cores |\n|---|---|---:|";
        table += &"---:|".repeat(COUNTED.len() + 2);
        table.push('\n');
        for kind in TableKind::ALL {
            for mix in Mix::ALL {
                let Some(counts) = find_counts(&self.counts, kind, mix) else {
                    continue;
                };
                let (name, parts) = (mix.name(), counts.parts);
                let _ = write!(table, "| `{}` | {name} | {parts} |", kind.id());
                let fetched = [counts.fetched[3], counts.fetched[CORES.len() - 1]];
                for figure in counts.figures.iter().chain(&fetched) {
                    let _ = write!(table, " {} |", three_digits(*figure));
                }
                table.push('\n');
            }
        }
        table
    }

    fn check_table(&self) -> String {
        let mut table = String::from(
            "| table | operation | one thread, measured, M/s | two, measured | two, model | error \
             |\n\
             |---|---|---:|---:|---:|---:|\n",
        );
        for (kind, mix) in all_mixes() {
            let (Some(one), Some(two)) = (self.rate(kind, mix, 1), self.rate(kind, mix, 2)) else {
                continue;
            };
            let model = self.model(kind, mix, &HERE, 2).unwrap_or(f64::NAN);
            let _ = writeln!(
                table,
                "| `{}` | {} | {} | {} | {} | {:+.0} % |",
                kind.id(),
                mix.name(),
                three_digits(one / 1e6),
                three_digits(two / 1e6),
                three_digits(model / 1e6),
                (model / two - 1.0) * 100.0
            );
        }
        table
    }

    fn prediction_table(&self) -> String {
        let mut table = String::from(
            "| table | operation | 1 core, M/s | 8 | 32 | 64 | 128 \
             | 128 cores, cheap and dear lines | times one core |\n\
             |---|---|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for (kind, mix) in all_mixes() {
            let _ = write!(table, "| `{}` | {} |", kind.id(), mix.name());
            let model = |machine: &Machine, threads| {
                self.model(kind, mix, machine, threads).unwrap_or(f64::NAN) / 1e6
            };
            for cores in [1, 8, 32, 64, 128] {
                let _ = write!(table, " {} |", three_digits(model(&LARGE, cores)));
            }
            let [cheap, dear] = BOUNDS.map(|machine| three_digits(model(&machine, 128)));
            let times = model(&LARGE, 128) / model(&LARGE, 1);
            let _ = writeln!(table, " {cheap} to {dear} | {} |", three_digits(times));
        }
        table
    }

    /// Returns the parts of the time of an operation with 128 cores.
    fn where_table(&self) -> String {
        let mut table = String::from(
            "| table | operation | alone, ns | lines | `membarrier` | queues | together |\n\
             |---|---|---:|---:|---:|---:|---:|\n",
        );
        let cores = 128;
        for (kind, mix) in all_mixes() {
            let (Some(counts), Some(rate)) = (
                find_counts(&self.counts, kind, mix),
                self.rate(kind, mix, 1),
            ) else {
                continue;
            };
            let operation = ours(counts, 1.0 / rate, self.in_pool, cores);
            let mut parts = operation.parts(&LARGE, cores).to_vec();
            parts.push(parts.iter().sum());
            let _ = write!(table, "| `{}` | {} |", kind.id(), mix.name());
            for part in parts {
                let _ = write!(table, " {} |", three_digits(part * 1e9));
            }
            table.push('\n');
        }
        table
    }

    fn prediction_chart(&self) -> Chart {
        let mixes = [Mix::Lookup, Mix::Mostly, Mix::Updates];
        let series = TableKind::ALL.into_iter().flat_map(|kind| {
            mixes.map(|mix| Series {
                name: format!("{}, {}", kind.id(), short_name(mix)),
                line: curve(|cores| self.model(kind, mix, &LARGE, cores).unwrap_or(1.0) / 1e6),
                dots: Vec::new(),
                dashed: kind == TableKind::Hash,
            })
        });
        Chart {
            title: "Tables of ats on 2 sockets of 64 cores, by the model".to_string(),
            x_title: "cores".to_string(),
            y_title: "million operations a second".to_string(),
            series: series.collect(),
        }
    }

    fn designs_chart(&self) -> Chart {
        let mut series: Vec<Series> = TableKind::ALL
            .into_iter()
            .map(|kind| Series {
                name: format!("{}, ats", kind.id()),
                line: speedup(|cores| self.model(kind, Mix::Updates, &LARGE, cores).unwrap_or(1.0)),
                dots: Vec::new(),
                dashed: false,
            })
            .collect();
        series.extend(Ets::ALL.map(|design| Series {
            name: design.name().to_string(),
            line: speedup(|cores| {
                let alone = published::alone(design, 1.0);
                let operation = design.operation(1.0, alone, cores);
                operation.throughput(&LARGE, cores)
            }),
            dots: Vec::new(),
            dashed: true,
        }));
        Chart {
            title: "50 % inserts, 50 % deletes on 2 sockets of 64 cores, by the model".to_string(),
            x_title: "cores".to_string(),
            y_title: "throughput, that of one core being 1".to_string(),
            series,
        }
    }
}

fn all_mixes() -> impl Iterator<Item = (TableKind, Mix)> {
    let kinds = TableKind::ALL.into_iter();
    kinds.flat_map(|kind| Mix::ALL.map(|mix| (kind, mix)))
}

fn curve(rate: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
    CORES.map(|cores| (cores as f64, rate(cores))).to_vec()
}

fn speedup(rate: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
    let one = rate(1);
    curve(|cores| rate(cores) / one)
}

fn short_name(mix: Mix) -> &'static str {
    match mix {
        Mix::Mostly => "80 % lookup",
        Mix::Updates => "50 % insert",
        mix => mix.name(),
    }
}

fn name_of_writes(writes: f64) -> String {
    if writes > 0.0 {
        format!("{:.0} % inserts and deletes", writes * 100.0)
    } else {
        "lookups".to_string()
    }
}

fn published_table() -> String {
    let mut table = String::from(
        "| design | operations | processes | published, thousand/s | model | error \
         | tests allow a factor of |\n\
         |---|---|---:|---:|---:|---:|---:|\n",
    );
    for figure in &FIGURES {
        let model = published::predict(figure);
        let error = match figure.threads {
            1 => "calibration".to_string(),
            _ if published::is_fitted(figure) => "`wake` is fitted to it".to_string(),
            _ => format!("{:+.0} %", (model / figure.per_second - 1.0) * 100.0),
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {error} | {} |",
            figure.design.name(),
            name_of_writes(figure.writes),
            figure.threads,
            three_digits(figure.per_second / 1e3),
            three_digits(model / 1e3),
            figure.within,
        );
    }
    table
}

fn published_chart() -> Chart {
    let mut series = Vec::new();
    for design in [Ets::Tree22, Ets::Tree21, Ets::Set22] {
        for writes in [0.0, 1.0] {
            let alone = published::alone(design, writes);
            let model = |threads| {
                let operation = design.operation(writes, alone, threads);
                operation.throughput(&PUBLISHED, threads) / 1e6
            };
            let mut line = curve(model);
            line.truncate(7);
            let published = FIGURES
                .iter()
                .filter(|figure| (figure.design, figure.writes) == (design, writes));
            series.push(Series {
                name: format!("{}, {}", design.name(), name_of_writes(writes)),
                line,
                dots: published
                    .map(|figure| (figure.threads as f64, figure.per_second / 1e6))
                    .collect(),
                dashed: false,
            });
        }
    }
    Chart {
        title: "ets: the model (lines) and published figures (points)".to_string(),
        x_title: "processes, on 2 sockets of 16 cores with two threads each".to_string(),
        y_title: "million operations a second".to_string(),
        series,
    }
}

/// Returns a number with three digits that count, and zero as it is.
fn three_digits(number: f64) -> String {
    let size = number.abs();
    match size {
        _ if size == 0.0 => "0".to_string(),
        _ if size >= 99.95 => format!("{number:.0}"),
        _ if size >= 9.995 => format!("{number:.1}"),
        _ if size >= 0.1 => format!("{number:.2}"),
        _ if size >= 0.001 => format!("{number:.4}"),
        _ => format!("{number:.6}"),
    }
}

/// Returns the text with another table between the marks of this name.
fn replace_table(text: &str, name: &str, table: &str) -> Result<String, String> {
    let begin = format!("<!-- begin {name} -->\n");
    let end = format!("<!-- end {name} -->");
    let missing = || format!("no marks for the table {name:?}");
    let (before, rest) = text.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_one_before() {
        let text = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n";
        let new = replace_table(text, "x", "new\n").expect("the marks are there");
        assert_eq!(new, text.replace("old", "new"));
        assert!(replace_table(text, "y", "").is_err());
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 0.00012, 0.0123, 0.123, 1.234, 12.34, 123.4, 99.96].map(three_digits);
        let expected = [
            "0", "0.000120", "0.0123", "0.12", "1.23", "12.3", "123", "100",
        ];
        assert_eq!(shown, expected);
    }
}
