//! `ats bench`.

use crate::{Directory, ats, code, text};

#[test]
fn report_is_made_where_the_source_is() {
    let directory = Directory::new();
    directory.program("make", 0);
    directory.file("source/Makefile", "report:");
    directory.file("source/bench/report/Cargo.toml", "");
    directory.file("source/crates/inner/none", "");
    let (programs, source) = (&directory.0, directory.0.join("source"));
    for folder in [&source, &source.join("crates/inner"), programs] {
        let told = source.to_str().expect("it is text");
        let told = ["--source", told];
        let told = if folder == programs { &told[..] } else { &[] };
        let arguments = [&["bench"], told, &["--", "--quick", "--only", "reads"]].concat();
        let output = ats(&arguments, folder, programs);
        assert_eq!(code(&output), 0, "{output:?}");
        let path = source.display();
        let printed = format!("-C\n{path}\nreport\nARGS=--quick --only reads\n");
        assert_eq!(text(&output.stdout), printed);
    }
}

#[test]
fn missing_source_is_named() {
    let directory = Directory::new();
    directory.program("make", 0);
    let here = &directory.0;
    let output = ats(&["bench", "--source", "nowhere"], here, here);
    assert_eq!(code(&output), 3, "{output:?}");
    let told = "ats: nowhere has no source of the measurements of ats\n";
    assert_eq!(text(&output.stderr), told);
}

#[test]
fn missing_make_is_named() {
    let directory = Directory::new();
    directory.file("Makefile", "report:");
    directory.file("bench/report/Cargo.toml", "");
    let here = &directory.0;
    let output = ats(&["bench"], here, here);
    assert_eq!(code(&output), 3, "{output:?}");
    assert_eq!(
        text(&output.stderr),
        "ats: ats bench needs make, which is not in PATH\n"
    );
}
