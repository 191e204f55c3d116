//! A child process: it opens a store of one engine, measures a group of rows on it, and prints the
//! figures.
//!
//! Each group has a process of its own, so that memory, caches and figures of `/proc` are its own.

use crate::data::{self, MISSING};
use crate::engine::{self, Engine, Merging, Outcome, Profile};
use crate::options::Sizes;
use crate::row::{Group, Row};
use crate::system;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The first argument of a child process.
pub const CHILD: &str = "child";

/// The line that a child prints when it may be killed.
pub const READY: &str = "ready";

/// The changes of the store that was loaded. The parent keeps them for the next child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Records are those with numbers below this.
    pub records: u64,
    /// Number below which records have version 1; the others have version 0.
    pub overwritten: u64,
    /// Number below which records are removed.
    pub removed: u64,
}

impl State {
    /// Returns the version of the value of a record; `None` if there is none.
    pub fn version(&self, number: u64) -> Option<u64> {
        let exists = (self.removed..self.records).contains(&number);
        exists.then_some(u64::from(number < self.overwritten))
    }

    /// Logical bytes of all records.
    pub fn bytes(&self) -> u64 {
        (self.records - self.removed) * data::RECORD_BYTES
    }
}

/// The task of a child process.
#[derive(Clone)]
pub struct Task {
    /// The rows.
    pub group: Group,
    /// `true` to open only the store that a killed child has left.
    pub recover: bool,
    /// The engine.
    pub profile: &'static Profile,
    /// The directory of its store.
    pub folder: PathBuf,
    /// The amount of work.
    pub sizes: Sizes,
    /// The changes of the store.
    pub state: State,
}

impl Task {
    /// Returns the task as a command line.
    pub fn arguments(&self) -> Vec<String> {
        let Task { sizes, state, .. } = self;
        let words = [
            CHILD.to_string(),
            self.group.name().to_string(),
            self.recover.to_string(),
            self.profile.name.to_string(),
            self.folder.display().to_string(),
            sizes.records.to_string(),
            sizes.quick.to_string(),
            sizes.limit_seconds.to_string(),
            sizes.osmos_seconds.to_string(),
            state.records.to_string(),
            state.overwritten.to_string(),
            state.removed.to_string(),
        ];
        words.to_vec()
    }

    /// Returns the task of a command line, without the name of the program and the first word.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Outcome<Self> {
        fn next<T: FromStr>(words: &mut impl Iterator<Item = String>) -> Outcome<T> {
            let parsed = words.next().and_then(|word| word.parse().ok());
            parsed.ok_or_else(|| "not the command line of a child".into())
        }
        let words = &mut words.into_iter();
        let name: String = next(words)?;
        let group = Group::ALL.into_iter().find(|group| group.name() == name);
        let recover = next(words)?;
        let engine: String = next(words)?;
        Ok(Task {
            group: group.ok_or("an unknown group")?,
            recover,
            profile: engine::find(&engine).ok_or("an unknown engine")?,
            folder: next(words)?,
            sizes: Sizes {
                records: next(words)?,
                quick: next(words)?,
                limit_seconds: next(words)?,
                osmos_seconds: next(words)?,
            },
            state: State {
                records: next(words)?,
                overwritten: next(words)?,
                removed: next(words)?,
            },
        })
    }

    /// Opens the store.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn open(&self, merging: Merging) -> Outcome<Box<dyn Engine>> {
        (self.profile.open)(&self.folder, merging)
    }

    /// Returns the smaller number in a short run.
    pub fn short<T>(&self, quickly: T, fully: T) -> T {
        if self.sizes.quick { quickly } else { fully }
    }
}

/// Tells the parent a figure.
pub fn report(row: &Row, figure: f64) {
    say(&format!("figure\t{}\t{figure}", row.name));
}

/// Tells the parent how the store was changed.
pub fn report_state(state: &State) {
    say(&format!(
        "state\t{}\t{}\t{}",
        state.records, state.overwritten, state.removed
    ));
}

/// Prints a line at once.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Without a parent there is nothing to say, and nothing more to do.
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

/// The meaning of a line of a child.
#[derive(Debug, PartialEq)]
pub enum Said {
    /// A figure of a row.
    Figure(String, f64),
    /// The changes of the store.
    State(State),
    /// The child may be killed.
    Ready,
}

impl Said {
    /// Returns the meaning of a line; `None` if it has none.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split('\t');
        match words.next()? {
            "figure" => Some(Said::Figure(
                words.next()?.to_string(),
                words.next()?.parse().ok()?,
            )),
            "state" => {
                let mut number = || words.next()?.parse().ok();
                Some(Said::State(State {
                    records: number()?,
                    overwritten: number()?,
                    removed: number()?,
                }))
            }
            READY => Some(Said::Ready),
            _ => None,
        }
    }
}

/// Memory and bytes written since the process had made its own data.
pub struct Usage {
    resident: u64,
    written: u64,
}

impl Usage {
    /// Begins to count.
    ///
    /// # Errors
    /// Those of the system.
    pub fn begin() -> Outcome<Self> {
        system::forget_peak()?;
        Ok(Usage {
            resident: system::memory()?.resident,
            written: system::bytes_written()?,
        })
    }

    /// MiB of memory now, and at most.
    ///
    /// # Errors
    /// Those of the system.
    pub fn memory(&self) -> Outcome<(f64, f64)> {
        let memory = system::memory()?;
        Ok((
            mib(memory.resident.saturating_sub(self.resident)),
            mib(memory.peak.saturating_sub(self.resident)),
        ))
    }

    /// Bytes that were written.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bytes_written(&self) -> Outcome<u64> {
        Ok(system::bytes_written()? - self.written)
    }
}

/// Bytes in MiB.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Looks at every record of a store: that it is there, once, in order, with its value, and no
/// other.
///
/// # Errors
/// If it is not so.
pub fn verify(engine: &dyn Engine, state: &State) -> Outcome<()> {
    let (mut count, mut before, mut wrong) = (0, None, None);
    engine.scan(&[], usize::MAX, &mut |key, value| {
        count += 1;
        let prefix = data::prefix_of(key);
        let version = prefix.and_then(|prefix| state.version(data::number_of(prefix)));
        let right = prefix > before
            && prefix
                .zip(version)
                .is_some_and(|(prefix, version)| *value == data::value(prefix, version));
        if !right {
            wrong.get_or_insert_with(|| format!("the key {key:?} has the value {value:?}"));
        }
        before = prefix;
    })?;
    let wanted = state.records - state.removed;
    match wrong {
        Some(what) => Err(format!("not what was written: {what}").into()),
        None if count != wanted => Err(format!("{count} records instead of {wanted}").into()),
        None => look_up(engine, state),
    }
}

/// Looks some records up, and some that are missing.
fn look_up(engine: &dyn Engine, state: &State) -> Outcome<()> {
    let mut random = fastrand::Rng::with_seed(99);
    for round in 0..2000 {
        let number = match round % 2 {
            0 => random.u64(..state.records),
            _ => MISSING + random.u64(..MISSING),
        };
        let (prefix, version) = (data::prefix(number), state.version(number));
        let mut right = version.is_none();
        let found = engine.get(&data::key_with(prefix), &mut |value| {
            right = version.is_some_and(|version| *value == data::value(prefix, version));
        })?;
        if !right || found != version.is_some() {
            return Err(format!("the record {number} is not what was written").into());
        }
    }
    Ok(())
}

/// Makes an empty folder for a store.
///
/// # Errors
/// Those of the system.
pub fn empty(folder: &Path) -> Outcome<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(std::fs::create_dir_all(folder)?)
}
