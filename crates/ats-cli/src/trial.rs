//! Copies of compiled applications that use `ats`, made by Erlang.

use crate::arguments::TryArguments;
use crate::outcome::Outcome;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that Erlang runs. Without the module it ends as this command does when something
/// could not be done.
const PROGRAM: &str = "\
case code:ensure_loaded(ats_try) of \
    {module, _} -> ats_try:main(init:get_plain_arguments()); \
    {error, _} -> \
        io:put_chars(standard_error, [\"ats: erl does not find the compiled application ats;\", \
                                      \" see --ats, and ERL_LIBS\", 10]), \
        halt(3) \
end.";

/// Hands the arguments on to `ats_try`.
pub(crate) fn run(arguments: &TryArguments) -> Outcome {
    let mut erl = Command::new("erl");
    // A failure here needs no crash dump.
    erl.env("ERL_CRASH_DUMP_SECONDS", "0").arg("-noinput");
    let ats = arguments.ats.as_ref().map(|folder| folder.join("ebin"));
    for ebin in ats
        .or_else(ebin_around_command)
        .iter()
        .chain(&arguments.path)
    {
        erl.arg("-pa").arg(ebin);
    }
    erl.args(["-eval", PROGRAM, "-extra"]);
    for module in &arguments.except {
        erl.arg("--except").arg(module);
    }
    erl.args(&arguments.applications);
    Outcome::of_program("erl", "ats try", erl.status())
}

/// Returns the modules of the application that this command was installed with, or built with.
fn ebin_around_command() -> Option<PathBuf> {
    let command = std::env::current_exe().ok()?;
    let builds = ["ebin", "_build/default/lib/ats/ebin"].map(Path::new);
    let folders = command.ancestors().skip(1);
    let mut found = folders.flat_map(|folder| builds.map(|build| folder.join(build)));
    found.find(|ebin| ebin.join("ats_try.beam").is_file())
}
