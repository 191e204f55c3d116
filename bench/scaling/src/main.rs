//! How tables scale, on paper: counts what operations cost other processors, measures what they cost alone, and
//! computes from both the throughput on machines with more cores than this one. `docs/scaling.md` explains it.
//!
//! The counting is done by a build of its own, `RUSTFLAGS="--cfg counted"`.

#[cfg(counted)]
mod counting;
mod counts;
mod mixes;
mod tables;

use std::process::ExitCode;

const USAGE: &str = "usage: ats-bench-scaling count FILE";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["count", file] => count(file),
        _ => Err(USAGE.to_string()),
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
fn count(file: &str) -> Result<(), String> {
    let mut text = String::new();
    let counted = counting::count_all(|counts| {
        let line = counts.to_csv();
        println!("{line}");
        text += &line;
        text.push('\n');
    });
    std::fs::write(file, text).map_err(|error| format!("{file}: {error}"))?;
    counted
}

#[cfg(not(counted))]
fn count(_: &str) -> Result<(), String> {
    Err("this build does not count: RUSTFLAGS=\"--cfg counted\"".to_string())
}
