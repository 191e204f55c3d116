//! How a command ends.

use ats_disk::Error;
use std::io::{self, Write};
use std::process::ExitCode;

/// How a command ends, other than with wrong arguments.
pub(crate) enum Outcome {
    Right,
    /// They were named.
    FaultsFound,
    /// What, and why.
    Failed(String),
}

/// Why a command did not come to its end.
pub(crate) enum Failure {
    /// By the engine, in doing this.
    Disk(String, Error),
    /// What is printed could not be written.
    Output(io::Error),
    /// What is asked for makes no sense.
    Refused(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// Says what could not be done.
pub(crate) fn failed(what: impl Into<String>) -> impl FnOnce(Error) -> Failure {
    let what = what.into();
    move |error| Failure::Disk(what, error)
}

impl Outcome {
    /// Whether there were faults.
    pub(crate) fn of_faults(has_faults: bool) -> Self {
        match has_faults {
            true => Outcome::FaultsFound,
            false => Outcome::Right,
        }
    }

    /// Prints the reason of a failure. What the shell is told.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Outcome::Right => ExitCode::SUCCESS,
            Outcome::FaultsFound => ExitCode::from(1),
            Outcome::Failed(why) => {
                // Where standard error is closed, the exit code says it.
                let _ = writeln!(io::stderr(), "ats: {why}");
                ExitCode::from(3)
            }
        }
    }
}

impl From<Result<Outcome, Failure>> for Outcome {
    fn from(result: Result<Outcome, Failure>) -> Self {
        match result {
            Ok(outcome) => outcome,
            // The reader has what it wants, as `head` does.
            Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Outcome::Right
            }
            Err(Failure::Output(error)) => Outcome::Failed(format!("writing the output: {error}")),
            Err(Failure::Refused(why)) => Outcome::Failed(why),
            Err(Failure::Disk(what, error @ Error::Corrupt(_))) => {
                let _ = writeln!(io::stderr(), "ats: {what}: {error}");
                Outcome::FaultsFound
            }
            Err(Failure::Disk(what, error)) => Outcome::Failed(format!("{what}: {error}")),
        }
    }
}
