//! `ats try`.

use crate::{Directory, ats, code, text};
use std::env;
use std::path::Path;
use std::process::Command;

#[test]
fn arguments_are_handed_on() {
    let directory = Directory::new();
    directory.program("erl", 0);
    let here = &directory.0;
    let arguments = [
        "try",
        "--except",
        "mine",
        "--path",
        "libs/a/ebin",
        "--ats",
        "/lib/ats",
        "a",
    ];
    let output = ats(&[&arguments[..], &["--", "-b", "out"]].concat(), here, here);
    assert_eq!(code(&output), 0, "{output:?}");
    let printed = text(&output.stdout);
    let paths = "-noinput\n-pa\n/lib/ats/ebin\n-pa\nlibs/a/ebin\n-eval\n";
    assert!(printed.starts_with(paths), "{printed}");
    let others = "\n-extra\n--except\nmine\na\n-b\nout\n";
    assert!(printed.ends_with(others), "{printed}");
}

#[test]
fn failure_of_erlang_is_one_of_the_command() {
    let directory = Directory::new();
    directory.program("erl", 1);
    let here = &directory.0;
    let output = ats(&["try", "a", "out"], here, here);
    assert_eq!(code(&output), 3, "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn missing_erlang_is_named() {
    let directory = Directory::new();
    let here = &directory.0;
    let output = ats(&["try", "a", "out"], here, here);
    assert_eq!(code(&output), 3, "{output:?}");
    assert_eq!(
        text(&output.stderr),
        "ats: ats try needs erl, which is not in PATH\n"
    );
}

#[test]
fn application_and_folder_are_needed() {
    let directory = Directory::new();
    let here = &directory.0;
    for arguments in [&["try"][..], &["try", "a"]] {
        assert_eq!(code(&ats(arguments, here, here)), 2, "{arguments:?}");
    }
}

/// Test with a real Erlang, and modules that are compiled here.
#[test]
fn copied_application_calls_ats() {
    let directory = Directory::new();
    let here = &directory.0;
    let module = "-module(mine). -export([kept/0]). kept() -> ets:info(nobodys).";
    let source = directory.file("mine-1/src/mine.erl", module);
    directory.file(
        "mine-1/ebin/mine.app",
        "{application, mine, [{vsn, \"1\"}]}.",
    );
    directory.file("ats/ebin/none", "");
    let compile = |out: &Path, sources: &[&Path]| {
        let compiled = Command::new("erlc")
            .arg("-o")
            .arg(out)
            .args(sources)
            .output();
        let compiled = compiled.expect("erlc, which this project needs");
        assert!(compiled.status.success(), "{compiled:?}");
    };
    compile(&here.join("mine-1/ebin"), &[&source]);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let modules: Vec<_> = std::fs::read_dir(repository.join("src/try"))
        .expect("the modules of the command")
        .map(|entry| entry.expect("a module").path())
        .collect();
    let modules: Vec<_> = modules.iter().map(|path| path.as_path()).collect();
    compile(&here.join("ats/ebin"), &modules);
    // The module is asked for its own functions.
    let known = directory.file(
        "ats.erl",
        "-module(ats). -export([info/1]). info(_) -> none.",
    );
    compile(&here.join("ats/ebin"), &[&known]);

    let path = env::var_os("PATH").expect("one");
    let run = |arguments: &[&str]| ats(arguments, here, Path::new(&path));
    let output = run(&["try", "--ats", "ats", "mine-1", "out"]);
    assert_eq!(code(&output), 0, "{output:?}");
    assert!(text(&output.stdout).contains("mine"), "{output:?}");
    let beam = std::fs::read(here.join("out/mine-1/ebin/mine.beam")).expect("a copy");
    let original = std::fs::read(here.join("mine-1/ebin/mine.beam")).expect("there");
    assert_ne!(beam, original);

    // The folder exists already, and the text is that of Erlang.
    let output = run(&["try", "--ats", "ats", "mine-1", "out"]);
    assert_eq!(code(&output), 3, "{output:?}");
    assert!(
        text(&output.stderr).contains("is there already"),
        "{output:?}"
    );

    // A module that stays as it is.
    let output = run(&["try", "--ats", "ats", "--except", "mine", "mine-1", "kept"]);
    assert_eq!(code(&output), 0, "{output:?}");
    let beam = std::fs::read(here.join("kept/mine-1/ebin/mine.beam")).expect("a copy");
    assert_eq!(beam, original);

    let output = run(&["try", "--ats", "nowhere", "mine-1", "other"]);
    assert_eq!(code(&output), 3, "{output:?}");
    assert!(text(&output.stderr).contains("does not find"), "{output:?}");
}
