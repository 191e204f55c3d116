//! The command `ats`.
//!
//! | module | what it is about |
//! |---|---|
//! | `arguments` | what the command is asked for |
//! | `bench` | the start of the measurements |
//! | `disk` | one module for each command on stores on disk, and what they know of tables |
//! | `outcome` | how a command ends, and what the shell is told |
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
    // With a wrong argument, clap says so and exits with 2.
    let outcome = match Arguments::parse().command {
        Command::Disk { command } => disk::run(&command),
        Command::Try(arguments) => trial::run(&arguments),
        Command::Bench { source, arguments } => bench::run(source, &arguments),
    };
    outcome.report()
}
