//! Both programs of a pair print the same, and ours is not longer. `make check` sees that all of
//! them are formatted.

use std::process::Command;

/// Returns the output of a program.
fn output(program: &str) -> String {
    let output = Command::new(program).output().expect("it runs");
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

/// Returns the lines of a program that are no comments, and not empty.
fn lines(source: &str) -> usize {
    let lines = source.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

fn compare(others: (&str, &str), ours: (&str, &str)) {
    let printed = output(ours.0);
    assert!(printed.lines().count() > 3, "{printed}");
    assert_eq!(printed, output(others.0));
    let (len, others_len) = (lines(ours.1), lines(others.1));
    println!("{len} lines, and {others_len}");
    assert!(len <= others_len, "{len} lines, and {others_len}");
}

#[test]
fn hits_are_counted_as_with_scc() {
    compare(
        (
            env!("CARGO_BIN_EXE_hits_scc"),
            include_str!("../src/bin/hits_scc.rs"),
        ),
        (
            env!("CARGO_BIN_EXE_hits_ats"),
            include_str!("../src/bin/hits_ats.rs"),
        ),
    );
}

#[test]
fn readings_are_kept_as_with_fjall() {
    compare(
        (
            env!("CARGO_BIN_EXE_readings_fjall"),
            include_str!("../src/bin/readings_fjall.rs"),
        ),
        (
            env!("CARGO_BIN_EXE_readings_ats"),
            include_str!("../src/bin/readings_ats.rs"),
        ),
    );
}
