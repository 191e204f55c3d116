//! The plan: the order in which engines and groups are measured, each time in a process of its own.

use crate::child::{READY, Said, State, Task, empty};
use crate::engine::{Outcome, Profile};
use crate::options::Options;
use crate::results::Results;
use crate::row::{Group, ROWS};
use crate::system;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A child that takes longer is given up, beside the time that the command line asks for.
const PATIENCE: Duration = Duration::from_secs(1800);

/// The benchmark: its options and its results.
pub struct Bench {
    options: Options,
    results: Results,
    /// The failures, in words.
    failures: Vec<String>,
}

impl Bench {
    /// Nothing measured yet.
    pub fn new(options: Options) -> Self {
        Bench {
            options,
            results: Results::default(),
            failures: Vec::new(),
        }
    }

    /// Measures everything, in rounds. The engines take turns within a group; another one begins in
    /// each round.
    ///
    /// # Errors
    /// If there is no place for the stores. An engine that fails is left out of the group.
    pub fn run(&mut self) -> Outcome<()> {
        for round in 0..self.options.rounds {
            eprintln!("round {} of {}", round + 1, self.options.rounds);
            let mut engines = self.options.engines.clone();
            let first = round % engines.len();
            engines.rotate_left(first);
            let fresh = State {
                records: self.options.sizes.records,
                ..State::default()
            };
            // Engines whose store is not as it should be have no state.
            let mut loaded: Vec<_> = engines
                .iter()
                .map(|engine| (*engine, Some(fresh)))
                .collect();
            for group in self.groups() {
                for (engine, state) in &mut loaded {
                    if group.needs_load() || group == Group::Load {
                        *state = state.and_then(|state| self.measure(round, group, engine, state))
                    } else {
                        self.measure(round, group, engine, fresh);
                    }
                }
            }
            self.remove_stores()?;
        }
        Ok(())
    }

    /// Returns the groups that are measured: those that are asked for, and those that they need.
    fn groups(&self) -> impl Iterator<Item = Group> + use<> {
        let asked = self.options.groups.clone();
        let load = asked.iter().any(|group| group.needs_load());
        Group::ALL
            .into_iter()
            .filter(move |group| asked.contains(group) || (load && *group == Group::Load))
    }

    fn takes_part(&self, group: Group, engine: &Profile) -> bool {
        match group {
            Group::Osmos => engine.in_osmos || self.options.engines_named,
            Group::Kill => engine.keeps_writes,
            _ => true,
        }
    }

    /// Measures a group of an engine; the state of the store afterwards, unless it failed.
    fn measure(
        &mut self,
        round: usize,
        group: Group,
        engine: &'static Profile,
        state: State,
    ) -> Option<State> {
        if !self.takes_part(group, engine) {
            return Some(state);
        }
        let start = Instant::now();
        let mut task = Task {
            group,
            recover: false,
            profile: engine,
            folder: self
                .options
                .data
                .join(engine.name)
                .join(if group.needs_load() {
                    Group::Load.name()
                } else {
                    group.name()
                }),
            sizes: self.options.sizes.clone(),
            state,
        };
        let mut done = self.child(round, &task);
        if group == Group::Kill && done.is_ok() {
            task.recover = true;
            task.state = done.unwrap_or(state);
            done = self.child(round, &task);
        }
        let (name, seconds) = (engine.name, start.elapsed().as_secs_f64());
        match done {
            Ok(state) => {
                eprintln!("  {:<9} {name:<8} {seconds:>6.1} s", group.name());
                Some(state)
            }
            Err(error) => {
                eprintln!("  {:<9} {name:<8} {seconds:>6.1} s: {error}", group.name());
                self.failures
                    .push(format!("{} of {name}: {error}", group.name()));
                None
            }
        }
    }

    /// Runs a child process.
    fn child(&mut self, round: usize, task: &Task) -> Outcome<State> {
        if !task.group.needs_load() {
            empty(&task.folder)?;
        }
        system::write_back();
        let mut child = Command::new(std::env::current_exe()?)
            .args(task.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = self.listen(round, task, &mut child);
        // The child has ended, unless it is to be killed or was given up.
        let _ = child.kill();
        let status = child.wait()?;
        let (state, ready) = said?;
        if ready || status.success() {
            Ok(state)
        } else {
            Err(format!("ended with {status}").into())
        }
    }

    /// Reads the messages of a child until it ends. Returns `true` if its last message is that it
    /// may be killed.
    fn listen(&mut self, round: usize, task: &Task, child: &mut Child) -> Outcome<(State, bool)> {
        let lines = lines_of(child)?;
        let asked = task.sizes.osmos_seconds + 4 * task.sizes.limit_seconds;
        let end = Instant::now() + PATIENCE + Duration::from_secs(asked);
        let mut state = task.state;
        loop {
            let line = match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return Ok((state, false)),
                Err(RecvTimeoutError::Timeout) => return Err("took too long".into()),
            };
            match Said::parse(&line) {
                Some(Said::Figure(name, figure)) => {
                    let row = ROWS
                        .iter()
                        .find(|row| row.name == name)
                        .ok_or("an unknown row")?;
                    self.results.add(row.name, task.profile.name, round, figure);
                }
                Some(Said::State(new)) => state = new,
                Some(Said::Ready) => return Ok((state, true)),
                None => return Err(format!("{line:?} instead of a figure or {READY}").into()),
            }
        }
    }

    fn remove_stores(&self) -> Outcome<()> {
        for engine in &self.options.engines {
            let folder = self.options.data.join(engine.name);
            if folder.exists() {
                fs::remove_dir_all(folder)?;
            }
        }
        Ok(())
    }

    /// Returns the tables, and the failures.
    pub fn report(&self) -> String {
        let mut text = self.results.tables();
        for failure in &self.failures {
            text.push_str(&format!("failed: {failure}\n"));
        }
        text
    }

    /// Writes the file of results.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, facts: &ats_bench_common::Facts) -> std::io::Result<std::path::PathBuf> {
        self.results.write(&self.options.results, facts)
    }

    /// Returns `true` if something failed.
    pub fn has_failed(&self) -> bool {
        !self.failures.is_empty()
    }
}

/// Returns the lines that a child prints, as they come.
fn lines_of(child: &mut Child) -> Outcome<Receiver<String>> {
    let output = child.stdout.take().ok_or("a child without output")?;
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    Ok(receive)
}
