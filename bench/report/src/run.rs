//! Runs experiments, and notes the load of the machine meanwhile.

use crate::plan::{BUILT, Experiment, make_bench};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The file that an experiment that is done leaves in its folder.
pub const DONE: &str = "done.json";

/// The seconds after which processes that were told to end are given up.
const PATIENCE: u64 = 30;

/// Measures experiments without results, or all of them again. Returns the names of those that
/// failed.
pub fn measure(
    experiments: &[&Experiment],
    folder: &Path,
    again: bool,
) -> Result<Vec<&'static str>, String> {
    let is_done = |one: &Experiment| {
        let text = fs::read_to_string(folder.join(one.name).join(DONE));
        let done: Option<Value> = text.ok().and_then(|text| serde_json::from_str(&text).ok());
        !again && done.is_some_and(|done| done["command"] == json!(one.command(folder)))
    };
    let open: Vec<_> = experiments.iter().filter(|one| !is_done(one)).collect();
    let all: u64 = open.iter().map(|one| one.seconds).sum();
    println!(
        "{} experiments, {} of them measured before; planned for the others: {}, after what they \
         need has been built",
        experiments.len(),
        experiments.len() - open.len(),
        minutes(all)
    );
    end_orphans(experiments, folder)?;
    let begun = Instant::now();
    build(&open)?;
    println!("built in {}", minutes(begun.elapsed().as_secs()));
    let style = "{wide_bar} {elapsed_precise}, about {msg}";
    let style = ProgressStyle::with_template(style).expect("a template");
    let bar = ProgressBar::new(all).with_style(style);
    let begun = Instant::now();
    let mut failed = Vec::new();
    for one in open {
        let planned = all - bar.position();
        // The machine may be slower than the one that was planned for.
        let speed = match bar.position() {
            0 => 1.0,
            done => begun.elapsed().as_secs_f64() / done as f64,
        };
        let left = minutes((planned as f64 * speed) as u64);
        bar.set_message(format!("{left} left: {}", one.name));
        let own = Instant::now();
        let error = measure_one(one, folder).err();
        bar.suspend(|| {
            let (took, planned) = (own.elapsed().as_secs(), one.seconds);
            println!("{:<24} {took:>5} s, planned {planned}", one.name);
            if let Some(error) = error {
                println!("{} failed: {error}", one.name);
                failed.push(one.name);
            }
        });
        bar.inc(one.seconds);
    }
    bar.finish_and_clear();
    println!(
        "measured in {}, planned {}",
        minutes(begun.elapsed().as_secs()),
        minutes(all)
    );
    Ok(failed)
}

/// Returns a duration in words.
pub fn minutes(seconds: u64) -> String {
    match seconds {
        0..=600 => format!("{seconds} s"),
        _ => format!("{} min", seconds.div_ceil(60)),
    }
}

/// Builds all programs of the experiments, so that no compiler runs while something is measured.
fn build(open: &[&&Experiment]) -> Result<(), String> {
    succeed(&["make".into(), "-s".into(), "build".into()])?;
    for what in BUILT {
        if open.iter().any(|one| one.what == what) {
            succeed(&make_bench(what))?;
        }
    }
    Ok(())
}

/// Runs a command that must not measure.
fn succeed(command: &[String]) -> Result<(), String> {
    let mut make = Command::new(&command[0]);
    let status = make.args(&command[1..]).env("BUILD_ONLY", "1").status();
    if status.map_err(|error| format!("make: {error}"))?.success() {
        Ok(())
    } else {
        Err(format!("{} failed", command.join(" ")))
    }
}

/// Ends the measurement that a run had begun when it was killed: it would take processors from the
/// next one, and write its figures beside those.
fn end_orphans(experiments: &[&Experiment], folder: &Path) -> Result<(), String> {
    let names = experiments.iter().map(|one| folder.join(one.name));
    let folders: Vec<String> = names.map(|name| name.display().to_string()).collect();
    let begun = Instant::now();
    loop {
        let orphans = processes_with(&folders);
        if orphans.is_empty() {
            return Ok(());
        }
        if begun.elapsed().as_secs() > PATIENCE {
            return Err(format!("these measure still: {}", orphans.join(", ")));
        }
        let told = Command::new("kill").args(&orphans).status();
        told.map_err(|error| format!("kill: {error}"))?;
        sleep(Duration::from_millis(200));
    }
}

/// Returns the numbers of processes whose command line gives one of these folders to an option.
fn processes_with(folders: &[String]) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let writes_there = entries.filter(|entry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
        words.windows(2).any(|pair| {
            let is_there = |folder: &String| folder.as_bytes() == pair[1];
            pair[0].starts_with(b"--") && folders.iter().any(is_there)
        })
    });
    let numbers = writes_there.map(|entry| entry.file_name().to_string_lossy().into_owned());
    numbers.collect()
}

fn measure_one(one: &Experiment, folder: &Path) -> Result<(), String> {
    let results = folder.join(one.name);
    let of_files = |error: std::io::Error| format!("{}: {error}", results.display());
    if results.exists() {
        fs::remove_dir_all(&results).map_err(of_files)?;
    }
    fs::create_dir_all(&results).map_err(of_files)?;
    let command = one.command(folder);
    let log = File::create(results.join("log.txt")).map_err(of_files)?;
    let errors = log.try_clone().map_err(of_files)?;
    let (begun, before, load_before) = (Instant::now(), Ticks::now(), load());
    let status = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .status()
        .map_err(|error| format!("{}: {error}", command[0]))?;
    let ticks = Ticks::now().since(&before);
    let machine = ats_bench_common::common_facts();
    let machine = machine.into_iter();
    let machine = machine.map(|(name, value)| (name.to_string(), json!(value)));
    let done = json!({
        "command": command,
        "seconds": begun.elapsed().as_secs(),
        "status": status.code(),
        "load_before": load_before,
        "load_after": load(),
        "busy_percent": ticks.percent(ticks.busy),
        "stolen_percent": ticks.percent(ticks.stolen),
        "machine": machine.collect::<serde_json::Map<_, _>>(),
    });
    // The trace ends with an error if the tree did not adapt as it should; its figures are figures.
    if !status.success() && one.what != "trace" {
        return Err(format!("see {}", results.join("log.txt").display()));
    }
    fs::write(results.join(DONE), done.to_string()).map_err(of_files)
}

/// Returns the average number of processes that ran or wanted to in the last minute.
fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Times of all processors since the machine was started.
#[derive(Default)]
struct Ticks {
    busy: u64,
    stolen: u64,
    all: u64,
}

impl Ticks {
    fn now() -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line
            .split_whitespace()
            .filter_map(|one| one.parse().ok())
            .collect();
        // user, nice, system, idle, waiting for devices, two kinds of interrupts, stolen
        let Some(ticks) = ticks.get(..8) else {
            return Ticks::default();
        };
        let all: u64 = ticks.iter().sum();
        Ticks {
            busy: all - ticks[3] - ticks[4] - ticks[7],
            stolen: ticks[7],
            all,
        }
    }

    fn since(&self, before: &Ticks) -> Ticks {
        Ticks {
            busy: self.busy - before.busy,
            stolen: self.stolen - before.stolen,
            all: self.all - before.all,
        }
    }

    fn percent(&self, part: u64) -> Option<f64> {
        (self.all > 0).then(|| (1000.0 * part as f64 / self.all as f64).round() / 10.0)
    }
}
