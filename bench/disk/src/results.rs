//! Figures and their statistics: medians over the rounds, ratios within a round, tables, a file.
//!
//! Absolute figures drift with the machine; ratios of figures measured side by side drift less. So
//! a ratio is taken in each round, and the median of these counts.

use crate::engine::ENGINES;
use crate::row::{Better, Group, ROWS, Row};
use ats_bench_common::{Facts, median, round_to};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The engine that the others are compared with.
pub const OURS: &str = "ats";

/// The measurements of an engine in a row: one figure for each round, and none in a round that
/// failed.
struct Figures {
    row: &'static str,
    engine: &'static str,
    rounds: Vec<Option<f64>>,
}

/// Everything that was measured.
#[derive(Default)]
pub struct Results {
    figures: Vec<Figures>,
}

impl Results {
    /// Remembers the figure of an engine in a round, counted from 0.
    pub fn add(&mut self, row: &'static str, engine: &'static str, round: usize, figure: f64) {
        let is_it = |figures: &Figures| figures.row == row && figures.engine == engine;
        let at = self.figures.iter().position(is_it).unwrap_or_else(|| {
            self.figures.push(Figures {
                row,
                engine,
                rounds: Vec::new(),
            });
            self.figures.len() - 1
        });
        let rounds = &mut self.figures[at].rounds;
        rounds.resize(rounds.len().max(round + 1), None);
        rounds[round] = Some(figure);
    }

    fn rounds(&self, row: &Row, engine: &str) -> Option<&[Option<f64>]> {
        let is_it = |figures: &&Figures| figures.row == row.name && figures.engine == engine;
        self.figures
            .iter()
            .find(is_it)
            .map(|figures| figures.rounds.as_slice())
    }

    fn median(&self, row: &Row, engine: &str) -> Option<f64> {
        median(
            self.rounds(row, engine)?
                .iter()
                .flatten()
                .copied()
                .collect(),
        )
    }

    /// Returns the ratio to an engine: above 1 if we are better, for rows where more is better and
    /// for those where less is.
    fn ratio(&self, row: &Row, engine: &str) -> Option<f64> {
        let pairs = self
            .rounds(row, OURS)?
            .iter()
            .zip(self.rounds(row, engine)?);
        let both = pairs.filter_map(|(ours, theirs)| ours.zip(*theirs));
        let ratios = both.map(|(ours, theirs)| match row.better {
            Better::More => ours / theirs,
            Better::Less => theirs / ours,
        });
        median(ratios.collect())
    }

    /// Returns the best of the peers that meet the requirements of the row.
    fn best(&self, row: &Row) -> Option<&'static str> {
        let peers = ENGINES.iter().filter(|engine| engine.name != OURS);
        let fair = peers.filter(|engine| engine.keeps_writes || !row.writes);
        let figures = fair.filter_map(|engine| Some((engine.name, self.median(row, engine.name)?)));
        let order = |one: &(_, f64), other: &(_, f64)| match row.better {
            Better::More => one.1.total_cmp(&other.1),
            Better::Less => other.1.total_cmp(&one.1),
        };
        figures.max_by(order).map(|(name, _)| name)
    }

    /// Returns the names of engines that have figures.
    fn engines(&self) -> Vec<&'static str> {
        let names = ENGINES.iter().map(|engine| engine.name);
        names
            .filter(|name| self.figures.iter().any(|figures| figures.engine == *name))
            .collect()
    }

    /// Returns the tables in Markdown, one for each group.
    pub fn tables(&self) -> String {
        let mut text = String::new();
        for group in Group::ALL {
            let rows: Vec<&Row> = ROWS
                .iter()
                .filter(|row| row.group == group && self.best_or_ours(row).is_some())
                .collect();
            if !rows.is_empty() {
                self.table(&mut text, group, &rows);
            }
        }
        text
    }

    fn best_or_ours(&self, row: &Row) -> Option<()> {
        self.engines()
            .iter()
            .any(|engine| self.median(row, engine).is_some())
            .then_some(())
    }

    fn table(&self, text: &mut String, group: Group, rows: &[&Row]) {
        let engines = self.engines();
        let _ = write!(text, "### {}\n\n| | unit |", group.name());
        engines.iter().for_each(|engine| {
            let _ = write!(text, " {engine} |");
        });
        text.push_str(" best peer | ats over it |\n|---|---|");
        text.push_str(&"---:|".repeat(engines.len()));
        text.push_str("---|---:|\n");
        for row in rows {
            let _ = write!(text, "| {} | {} |", row.name, row.unit);
            for engine in &engines {
                let unfair =
                    row.writes && ENGINES.iter().any(|e| e.name == *engine && !e.keeps_writes);
                let mark = if unfair { "°" } else { "" };
                let _ = match self.median(row, engine) {
                    Some(figure) => write!(text, " {}{mark} |", format_figure(figure)),
                    None => write!(text, " – |"),
                };
            }
            let best = self.best(row);
            let ratio = best.and_then(|best| self.ratio(row, best));
            let ratio = ratio.map_or_else(|| "–".to_string(), format_ratio);
            let _ = writeln!(text, " {} | {ratio} |", best.unwrap_or("–"));
        }
        text.push('\n');
    }

    fn json_of(&self, row: &Row) -> Value {
        let others = self.engines().into_iter().filter(|engine| *engine != OURS);
        let ratios = others.filter_map(|name| Some((name, round_to(self.ratio(row, name)?, 4))));
        let ratios: Value = ratios.collect();
        let rates = self.engines().into_iter().filter_map(|name| {
            let rounds = self.rounds(row, name)?.iter();
            let rounds: Value = rounds
                .map(|figure| figure.map(|f| round_to(f, 4)))
                .collect();
            Some((name, rounds))
        });
        let rates: Value = rates.collect();
        let mut line = json!({
            "kind": "disk",
            "group": row.group.name(),
            "name": row.name,
            "threads": 1,
            "unit": row.unit,
            "better": match row.better {
                Better::More => "more",
                Better::Less => "less",
            },
            "ratios": ratios,
            "rates": rates,
        });
        if let Some(best) = self.best(row) {
            line["best"] = json!(best);
        }
        line
    }

    /// Writes the file of results.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, folder: &Path, facts: &Facts) -> io::Result<PathBuf> {
        let measured = ROWS.iter().filter(|row| self.best_or_ours(row).is_some());
        ats_bench_common::write(folder, "disk", facts, measured.map(|row| self.json_of(row)))
    }
}

/// Returns a figure with about four digits, and thousands apart.
fn format_figure(figure: f64) -> String {
    match figure.abs() {
        size if size < 9.9995 => format!("{figure:.3}"),
        size if size < 99.995 => format!("{figure:.2}"),
        size if size < 999.95 => format!("{figure:.1}"),
        _ => {
            let digits = format!("{figure:.0}");
            let mut text = String::new();
            for (at, digit) in digits.chars().enumerate() {
                if at > 0 && (digits.len() - at).is_multiple_of(3) {
                    text.push(',');
                }
                text.push(digit);
            }
            text
        }
    }
}

/// Returns a ratio with at least two digits that count.
fn format_ratio(ratio: f64) -> String {
    match ratio {
        _ if ratio >= 0.095 => format!("{ratio:.2}"),
        _ if ratio >= 0.000_95 => format!("{ratio:.4}"),
        _ => format!("{ratio:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{BULK, BULK_SIZE, READS_HOT};

    #[test]
    fn ratios_say_how_much_better_we_are() {
        let mut results = Results::default();
        for (round, (ours, theirs)) in [(2.0, 1.0), (30.0, 10.0), (400.0, 100.0)]
            .into_iter()
            .enumerate()
        {
            results.add(BULK.name, OURS, round, ours);
            results.add(BULK.name, "fjall", round, theirs);
            results.add(BULK_SIZE.name, OURS, round, ours);
            results.add(BULK_SIZE.name, "fjall", round, theirs);
        }
        assert_eq!(results.ratio(&BULK, "fjall"), Some(3.0));
        assert_eq!(results.ratio(&BULK_SIZE, "fjall"), Some(1.0 / 3.0));
        assert_eq!(results.ratio(&BULK, "redb"), None);
    }

    #[test]
    fn rounds_that_failed_do_not_count() {
        let mut results = Results::default();
        results.add(BULK.name, OURS, 0, 8.0);
        results.add(BULK.name, OURS, 1, 2.0);
        results.add(BULK.name, "fjall", 1, 1.0);
        assert_eq!(results.ratio(&BULK, "fjall"), Some(2.0));
        assert_eq!(results.median(&BULK, "fjall"), Some(1.0));
    }

    #[test]
    fn engines_that_lose_writes_are_best_only_at_reads() {
        let mut results = Results::default();
        for row in [&BULK, &READS_HOT] {
            results.add(row.name, "bf-tree", 0, 9.0);
            results.add(row.name, "redb", 0, 3.0);
            results.add(row.name, "fjall", 0, 2.0);
        }
        assert_eq!(results.best(&BULK), Some("redb"));
        assert_eq!(results.best(&READS_HOT), Some("bf-tree"));
        results.add(BULK_SIZE.name, "redb", 0, 3.0);
        results.add(BULK_SIZE.name, "fjall", 0, 2.0);
        assert_eq!(results.best(&BULK_SIZE), Some("fjall"));
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(format_figure(0.12345), "0.123");
        assert_eq!(format_figure(99.994), "99.99");
        assert_eq!(format_figure(999.96), "1,000");
        assert_eq!(format_figure(1_234_567.8), "1,234,568");
        assert_eq!(format_ratio(12.345), "12.35");
        assert_eq!(format_ratio(0.0123), "0.0123");
        assert_eq!(format_ratio(0.000_012_3), "1.2e-5");
    }
}
