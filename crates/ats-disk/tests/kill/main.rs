//! A process that writes to a store is killed at any time. Killing a process loses nothing, with
//! any durability: each write that had returned is there, no batch is there in part, and there is
//! nothing besides but the writes under way.
//!
//! The test starts itself as another process, which tells over a pipe which writes it begins and
//! ends. After a while it is killed with SIGKILL, and the directory is opened here. The next round
//! goes on with it. There are 20 rounds, or as many as `ATS_DISK_KILL_ROUNDS` says.

#[path = "../support/append.rs"]
mod append;
mod check;
#[path = "../support/directory.rs"]
mod directory;
#[path = "../support/map.rs"]
mod map;
mod operation;
mod writer;

use check::Expected;
use directory::Directory;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use writer::{Order, Report};

const ROUNDS: u64 = 20;

/// Another process that writes.
struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Process {
    fn start(order: &Order, directory: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("it has a name"))
            .args(["--exact", "written_records_survive_a_kill", "--nocapture"])
            .env(writer::DIRECTORY, directory)
            .env(writer::ORDER, order.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        Process { child, out }
    }

    /// Kills it when this time has passed since it was started, or since its first report, and
    /// gathers its reports.
    fn kill_after(self, time: Duration, from_first_report: bool) -> Vec<Report> {
        let Process { mut child, out } = self;
        let (first, has_reported) = mpsc::channel();
        // Read meanwhile, so that it is never kept from writing.
        let reader = thread::spawn(move || {
            let mut reports = Vec::new();
            for line in out.lines().map_while(Result::ok) {
                if let Some(report) = Report::parse(&line) {
                    let _unless_it_was_killed = first.send(());
                    reports.push(report);
                }
            }
            reports
        });
        if from_first_report {
            let reported = has_reported.recv_timeout(Duration::from_secs(120));
            reported.expect("it writes");
        }
        thread::sleep(time);
        child.kill().expect("killed");
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(9), "it ended by itself: {status}");
        reader.join().expect("no panic")
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a new directory");
    for entry in std::fs::read_dir(from).expect("it is there") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("it has a name");
        std::fs::copy(&path, to.join(name)).expect("copied");
    }
}

/// Goes on for a round, and says how many writes were acknowledged.
fn run(round: u64, directory: &Path, left: &Path, expected: &mut Expected) -> usize {
    let order = Order {
        round,
        first: expected.counts(),
    };
    let process = Process::start(&order, directory);
    // Some are killed while they open the store.
    let is_early = fastrand::u8(..4) == 0;
    let longest = if is_early { 30_000 } else { 350_000 };
    let reports = process.kill_after(Duration::from_micros(fastrand::u64(..longest)), !is_early);
    if directory.exists() {
        copy(directory, left);
    }
    check::check(round, directory, expected, &reports)
}

#[test]
fn written_records_survive_a_kill() {
    if writer::was_ordered() {
        return writer::write();
    }
    let rounds = std::env::var("ATS_DISK_KILL_ROUNDS").map_or(ROUNDS, |rounds| {
        rounds.parse().expect("ATS_DISK_KILL_ROUNDS is a number")
    });
    let directory = Directory::new();
    let mut expected = Expected::default();
    let (mut acknowledged, mut fruitful) = (0, 0);
    for round in 0..rounds {
        let left = Directory::new();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            run(round, directory.path(), left.path(), &mut expected)
        }));
        match outcome {
            Ok(count) => {
                acknowledged += count;
                fruitful += u64::from(count > 0);
            }
            Err(panic) => {
                println!("round {round} has left {}", left.path().display());
                std::mem::forget(left);
                resume_unwind(panic);
            }
        }
    }
    println!("{acknowledged} writes were acknowledged in {fruitful} of {rounds} rounds");
    assert!(fruitful >= rounds / 3, "{fruitful} of {rounds}");
}
