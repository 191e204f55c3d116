//! `ats disk compact`: all runs become one.

use super::survey::survey;
use crate::arguments::Output;
use crate::outcome::{Failure, Outcome, failure_in};
use crate::output::{bytes, print_json};
use crate::progress::Bar;
use ats_disk::offline::KeepOperands;
use ats_disk::{DiskStore, Info, Lifetime, Options};
use ats_store::lifetime::unmark_operator;
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(directory: &Path, output: Output) -> Result<Outcome, Failure> {
    let failure = || failure_in(directory.display().to_string());
    let mut options = Options::new().create(false);
    let survey = survey(directory)?;
    if survey.expires() {
        // Nothing is written but what is there.
        options = options.lifetime(Lifetime::Forever);
    }
    let operator = survey.operator().map(|(name, version)| {
        let name = unmark_operator(name).unwrap_or(name);
        (name.to_owned(), version)
    });
    drop(survey);
    if let Some((name, version)) = operator.filter(|(name, _)| !name.is_empty()) {
        // The program has the operator; here, operands stay as they are.
        options = options.operator(Arc::new(KeepOperands::new(&name, version)));
    }
    let store = DiskStore::open(directory, options).map_err(failure())?;
    let before = store.info();
    let bar = Bar::new("compacting", output);
    let compacted = store.compact_with(&mut |progress| bar.show(progress));
    drop(bar);
    compacted.map_err(failure())?;
    let after = store.info();
    store.close().map_err(failure())?;
    if output.json {
        let sizes = |info: &Info| json!({"runs": info.runs.len(), "bytes": info.file_bytes});
        print_json(&json!({"before": sizes(&before), "after": sizes(&after)}))?;
    } else {
        let sizes = |info: &Info| format!("{} runs, {}", info.runs.len(), bytes(info.file_bytes));
        writeln!(
            io::stdout(),
            "before: {}\nafter:  {}",
            sizes(&before),
            sizes(&after)
        )?;
    }
    Ok(Outcome::Right)
}
