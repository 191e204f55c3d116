//! A run that is killed goes on with the experiment in which it was.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Stands for the Makefile: notes each measurement, and stays in the one of hot keys until it may
/// end.
const MAKE: &str = r#"#!/bin/sh
for word; do case $word in ARGS=*) arguments=${word#ARGS=} ;; esac; done
[ -n "$arguments" ] || exit 0
folder=${arguments##*--results }
echo "${folder##*/}" >>"$NOTES"
stay='while :; do echo >"$NOTES.alive"; sleep 0.1; done'
case $folder in *hot) [ -e "$NOTES.go" ] || sh -c "$stay" stay --results "$folder" || exit 1 ;; esac
echo '{"kind":"machine","erlang":"25"}' >"$folder/figures.jsonl"
"#;

fn run(folder: &Path, notes: &Path) -> Child {
    let path = std::env::var("PATH").expect("a path");
    Command::new(env!("CARGO_BIN_EXE_ats-bench-report"))
        .args(["--quick", "--only", "integers-", "--folder"])
        .arg(folder.join("report"))
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("NOTES", notes)
        .stdout(Stdio::null())
        .spawn()
        .expect("the report runs")
}

fn noted(notes: &PathBuf) -> Vec<String> {
    let text = fs::read_to_string(notes).unwrap_or_default();
    text.lines().map(str::to_string).collect()
}

#[test]
fn a_run_that_is_killed_goes_on() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interruption");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    let make = folder.join("make");
    fs::write(&make, MAKE).expect("a program");
    fs::set_permissions(&make, fs::Permissions::from_mode(0o755)).expect("a program");
    let notes = folder.join("notes");

    let mut first = run(&folder, &notes);
    let deadline = Instant::now() + Duration::from_secs(60);
    while noted(&notes).len() < 2 {
        assert!(Instant::now() < deadline, "{:?}", noted(&notes));
        sleep(Duration::from_millis(10));
    }
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    assert_eq!(noted(&notes), ["integers-wide", "integers-hot"]);

    fs::write(folder.join("notes.go"), "").expect("a file");
    assert!(run(&folder, &notes).wait().expect("it ends").success());
    let all = ["integers-wide", "integers-hot", "integers-hot"];
    assert_eq!(noted(&notes), all);
    assert!(folder.join("report/report.html").exists());
    // The measurement that the killed run had begun was ended.
    let alive = folder.join("notes.alive");
    fs::remove_file(&alive).expect("it was alive");
    sleep(Duration::from_secs(1));
    assert!(!alive.exists());

    assert!(run(&folder, &notes).wait().expect("it ends").success());
    assert_eq!(noted(&notes), all);
}
