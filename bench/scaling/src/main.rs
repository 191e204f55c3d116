//! The scaling of tables, on paper: counts the cost of operations for other processors, measures
//! their cost alone, and computes from both the throughput on machines with more cores than this
//! one. `docs/inside/scaling.md` explains it.
//!
//! The counting is done by a build of its own, `RUSTFLAGS="--cfg counted"`.

#[cfg(counted)]
mod counting;
mod counts;
mod designs;
mod mixes;
mod model;
mod plot;
mod published;
mod rates;
mod report;
mod tables;

use clap::Parser;
use report::{Data, RATES_FILE};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Computes how tables scale.
#[derive(Parser)]
enum Command {
    /// Counts, into a file of the folder; only in a build that counts
    Count { folder: PathBuf },
    /// Measures one thread and two, into a file of the folder, and draws
    Measure { folder: PathBuf },
    /// Writes the tables of scaling.md in the folder, and the pictures beside it, from these files
    Draw { folder: PathBuf },
    /// Writes the curves of the pictures from these files, as JSON, into a file
    Curves { folder: PathBuf, file: PathBuf },
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Count { folder } => count(&folder),
        Command::Measure { folder } => measure(&folder),
        Command::Draw { folder } => draw(&folder),
        Command::Curves { folder, file } => write_curves(&folder, &file),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(counted)]
fn count(folder: &Path) -> Result<(), String> {
    let mut lines = Vec::new();
    let counted = counting::count_all(|counts| lines.push(print(counts.to_csv())));
    write_lines(&folder.join(report::COUNTS_FILE), &lines)?;
    counted
}

#[cfg(not(counted))]
fn count(_: &Path) -> Result<(), String> {
    Err("this build does not count: RUSTFLAGS=\"--cfg counted\"".to_string())
}

fn measure(folder: &Path) -> Result<(), String> {
    if cfg!(counted) {
        return Err("this build counts, which takes time".to_string());
    }
    let mut lines = vec![print(format!("pool,{:e}", rates::seconds_in_pool()))];
    rates::measure_all(|rate| lines.push(print(rate.to_csv())));
    write_lines(&folder.join(RATES_FILE), &lines)?;
    draw(folder)
}

fn write_curves(folder: &Path, file: &Path) -> Result<(), String> {
    let charts = Data::read(folder)?.charts().map(|(_, chart)| chart);
    write_lines(file, &charts.map(|chart| chart.to_json().to_string()))
}

fn draw(folder: &Path) -> Result<(), String> {
    Data::read(folder)?.write(folder)
}

/// Shows that work goes on.
fn print(line: String) -> String {
    println!("{line}");
    line
}

fn write_lines(file: &Path, lines: &[String]) -> Result<(), String> {
    std::fs::write(file, lines.join("\n") + "\n")
        .map_err(|error| format!("{}: {error}", file.display()))
}
