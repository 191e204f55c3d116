//! The command `ats`.
//!
//! | module | what it is about |
//! |---|---|
//! | `arguments` | what the command is asked for |
//! | `disk` | one module for each command on stores on disk, and what they know of tables |
//! | `outcome` | how a command ends, and what the shell is told |
//! | `output` | results as text or JSON; where a reader has left, the command ends |
//! | `progress` | bars, on a terminal |
//! | `text` | keys and values as text |

mod arguments;
mod disk;
mod outcome;
mod output;
mod progress;
mod text;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // With a wrong argument, clap says so and exits with 2.
    let Command::Disk { command } = Arguments::parse().command;
    disk::run(&command).report()
}
