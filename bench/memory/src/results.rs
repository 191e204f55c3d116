//! Rates and their statistics: ratios within a round, medians over the rounds, a table, a file.
//!
//! Absolute numbers drift with the machine and its mood; ratios of figures measured side by side do
//! not. So the ratio is taken in each round, and the median of these counts.

use ats_bench_common::{Facts, median, round_to};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The side that the others are compared with.
pub const OURS: &str = "ats";

/// One workload with a number of threads.
struct Row {
    workload: String,
    threads: usize,
    /// Rates by side, one for each round.
    rates: Vec<(&'static str, Vec<f64>)>,
}

impl Row {
    fn rates_of(&self, side: &str) -> Option<&[f64]> {
        let found = self.rates.iter().find(|(name, _)| *name == side);
        found.map(|(_, rates)| rates.as_slice())
    }

    /// Returns the median over the rounds of our rate over that of a side.
    fn ratio_over(&self, side: &str) -> Option<f64> {
        let pairs = self.rates_of(OURS)?.iter().zip(self.rates_of(side)?);
        median(pairs.map(|(ours, theirs)| ours / theirs).collect())
    }
}

/// Everything that was measured.
#[derive(Default)]
pub struct Results {
    rows: Vec<Row>,
}

impl Results {
    /// Remembers the rate of a side in the next round.
    pub fn add(&mut self, workload: &str, threads: usize, side: &'static str, rate: f64) {
        let is_it = |row: &Row| row.workload == workload && row.threads == threads;
        let at = self.rows.iter().position(is_it).unwrap_or_else(|| {
            self.rows.push(Row {
                workload: workload.to_string(),
                threads,
                rates: Vec::new(),
            });
            self.rows.len() - 1
        });
        let rates = &mut self.rows[at].rates;
        match rates.iter_mut().find(|(name, _)| *name == side) {
            Some((_, rates)) => rates.push(rate),
            None => rates.push((side, vec![rate])),
        }
    }

    /// Puts the rows of a workload together, few threads before many.
    pub fn sort(&mut self) {
        let mut order: Vec<String> = Vec::new();
        for row in &self.rows {
            if !order.contains(&row.workload) {
                order.push(row.workload.clone());
            }
        }
        let place = |row: &Row| order.iter().position(|name| *name == row.workload);
        self.rows.sort_by_key(|row| (place(row), row.threads));
    }

    /// Returns the table: our rates, and by how much they are greater than those of the others.
    pub fn table(&self, sides: &[&'static str]) -> String {
        let present = |side: &&str| self.rows.iter().any(|row| row.rates_of(side).is_some());
        let sides: Vec<&str> = sides.iter().copied().filter(present).collect();
        if sides.is_empty() {
            return String::new();
        }
        let mut text = String::from(
            "M/s: our operations per second, in millions. Others: our rate over theirs.\n\n",
        );
        let _ = write!(text, "{:<34} {:>2} {:>8}", "workload", "P", "M/s");
        for side in sides.iter().filter(|side| **side != OURS) {
            let _ = write!(text, " {side:>13}");
        }
        text.push('\n');
        for row in &self.rows {
            let ours = row
                .rates_of(OURS)
                .and_then(|rates| median(rates.to_vec()))
                .unwrap_or(f64::NAN);
            let _ = write!(
                text,
                "{:<34} {:>2} {:>8.3}",
                row.workload,
                row.threads,
                ours / 1e6
            );
            for side in sides.iter().filter(|side| **side != OURS) {
                match row.ratio_over(side) {
                    Some(ratio) => write!(text, " {ratio:>13.2}"),
                    None => write!(text, " {:>13}", "-"),
                }
                .expect("a string takes everything");
            }
            text.push('\n');
        }
        text
    }

    /// Returns a table of the medians of all sides, in the unit of the workload.
    pub fn medians(&self, sides: &[&'static str]) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut text = format!("{:<34}", "workload");
        for side in sides {
            let _ = write!(text, " {side:>13}");
        }
        text.push('\n');
        for row in &self.rows {
            let _ = write!(text, "{:<34}", row.workload);
            for side in sides {
                let of_side = row.rates_of(side).unwrap_or_default().to_vec();
                let _ = write!(text, " {:>13.1}", median(of_side).unwrap_or(f64::NAN));
            }
            text.push('\n');
        }
        text
    }

    /// Returns the gain of a workload by more threads than one: its rate over that of one thread.
    pub fn degradation(&self, workload: &str, sides: &[&'static str]) -> String {
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.workload == workload)
            .collect();
        let Some((alone, crowds)) = rows.split_first() else {
            return String::new();
        };
        let mut text = format!(
            "{workload}: rate over that of one thread\n\n{:<16}",
            "threads"
        );
        for row in crowds {
            let _ = write!(text, " {:>8}", row.threads);
        }
        text.push('\n');
        for side in sides {
            let Some(one) = alone.rates_of(side) else {
                continue;
            };
            let _ = write!(text, "{side:<16}");
            for row in crowds {
                let many = row.rates_of(side).unwrap_or_default();
                let ratios = many.iter().zip(one).map(|(many, one)| many / one);
                let _ = write!(
                    text,
                    " {:>8.3}",
                    median(ratios.collect()).unwrap_or(f64::NAN)
                );
            }
            text.push('\n');
        }
        text
    }
}

/// Writes the file of results.
///
/// # Errors
/// Those of the file system.
pub fn write(folder: &Path, facts: &Facts, results: &[&Results]) -> io::Result<PathBuf> {
    let rows = results.iter().flat_map(|results| &results.rows);
    ats_bench_common::write(folder, "native", facts, rows.map(json_of))
}

fn json_of(row: &Row) -> Value {
    let others = row.rates.iter().filter(|(side, _)| *side != OURS);
    let ratios = others.filter_map(|(side, _)| Some((*side, round_to(row.ratio_over(side)?, 4))));
    let ratios: Value = ratios.collect();
    let rates = row.rates.iter().map(|(side, rates)| {
        let rates: Value = rates.iter().map(|rate| round_to(*rate, 1)).collect();
        (*side, rates)
    });
    let rates: Value = rates.collect();
    json!({
        "kind": "native",
        "name": row.workload,
        "threads": row.threads,
        "ratios": ratios,
        "rates": rates,
    })
}

/// Returns a line with all facts.
pub fn heading(facts: &Facts) -> String {
    let parts: Vec<String> = facts
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_a_round() {
        let mut results = Results::default();
        for (ours, theirs) in [(2.0, 1.0), (30.0, 10.0), (400.0, 100.0)] {
            results.add("w", 1, OURS, ours);
            results.add("w", 1, "other", theirs);
        }
        assert_eq!(results.rows.len(), 1);
        assert_eq!(results.rows[0].ratio_over("other"), Some(3.0));
        assert_eq!(results.rows[0].ratio_over("nobody"), None);
    }
}
