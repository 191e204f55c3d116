//! Programs that the compiler refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::disk::Folder;

/// The beginning of each program.
const USES: &str = "\
#![allow(unused)]
use ats::{DiskMap, HashMap, Key, KeyPrefix, Limited, OrderedMap, Value};
pub struct User { name: String }
pub struct Name(String);
";

/// Programs, with the texts of this crate that the compiler prints.
const PROGRAMS: &[(&str, &[&str])] = &[
    (
        "let users: HashMap<u64, User> = HashMap::new();",
        &[
            "`User` is not a value of a map",
            "`#[derive(ats::Value)]`, of the feature `derive`, makes values of structs and enums",
        ],
    ),
    (
        "let ages: HashMap<User, u64> = HashMap::new();",
        &[
            "`User` is not a key of a map",
            "`#[derive(ats::Key)]`, of the feature `derive`, makes keys of structs and enums",
        ],
    ),
    (
        "fn get(words: &HashMap<String, u64>) -> Option<u64> { words.get(5) }",
        &["`{integer}` does not stand for a key of type `String`"],
    ),
    (
        "fn get(words: &HashMap<(String, u32), u64>) -> Option<u64> { words.get((\"a\", 2u64)) }",
        &["`u64` does not stand for a key of type `u32`"],
    ),
    (
        "fn put(words: &HashMap<String, u64>) { words.insert(\"pear\", \"40\"); }",
        &["`str` does not stand for a value of type `u64`"],
    ),
    (
        "fn walk(words: &OrderedMap<String, u64>) { words.range(5..); }",
        &["`{integer}` does not stand for a key of type `String`"],
    ),
    (
        "fn walk(stock: &OrderedMap<(String, u32), u64>) { stock.prefix(\"pear\"); }",
        &[
            "`str` is no prefix of keys of type `(String, u32)`",
            "a prefix of a key of parts is a tuple of its first parts, as `(first,)`",
        ],
    ),
    (
        "#[derive(Key)] struct Reading { station: Name, day: u32 }",
        &["`Name` is not a key of a map"],
    ),
    (
        "#[derive(Value)] struct Weather { clear: bool, by: Name }",
        &["`Name` is not a value of a map"],
    ),
    (
        "#[derive(Key)] union Number { whole: u32, part: f32 }",
        &["a union cannot be a Key: nothing tells which field it has"],
    ),
    (
        "#[derive(Value)] struct Weather { #[ats(skip)] clear: bool }",
        &["fields and variants have no attributes of `ats`"],
    ),
    (
        "#[derive(Value)] #[ats(rename = \"w\")] struct Weather { clear: bool }",
        &["the attribute of a type is `crate = \"path::to::ats\"`"],
    ),
];

/// Returns all programs with their texts, once the compiler has printed these.
pub(super) fn checked() -> Vec<(&'static str, String)> {
    let folder = Folder::new();
    fs::create_dir(folder.path()).expect("a directory");
    let library = library(folder.path());
    thread::scope(|scope| {
        let programs: Vec<_> = PROGRAMS.iter().enumerate().collect();
        let (library, folder) = (&library, folder.path());
        let halves = programs.chunks(PROGRAMS.len().div_ceil(2)).map(|half| {
            let half = half.to_vec();
            scope.spawn(move || {
                for (number, (program, texts)) in half {
                    let printed = compile(library, folder, number, program)
                        .expect_err("the compiler refuses it");
                    for text in *texts {
                        assert!(printed.contains(text), "{program}: {printed}");
                    }
                }
            })
        });
        for half in halves.collect::<Vec<_>>() {
            half.join().expect("all programs are refused");
        }
    });
    PROGRAMS
        .iter()
        .map(|(program, texts)| (*program, texts.join("; ")))
        .collect()
}

/// Returns the library `ats` that this test was built with: the latest one that the compiler takes.
fn library(folder: &Path) -> PathBuf {
    let libraries = dependencies();
    let mut found: Vec<_> = fs::read_dir(&libraries)
        .expect("the directory of this program")
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let path = entry.path();
            let is_ours = path.file_stem()?.to_str()?.starts_with("libats-");
            let is_library = is_ours && path.extension()? == "rlib";
            let time = entry.metadata().ok()?.modified().ok()?;
            is_library.then_some((time, path))
        })
        .collect();
    found.sort();
    let good = "#[derive(Key)] struct Day(u32); fn open(_: DiskMap<Day, u32>) {}";
    found
        .into_iter()
        .rev()
        .map(|(_, path)| path)
        .find(|path| compile(path, folder, PROGRAMS.len(), good).is_ok())
        .expect("the library of this test is there")
}

fn dependencies() -> PathBuf {
    let program = std::env::current_exe().expect("the name of this program");
    program.parent().expect("its directory").into()
}

/// Checks a program. Returns the messages of the compiler if it refuses it.
fn compile(library: &Path, folder: &Path, number: usize, program: &str) -> Result<(), String> {
    let source = folder.join(format!("program_{number}.rs"));
    fs::write(&source, format!("{USES}{}\n", within(program))).expect("the file is written");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata"])
        .arg("--out-dir")
        .arg(folder)
        .arg("-L")
        .arg(format!("dependency={}", dependencies().display()))
        .arg("--extern")
        .arg(format!("ats={}", library.display()))
        .arg(&source)
        .output()
        .expect("the compiler runs");
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Puts statements into a function.
fn within(program: &str) -> String {
    if program.starts_with("let ") {
        format!("fn run() {{ {program} }}")
    } else {
        program.into()
    }
}
