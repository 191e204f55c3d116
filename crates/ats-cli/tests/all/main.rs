//! Commands that start other programs: the arguments that they hand over, and their exit codes.

mod bench;
mod trial;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own, which is removed in the end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ats-cli-all-{}-{number}", std::process::id());
        let directory = Directory(std::env::temp_dir().join(name));
        fs::create_dir(&directory.0).expect("a new directory");
        directory
    }

    /// Makes a file, and the folders above it. Returns its path.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("it is in the directory")).expect("made");
        fs::write(&path, text).expect("written");
        path
    }

    /// Makes a program that prints its arguments, a line each, and ends with a status.
    fn program(&self, name: &str, status: u8) {
        let text = format!("#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit {status}\n");
        let path = self.file(name, &text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _missing = fs::remove_dir_all(&self.0);
    }
}

/// Runs the command in a folder, where programs are found in another one.
fn ats(arguments: &[&str], folder: &Path, programs: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ats"));
    command
        .args(arguments)
        .current_dir(folder)
        .env("PATH", programs);
    command.stdin(Stdio::null()).output().expect("it ran")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is text")
}
