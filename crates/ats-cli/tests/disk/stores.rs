//! Stores of programs.

use crate::common::{Directory, ats, code, contents, json, spoil, text};
use ats_disk::{DiskStore, Options};
use ats_store::{MergeOperator, Merged};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Puts the later value behind the earlier one.
struct Append;

impl MergeOperator for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn version(&self) -> u32 {
        3
    }

    fn merge(&self, _: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, ats_store::Error> {
        Ok(Merged::New([earlier, later].concat()))
    }
}

fn options() -> Options {
    Options::new()
        .operator(Arc::new(Append))
        .block_bytes(100)
        .background(false)
}

fn open(path: &Path) -> DiskStore {
    DiskStore::open(path, options()).expect("opened")
}

/// A store with two runs of a hundred records each, of which the newer one appends to every tenth.
fn make(path: &Path) {
    let store = open(path);
    for number in 0..100_u8 {
        store.put(&[b'k', number], &[number; 8]).expect("written");
    }
    store.flush().expect("flushed");
    for number in (0..100_u8).step_by(10) {
        store.merge(&[b'k', number], b"more").expect("written");
    }
    store.put(b"last", b"\tvalue\n").expect("written");
    store.close().expect("closed");
}

#[test]
fn a_sound_store_is_shown() {
    let directory = Directory::new();
    let path = directory.path("store");
    make(&path);
    let before = contents(&path);

    let stat = ats(&["disk", "stat"], &[&path]);
    assert_eq!(code(&stat), 0);
    let shown = text(&stat.stdout);
    assert!(shown.contains("append, version 3"), "{shown}");
    assert!(
        shown.contains("11 entries (10 operands, 0 deletes)"),
        "{shown}"
    );
    let stat = json(&ats(&["disk", "stat", "--json"], &[&path]));
    assert_eq!(stat["operator"]["name"], "append");
    assert_eq!(stat["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!(stat["runs"][1]["files"][0]["entries"], 100);
    assert_eq!(stat["runs"][1]["files"][0]["first_key"], "k\\x00");
    assert_eq!(stat["faults"].as_array().map(Vec::len), Some(0));

    let verify = ats(&["disk", "verify"], &[&path]);
    assert_eq!(code(&verify), 0);
    assert!(text(&verify.stdout).contains("no faults"));
    let verify = json(&ats(&["disk", "verify", "--json"], &[&path]));
    assert_eq!(
        (&verify["files"], &verify["entries"]),
        (&2.into(), &111.into())
    );

    let dump = ats(&["disk", "dump"], &[&path]);
    assert_eq!(code(&dump), 0);
    assert!(dump.stderr.is_empty());
    let lines = text(&dump.stdout);
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[0], format!("k\\x00\t{}\t+more", "\\x00".repeat(8)));
    assert_eq!(lines[1], format!("k\\x01\t{}", "\\x01".repeat(8)));
    assert_eq!(lines[100], "last\t\\tvalue\\n");
    let terms = ats(&["disk", "dump", "--format", "term"], &[&path]);
    assert_eq!(code(&terms), 0);
    let commented: Vec<_> = lines.iter().map(|line| format!("% {line}")).collect();
    assert!(text(&terms.stdout).lines().eq(commented));
    let dump = ats(
        &["disk", "dump", "--format", "hex", "--limit", "1", "--json"],
        &[&path],
    );
    let record = json(&dump);
    assert_eq!(record["key"], "6b00");
    assert_eq!(record["value"], "00".repeat(8));
    assert_eq!(record["operands"][0], "6d6f7265");
    assert!(contents(&path) == before);
}

#[test]
fn runs_become_one_and_operands_stay() {
    let directory = Directory::new();
    let path = directory.path("store");
    make(&path);
    let dump = ats(&["disk", "dump"], &[&path]).stdout;
    let compact = ats(&["disk", "compact", "--json"], &[&path]);
    assert_eq!(code(&compact), 0);
    let sizes = json(&compact);
    assert_eq!(
        (&sizes["before"]["runs"], &sizes["after"]["runs"]),
        (&2.into(), &1.into())
    );
    assert!(ats(&["disk", "dump"], &[&path]).stdout == dump);
    let store = open(&path);
    let merged = [&[10; 8][..], b"more"].concat();
    assert_eq!(store.get(&[b'k', 10]), Ok(Some(merged)));
}

#[test]
fn damage_is_named_and_the_rest_is_saved() {
    let directory = Directory::new();
    let (path, target) = (directory.path("store"), directory.path("saved"));
    make(&path);
    let name = spoil(&path);
    let before = contents(&path);

    let verify = ats(&["disk", "verify"], &[&path]);
    assert_eq!(code(&verify), 1);
    let shown = text(&verify.stdout);
    let fault = format!("{name} at offset 0: has a wrong checksum; lost of keys from \"k\\x00\" ");
    assert!(shown.contains(&fault), "{shown}");
    let verify = ats(&["disk", "verify", "--json"], &[&path]);
    assert_eq!(code(&verify), 1);
    let fault = json(&verify)["faults"][0].clone();
    assert_eq!(
        (&fault["file"], &fault["offset"]),
        (&name.into(), &0.into())
    );
    assert_eq!(fault["lost_keys"]["low"]["key"], "k\\x00");

    let dump = ats(&["disk", "dump"], &[&path]);
    assert_eq!(code(&dump), 1);
    assert!(text(&dump.stderr).contains("wrong checksum"));
    let left = text(&dump.stdout).lines().count();
    assert!((80..100).contains(&left), "{left}");

    let within = path.join("saved");
    let refused = ats(&["disk", "salvage"], &[&path, &within]);
    assert_eq!(code(&refused), 3);
    assert!(text(&refused.stderr).contains("within"));
    let saved = ats(&["disk", "salvage", "--json"], &[&path, &target]);
    assert_eq!(code(&saved), 1);
    let saved = json(&saved);
    assert_eq!(saved["records"], left);
    // Operands that were appended to a lost value are no value.
    assert_eq!(saved["keys_without_newer_operands"], 1);
    let store = open(&target);
    assert_eq!(store.get(&[b'k', 99]), Ok(Some(vec![99; 8])));
    assert_eq!(store.get(&[b'k', 0]), Ok(None));
    store.close().expect("closed");
    assert_eq!(code(&ats(&["disk", "verify"], &[&target])), 0);
    // Another store is not overwritten.
    let again = ats(&["disk", "salvage"], &[&path, &target]);
    assert_eq!(code(&again), 3);
    assert!(text(&again.stderr).contains("has files"));
    assert!(contents(&path) == before);
}

#[test]
fn a_store_without_a_manifest_is_saved() {
    let directory = Directory::new();
    let (path, target) = (directory.path("store"), directory.path("saved"));
    make(&path);
    let sound = ats(&["disk", "dump"], &[&path]).stdout;
    fs::remove_file(path.join("manifest")).expect("it was there");
    for command in ["stat", "verify", "dump"] {
        let output = ats(&["disk", command], &[&path]);
        assert_eq!(code(&output), 1, "{command}");
    }
    assert_eq!(code(&ats(&["disk", "compact"], &[&path])), 1);
    let saved = ats(&["disk", "salvage"], &[&path, &target]);
    assert_eq!(code(&saved), 1);
    assert!(text(&saved.stdout).starts_with("101 records were saved"));
    assert!(ats(&["disk", "dump"], &[&target]).stdout == sound);
}

/// A process was killed before anything was in a run, and the manifest is lost: nothing tells the
/// operator.
#[test]
fn the_operator_can_be_told() {
    let directory = Directory::new();
    let (path, target) = (directory.path("store"), directory.path("saved"));
    let store = open(&path);
    store.put(b"key", b"1").expect("written");
    store.merge(b"key", b"2").expect("written");
    let snapshot = store.snapshot();
    store.merge(b"other", b"3").expect("written");
    drop((snapshot, store));
    fs::remove_file(path.join("manifest")).expect("it was there");
    let saved = ats(&["disk", "salvage"], &[&path, &target]);
    assert_eq!(code(&saved), 3);
    assert!(text(&saved.stderr).contains("no merge operator"));
    let target = directory.path("saved again");
    let wrong = ats(
        &["disk", "salvage", "--operator", "append"],
        &[&path, &target],
    );
    assert_eq!(code(&wrong), 2);
    let saved = ats(
        &["disk", "salvage", "--operator", "append:3"],
        &[&path, &target],
    );
    assert_eq!(code(&saved), 1);
    let store = open(&target);
    assert_eq!(store.get(b"key"), Ok(Some(b"12".to_vec())));
    assert_eq!(store.get(b"other"), Ok(Some(b"3".to_vec())));
}

#[test]
fn failures_have_exit_codes() {
    let directory = Directory::new();
    let path = directory.path("store");
    for arguments in [
        &["disk", "stat"][..],
        &["disk", "shuffle"],
        &[],
        &["disk"],
        &["disk", "dump", "--format", "octal"],
    ] {
        assert_eq!(code(&ats(arguments, &[])), 2, "{arguments:?}");
    }
    assert_eq!(code(&ats(&["--help"], &[])), 0);
    assert!(text(&ats(&["disk", "verify", "--help"], &[]).stdout).contains("1  faults were found"));
    for command in ["stat", "verify", "dump", "compact"] {
        let output = ats(&["disk", command], &[&path]);
        assert_eq!(code(&output), 3, "{command}");
        assert!(
            text(&output.stderr).contains("there is no store"),
            "{command}"
        );
        assert!(!path.exists());
    }
}

#[test]
fn a_store_that_is_open_is_shown_as_it_is_now() {
    let directory = Directory::new();
    let path = directory.path("store");
    make(&path);
    let store = open(&path);
    store.put(b"now", b"here").expect("written");
    store.delete(b"last").expect("written");
    let before = contents(&path);
    let stat = ats(&["disk", "stat"], &[&path]);
    assert_eq!(code(&stat), 0);
    assert!(text(&stat.stdout).starts_with("live: "));
    let stat = json(&ats(&["disk", "stat", "--json"], &[&path]));
    assert_eq!(stat["is_live"], true);
    let verify = ats(&["disk", "verify", "--no-table"], &[&path]);
    assert_eq!(code(&verify), 0);
    let shown = text(&verify.stdout);
    assert!(
        shown.starts_with("live: ") && shown.contains("2 changes in journals"),
        "{shown}"
    );
    let dump = ats(&["disk", "dump"], &[&path]);
    assert_eq!(code(&dump), 0);
    assert!(text(&dump.stderr).starts_with("live: "));
    let shown = text(&dump.stdout);
    assert!(
        shown.contains("now\there\n") && !shown.contains("last\t"),
        "{shown}"
    );
    assert_eq!(contents(&path), before);
    let new = directory.path("new");
    let refused: [(&str, &[&Path]); 2] = [("compact", &[&path]), ("salvage", &[&path, &new])];
    for (command, paths) in refused {
        let output = ats(&["disk", command], paths);
        assert_eq!(code(&output), 3, "{command}");
        assert!(text(&output.stderr).contains("in use"), "{command}");
    }
    store.close().expect("closed");
    let closed = json(&ats(&["disk", "stat", "--json"], &[&path]));
    assert_eq!(closed["is_live"], false);
}

/// The reader leaves early, like `head`.
#[test]
fn a_reader_may_leave() {
    let directory = Directory::new();
    let path = directory.path("store");
    let store = open(&path);
    for number in 0..20_000_u32 {
        store.put(&number.to_be_bytes(), &[7; 50]).expect("written");
    }
    store.close().expect("closed");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ats"));
    command.args(["disk", "dump"]).arg(&path);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("started");
    let mut out = process.stdout.take().expect("piped");
    out.read_exact(&mut [0; 10]).expect("it prints");
    drop(out);
    let output = process.wait_with_output().expect("it ends");
    assert_eq!(text(&output.stderr), "");
    assert_eq!(code(&output), 0);
}
