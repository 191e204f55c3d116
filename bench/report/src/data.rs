//! The figures of all experiments, read from the files that their commands wrote.

use crate::plan::Experiment;
use crate::run::DONE;
use ats_bench_common::median;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// One measurement with all its samples, as its command wrote it.
pub struct Row(pub Value);

impl Row {
    /// Returns a text of the row, or nothing.
    pub fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    /// Returns the number of processes or threads.
    pub fn processes(&self) -> u64 {
        let processes = self.0["processes"].as_u64();
        processes.or(self.0["threads"].as_u64()).unwrap_or(1)
    }

    /// Returns the sides in the order of the row, ours first.
    pub fn sides(&self) -> Vec<String> {
        let listed = self.0["sides"].as_array();
        let listed = listed.map(|all| all.iter().filter_map(Value::as_str).map(str::to_string));
        let mut sides: Vec<String> = match listed {
            Some(listed) => listed.collect(),
            None => {
                let rates = self.0["rates"].as_object();
                rates.map_or_else(Vec::new, |rates| rates.keys().cloned().collect())
            }
        };
        sides.sort_by_key(|side| side != "ats" && side != "dats");
        sides
    }

    /// Returns the samples of a side, one for each round.
    pub fn samples(&self, side: &str) -> Vec<f64> {
        let samples = self.0["rates"][side].as_array();
        samples.map_or_else(Vec::new, |all| {
            all.iter().filter_map(Value::as_f64).collect()
        })
    }

    /// Returns the median of a side.
    pub fn median(&self, side: &str) -> Option<f64> {
        median(self.samples(side))
    }

    /// Returns the time that a part of the calls of a kind takes at most.
    pub fn time_at(&self, what: &str, part: f64) -> Option<f64> {
        let pairs = self.0[what].as_array()?;
        pairs.iter().find(|pair| pair[0].as_f64() == Some(part))?[1].as_f64()
    }

    /// `true` if more is better.
    pub fn is_more_better(&self) -> bool {
        self.text("better") != "less"
    }

    /// Returns the median over the rounds of how much better the first side is than another.
    pub fn ratio(&self, side: &str) -> Option<f64> {
        let ours = self.sides().first().map(|ours| self.samples(ours))?;
        let pairs = ours.into_iter().zip(self.samples(side));
        let ratios = pairs.map(|(ours, theirs)| {
            if self.is_more_better() {
                ours / theirs
            } else {
                theirs / ours
            }
        });
        median(ratios.collect())
    }

    /// Returns the ratio of the first side to the best of the others, taken in each round; the
    /// median.
    pub fn ratio_to_best(&self) -> Option<f64> {
        let sides = self.sides();
        let (ours, others) = sides.split_first()?;
        let better = if self.is_more_better() {
            f64::max
        } else {
            f64::min
        };
        let rounds = self
            .samples(ours)
            .into_iter()
            .enumerate()
            .filter_map(|(round, ours)| {
                let others = others
                    .iter()
                    .filter_map(|side| self.samples(side).get(round).copied());
                let best = others.reduce(better)?;
                Some(if self.is_more_better() {
                    ours / best
                } else {
                    best / ours
                })
            });
        median(rounds.collect())
    }

    /// Returns the distance of the samples of our side, of their median: the noise.
    pub fn spread(&self) -> Option<f64> {
        let samples = self.samples(self.sides().first()?);
        let most = samples.iter().copied().reduce(f64::max)?;
        let least = samples.iter().copied().reduce(f64::min)?;
        Some((most - least) / median(samples)?)
    }
}

/// Returns the geometric mean of the ratios to the best of the others.
pub fn geometric_mean<'r>(rows: impl Iterator<Item = &'r Row>) -> Option<f64> {
    let logarithms: Vec<f64> = rows.filter_map(Row::ratio_to_best).map(f64::ln).collect();
    let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
    (!logarithms.is_empty()).then(|| mean.exp())
}

/// An experiment that was measured.
pub struct Measured {
    /// The name.
    pub name: &'static str,
    /// The target and the arguments with which it can be measured again.
    pub command: String,
    /// The notes about the run.
    pub done: Value,
    /// The machine and the versions, as the command wrote them.
    pub machine: Value,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Measured {
    /// Returns the day.
    fn day(&self) -> &str {
        let date = self.done["machine"]["date"].as_str();
        date.and_then(|date| date.get(..10)).unwrap_or_default()
    }
}

/// All experiments that were measured.
pub struct Report {
    /// `true` if little was measured.
    pub quick: bool,
    /// The measured experiments in the order of the plan.
    pub measured: Vec<Measured>,
}

impl Report {
    /// Reads the results in a folder.
    ///
    /// # Errors
    /// If a file cannot be read or is no JSON.
    pub fn read(folder: &Path, experiments: &[Experiment], quick: bool) -> Result<Self, String> {
        let mut measured = Vec::new();
        for one in experiments {
            let results = folder.join(one.name);
            let Ok(done) = fs::read_to_string(results.join(DONE)) else {
                continue;
            };
            let done = serde_json::from_str(&done).map_err(|error| error.to_string())?;
            let mut files: Vec<_> = fs::read_dir(&results)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| format!("{}: {error}", results.display()))?
                .into_iter()
                .map(|entry| entry.path())
                .collect();
            files.sort();
            let (mut machine, mut rows) = (Value::Null, Vec::new());
            for file in files {
                let text = match file.extension().and_then(|extension| extension.to_str()) {
                    Some("jsonl" | "csv") => fs::read_to_string(&file),
                    _ => continue,
                };
                let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
                let read = if text.starts_with('{') {
                    read_lines(&text)
                } else {
                    Ok(read_table(&text))
                };
                for row in read.map_err(|error| format!("{}: {error}", file.display()))? {
                    match row["kind"].as_str() {
                        Some("machine") => machine = row,
                        _ => rows.push(Row(row)),
                    }
                }
            }
            measured.push(Measured {
                name: one.name,
                command: one.again(),
                done,
                machine,
                rows,
            });
        }
        Ok(Report { quick, measured })
    }

    /// Returns the rows of an experiment.
    pub fn rows(&self, name: &str) -> &[Row] {
        self.find(name).map_or(&[], |one| &one.rows)
    }

    /// Returns the day on which an experiment was measured, or nothing.
    pub fn day(&self, name: &str) -> &str {
        self.find(name).map_or("", Measured::day)
    }

    fn find(&self, name: &str) -> Option<&Measured> {
        self.measured.iter().find(|one| one.name == name)
    }

    /// Everything, for other programs.
    pub fn to_json(&self) -> Value {
        let measured = self.measured.iter().map(|one| {
            json!({
                "experiment": one.name,
                "command": one.command,
                "run": one.done,
                "machine": one.machine,
                "rows": one.rows.iter().map(|row| &row.0).collect::<Vec<_>>(),
            })
        });
        json!({ "quick": self.quick, "measured": measured.collect::<Vec<_>>() })
    }
}

fn read_lines(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    text.lines().map(serde_json::from_str).collect()
}

/// Returns the lines of a file of comma-separated values, of which the first names the columns.
fn read_table(text: &str) -> Vec<Value> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let rows = lines.map(|line| {
        let pairs = names.iter().zip(line.split(',')).map(|(name, field)| {
            let number = field.parse::<f64>().map(|number| json!(number));
            (name.to_string(), number.unwrap_or_else(|_| json!(field)))
        });
        Value::Object(pairs.collect())
    });
    rows.collect()
}
