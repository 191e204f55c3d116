//! Tools of several tests.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own, which is removed in the end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ats-cli-test-{}-{number}", std::process::id());
        let directory = Directory(std::env::temp_dir().join(name));
        fs::create_dir(&directory.0).expect("a new directory");
        directory
    }

    /// Returns the path of something in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _missing = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn ats(arguments: &[&str], paths: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ats"));
    command.args(arguments).args(paths);
    command.stdin(Stdio::null()).output().expect("it ran")
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is text")
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

/// Spoils a byte in the first block of the oldest run. Its name.
pub(crate) fn spoil(path: &Path) -> String {
    let name = "run-00000001";
    let file = path.join(name);
    let mut bytes = fs::read(&file).expect("it is there");
    bytes[5] ^= 1;
    fs::write(&file, bytes).expect("written");
    name.to_owned()
}

/// Returns the names and contents of all files.
pub(crate) fn contents(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(path).expect("it is there");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let mut files: Vec<_> = paths
        .map(|path| (path.clone(), fs::read(&path).expect("readable")))
        .collect();
    files.sort();
    files
}
