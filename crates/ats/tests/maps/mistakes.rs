//! The words about mistakes that are made often, as a page of the documentation.
//!
//! `docs/use/mistakes-in-rust.md` is written by these tests if `ATS_WRITE_DOCS` is set. If it is
//! not, each program must fail as the page says.

mod calls;
mod programs;

use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
# What errors in Rust say

Programs that the compiler refuses, and calls that fail, with the words about them.

This page is written by `make functions`, and `make test` fails if it is out of date.
";

#[test]
fn page() {
    let mut page = String::from(HEAD);
    page += "\n## Programs that do not compile\n\n";
    page += "The compiler says more; these lines are ours. `User` and `Name` are structs.\n\n";
    page += "| program | text |\n|---|---|\n";
    for (program, text) in programs::checked() {
        line(&mut page, program, &text);
    }
    page += "\n## Calls that fail\n\n";
    page += "`folder` is a new directory. A field of the struct `Hidden` has the attribute\n\
             `#[serde(skip_serializing)]`. The functions that `transact` calls change `words` \
             beside their\nview. A text of `panic` is that of a panic, all others are those of \
             errors.\n\n";
    page += "| calls | text |\n|---|---|\n";
    for (call, text) in calls::outcomes() {
        line(&mut page, &call, &text);
    }
    assert!(!page.contains(calls::SUCCESS), "{page}");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/use/mistakes-in-rust.md");
    if std::env::var_os("ATS_WRITE_DOCS").is_some() {
        std::fs::write(file, page).expect("the page is written");
    } else {
        let written = std::fs::read_to_string(file).expect("the page is there");
        assert_eq!(page, written);
    }
}

/// Appends a line of a table. Lines of code stand behind each other there.
fn line(page: &mut String, code: &str, text: &str) {
    let code: Vec<_> = code.lines().map(str::trim).collect();
    let code = code.join(" ").replace('|', "\\|");
    writeln!(page, "| `{code}` | {} |", text.replace('`', "'")).expect("a string takes all");
}
