//! The command `ats`.
//!
//! | module | subject |
//! |---|---|
//! | `arguments` | the arguments of the command |
//! | `bench` | the start of the measurements |
//! | `disk` | the commands on stores on disk, one module for each, and descriptions of tables |
//! | `outcome` | the end of a command, and its exit code |
//! | `output` | results as text or JSON; where a reader has left, the command ends |
//! | `progress` | bars, on a terminal |
//! | `text` | keys and values as text |
//! | `trial` | copies of applications that use `ats`, made by Erlang |

mod arguments;
mod bench;
mod disk;
mod outcome;
mod output;
mod progress;
mod text;
mod trial;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Given a wrong argument, clap prints the error and exits with 2.
    let outcome = match Arguments::parse().command {
        Command::Disk { command } => disk::run(&command),
        Command::Try(arguments) => trial::run(&arguments),
        Command::Bench { source, arguments } => bench::run(source, &arguments),
    };
    outcome.report()
}
