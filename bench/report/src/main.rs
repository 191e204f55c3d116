//! The report: runs every measurement of the works, one after the other, and draws all of them in
//! one file of HTML that needs no network, unless it is to be small.
//!
//! A measurement that is done leaves a folder with its figures; a run that was interrupted goes on
//! with the next one. The figures of all are in `report.json`, with the machine, the versions, and
//! the load of the machine meanwhile.

mod adaptation;
mod charts;
mod data;
mod figures;
mod front_page;
mod page;
mod picture;
mod plan;
mod published;
mod run;
mod text;
mod view;

use clap::Parser;
use data::Report;
use plan::{Amount, Experiment};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measures everything, and draws the report.
#[derive(Parser)]
struct CommandLine {
    /// Measure little: five minutes on two cores; else about a hundred
    #[arg(long)]
    quick: bool,
    /// Only experiments whose name contains this; the report shows all that were measured
    #[arg(long, default_value = "")]
    only: String,
    /// Rounds of measurements that run in rounds
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// Measure in three times as many rounds as else
    #[arg(long, conflicts_with_all = ["quick", "rounds"])]
    long: bool,
    /// Name the experiments, the seconds that they take, and their commands, and do nothing
    #[arg(long)]
    plan: bool,
    /// Measure nothing, and draw the earlier results
    #[arg(long)]
    draw: bool,
    /// Let the page load plotly.js from its publisher: it is small, and needs the network
    #[arg(long)]
    linked: bool,
    /// Measure again, also if there are results
    #[arg(long)]
    again: bool,
    /// Measure nothing, and write the figures of README and of the documents in this folder
    #[arg(long, conflicts_with = "only")]
    figures: Option<PathBuf>,
    /// Folder of the figures and of the report
    #[arg(long)]
    folder: Option<PathBuf>,
}

fn main() -> ExitCode {
    match work(CommandLine::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work(line: CommandLine) -> Result<(), String> {
    let experiments = plan::experiments(Amount {
        quick: line.quick,
        rounds: line.rounds,
        long: line.long,
    });
    let chosen = experiments
        .iter()
        .filter(|one| one.name.contains(&line.only));
    let chosen: Vec<_> = chosen.collect();
    let kind = if line.quick { "quick" } else { "full" };
    let folder = line.folder;
    let folder = folder.unwrap_or_else(|| Path::new("bench/results/report").join(kind));
    // Another checkout has another folder: its measurements are not ours to end.
    let folder =
        std::path::absolute(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if line.plan {
        for one in &chosen {
            let Experiment { name, seconds, .. } = one;
            println!("{name:<24} {seconds:>5} s  {}", one.again());
        }
        let all = chosen.iter().map(|one| one.seconds).sum();
        println!("{:<24} {:>7}", "together", run::minutes(all));
        return Ok(());
    }
    if chosen.is_empty() {
        return Err(format!(
            "there is no experiment {:?}; --plan names them",
            line.only
        ));
    }
    if let Some(root) = &line.figures {
        let report = Report::read(&folder, &experiments, line.quick)?;
        if report.measured.is_empty() {
            return Err(format!(
                "no experiment was measured in {}",
                folder.display()
            ));
        }
        return figures::write(&report, root);
    }
    let failed = if line.draw {
        Vec::new()
    } else {
        run::measure(&chosen, &folder, line.again)?
    };
    let report = Report::read(&folder, &experiments, line.quick)?;
    let write = |name: &str, text: String| {
        let file = folder.join(name);
        let written = std::fs::write(&file, text);
        written.map_err(|error| format!("{}: {error}", file.display()))
    };
    write("report.json", report.to_json().to_string())?;
    let script = if line.linked {
        page::Script::Linked
    } else {
        page::Script::Inside
    };
    write("report.html", page::html(&report, script))?;
    write("beside-ets.csv", picture::table(&report))?;
    println!("written to {}", folder.join("report.html").display());
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}
