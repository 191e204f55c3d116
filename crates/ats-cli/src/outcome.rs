//! Outcomes of commands.

use ats_disk::Error;
use std::io::{self, Write};
use std::process::{ExitCode, ExitStatus};

/// The outcome of a command whose arguments were right.
pub(crate) enum Outcome {
    Right,
    /// The command has named faults of the store.
    FaultsFound,
    /// The command failed; the text names the failed step, and the reason.
    Failed(String),
    /// A started program has failed, and has named the step.
    OtherFailed,
}

/// The reason why a command did not come to its end.
pub(crate) enum Failure {
    /// The engine failed in this step.
    Disk(String, Error),
    /// The output could not be written.
    Output(io::Error),
    /// The arguments contradict each other.
    Refused(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// Names the failed step.
pub(crate) fn failure_in(what: impl Into<String>) -> impl FnOnce(Error) -> Failure {
    let what = what.into();
    move |error| Failure::Disk(what, error)
}

impl Outcome {
    /// Returns the outcome of a command that has started another program. `what` names the command.
    pub(crate) fn of_program(program: &str, what: &str, ended: io::Result<ExitStatus>) -> Self {
        match ended {
            Ok(status) if status.success() => Outcome::Right,
            Ok(_) => Outcome::OtherFailed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Outcome::Failed(format!("{what} needs {program}, which is not in PATH"))
            }
            Err(error) => Outcome::Failed(format!("starting {program}: {error}")),
        }
    }

    /// Makes the outcome of a command that has found faults, or none.
    pub(crate) fn of_faults(has_faults: bool) -> Self {
        if has_faults {
            Outcome::FaultsFound
        } else {
            Outcome::Right
        }
    }

    /// Prints the reason of a failure. Returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Outcome::Right => ExitCode::SUCCESS,
            Outcome::FaultsFound => ExitCode::from(1),
            Outcome::OtherFailed => ExitCode::from(3),
            Outcome::Failed(why) => {
                // A closed standard error leaves only the exit code.
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
            // The reader has read enough, as `head` does.
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
