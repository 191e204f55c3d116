//! A store on a simulated machine, beside the model of its contents.

use super::fs::SimFs;
use super::history::{Operation, keys};
use super::model::{Change, State, Timeline, is_nothing, latest};
use super::random::Random;
use super::subject::{Content, Setup, Subject};
use ats_disk::Error;
use ats_store::{Direction, KeyRange};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The directory to which the path of the store leads when a link in it was turned.
const ELSEWHERE: &str = "/elsewhere";

/// A failure.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The store says that it failed.
    Error(Error),
    /// The store has said something wrong.
    Wrong(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

/// A store, its machine, and its model.
pub(crate) struct World<S: Subject> {
    pub(crate) fs: SimFs,
    pub(crate) timeline: Timeline,
    pub(crate) setup: Setup,
    /// The random numbers for the setup of the next opening.
    random: Random,
    /// The store; `None` after it could not be opened again.
    store: Option<S>,
    snapshots: VecDeque<(S::Snapshot, State)>,
}

impl<S: Subject> World<S> {
    /// Opens a store. It must contain one of these states. Returns the index of that state, too.
    pub(crate) fn open(
        fs: SimFs,
        setup: &Setup,
        states: &[State],
    ) -> Result<(Self, usize), Failure> {
        let (store, contained) = open(setup, &fs, states)?;
        let world = World {
            fs,
            timeline: Timeline::again(states, contained, contained),
            setup: setup.clone(),
            random: Random::new(setup.memtable_bytes as u64),
            store: Some(store),
            snapshots: VecDeque::new(),
        };
        Ok((world, contained))
    }

    /// Makes a store that is not there before.
    pub(crate) fn new(fs: SimFs, setup: &Setup) -> Result<Self, Failure> {
        let states = [State::default()];
        Ok(World::open(fs, setup, &states)?.0)
    }

    /// Returns `true` if it is open.
    pub(crate) fn is_open(&self) -> bool {
        self.store.is_some()
    }

    fn store(&mut self) -> Result<&S, Failure> {
        if self.store.is_none() {
            self.reopen()?;
        }
        let store = self.store.as_ref();
        store.ok_or_else(|| Failure::Wrong(String::from("it was opened, but is not there")))
    }

    /// Does something with the store that syncs all that was written, and changes nothing else.
    pub(crate) fn sync_by(
        &mut self,
        call: impl FnOnce(&S) -> Result<(), Error>,
    ) -> Result<(), Failure> {
        call(self.store()?)?;
        self.timeline.sync();
        self.fs.set_window(self.timeline.window());
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), Failure> {
        if self.random.one_in(2) {
            self.setup = self.setup.with_other_sizes(&mut self.random);
        }
        let states = self.timeline.survivors(self.timeline.window().returned);
        self.fs.turn_back();
        let (store, contained) = open(&self.setup, &self.fs, &states)?;
        self.timeline.resume(&states[contained]);
        self.fs.set_window(self.timeline.window());
        self.store = Some(store);
        Ok(())
    }

    /// Ends the process.
    pub(crate) fn kill(&mut self) {
        self.fs = self.fs.kill();
        self.snapshots.clear();
        self.store = None;
    }

    /// Closes the store.
    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        self.snapshots.clear();
        if let Some(store) = self.store.take() {
            store.close()?;
        }
        if S::CLOSE_SYNCS {
            self.timeline.sync();
            self.fs.set_window(self.timeline.window());
        }
        Ok(())
    }

    /// Does an operation. After an error the model is as the store should be.
    pub(crate) fn step(&mut self, operation: &Operation) -> Result<(), Failure> {
        let store = self.store()?;
        match operation {
            Operation::Write(changes, synced) => {
                // A refused write is none: histories have none, but a part of one may.
                if self.timeline.begin(changes).is_some() {
                    self.fs.set_window(self.timeline.window());
                    let written = self.store()?.write(changes, *synced);
                    // A write of nothing need not sync, either.
                    let synced = *synced && !is_nothing(changes);
                    match &written {
                        Ok(()) => self.timeline.end(synced),
                        Err(Error::ReadOnly(_)) => drop(self.timeline.refuse()),
                        Err(_) => self.timeline.fail(),
                    }
                    self.fs.set_window(self.timeline.window());
                    written?;
                }
            }
            Operation::Sync => {
                store.sync()?;
                self.timeline.sync();
            }
            Operation::Flush => {
                store.flush()?;
                if S::FLUSH_SYNCS {
                    self.timeline.sync();
                }
            }
            Operation::Compact => store.compact()?,
            Operation::Work => {
                store.work()?;
            }
            Operation::Snapshot => {
                let snapshot = store.snapshot()?;
                let state = Arc::clone(self.timeline.now());
                self.snapshots.push_back((snapshot, state));
            }
            Operation::Release => {
                if let Some((snapshot, state)) = self.snapshots.pop_front() {
                    compare_snapshot::<S>(&snapshot, &state)?;
                }
            }
            Operation::Check => self.check()?,
            Operation::Close => {
                self.close()?;
                self.reopen()?;
            }
            Operation::Kill => {
                self.kill();
                self.reopen()?;
            }
            Operation::Wait => self.fs.advance(Duration::from_secs(1)),
            Operation::Rest => {
                store.rest()?;
                self.timeline.sync();
            }
            Operation::Turn => self.fs.turn(Path::new(S::PATH), Some(Path::new(ELSEWHERE))),
        }
        self.fs.set_window(self.timeline.window());
        Ok(())
    }

    /// Compares everything with the model.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        self.store()?;
        if let Some(store) = &self.store {
            compare(store, std::slice::from_ref(self.timeline.now()))?;
        }
        for (snapshot, state) in &self.snapshots {
            compare_snapshot::<S>(snapshot, state)?;
        }
        let disk = self.fs.disk();
        match disk.names(Path::new(ELSEWHERE)) {
            Ok(names) if !names.is_empty() => {
                Err(Failure::Wrong(format!("another directory has {names:?}")))
            }
            _ => Ok(()),
        }
    }
}

/// Opens a store, which must contain one of these states, and returns the index of that state, too.
/// Before that it is opened for reading, on a medium that cannot be written to, where it contains
/// the same.
fn open<S: Subject>(setup: &Setup, fs: &SimFs, states: &[State]) -> Result<(S, usize), Failure> {
    fs.set_read_only(true);
    let looked = look::<S>(setup, fs, states);
    fs.set_read_only(false);
    let seen = looked?;
    let store = S::open(setup, fs)?;
    let contained = compare(&store, states)?;
    match seen {
        Some(seen) if states[seen] != states[contained] => Err(Failure::Wrong(String::from(
            "what is read without writing is not what is there",
        ))),
        _ => Ok((store, contained)),
    }
}

/// Opens a store for reading. Returns the number of the state that it contains, if it is there.
fn look<S: Subject>(setup: &Setup, fs: &SimFs, states: &[State]) -> Result<Option<usize>, Failure> {
    let Some(store) = S::open_for_reading(setup, fs)? else {
        return Ok(None);
    };
    let contained = compare(&store, states)?;
    match store.write(&[Change::Put(b"a".to_vec(), b"?".to_vec())], false) {
        Err(Error::ReadOnly(_)) => {}
        other => {
            let wrong = format!("a store for reading is written to: {other:?}");
            return Err(Failure::Wrong(wrong));
        }
    }
    store.close()?;
    Ok(Some(contained))
}

fn show(content: &Content) -> String {
    let show = |(key, value): &(Vec<u8>, Vec<u8>)| {
        let (key, len) = (key[..key.len().min(12)].escape_ascii(), value.len());
        format!(
            "\"{key}\": \"{}\"..{len}",
            value[..len.min(12)].escape_ascii()
        )
    };
    content.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn content(state: &State) -> Content {
    state
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Finds which of the states the store contains, and compares all ways to read with each other.
fn compare<S: Subject>(store: &S, states: &[State]) -> Result<usize, Failure> {
    let all = KeyRange::default();
    let up = store.scan(all, Direction::Up)?;
    let Some(contained) = latest(states, &up) else {
        let states = states
            .iter()
            .map(|state| format!("\n  or {}", show(&content(state))));
        let states: Vec<String> = states.collect();
        let (up, states) = (show(&up), states.concat());
        return Err(Failure::Wrong(format!("the content is {up}, not{states}")));
    };
    let state = &states[contained];
    let mut down = store.scan(all, Direction::Down)?;
    down.reverse();
    if down != up {
        let (up, down) = (show(&up), show(&down));
        return Err(Failure::Wrong(format!("up there is {up}, down {down}")));
    }
    let keys = keys();
    for key in &keys {
        let found = store.get(key)?;
        if found.as_ref() != state.get(key) {
            let key = key.escape_ascii();
            return Err(Failure::Wrong(format!(
                "the value of \"{key}\" is not that of a scan"
            )));
        }
    }
    for (low, high) in [(2, 6), (4, 10), (7, 11)] {
        let range = KeyRange {
            low: Some(&keys[low]),
            high: Some(&keys[high]),
        };
        let expected = || up.iter().filter(|(key, _)| range.has(key));
        let found = store.scan(range, Direction::Up)?;
        if !found.iter().eq(expected()) {
            return Err(Failure::Wrong(format!(
                "{range:?} upwards has {}",
                show(&found)
            )));
        }
        let found = store.scan(range, Direction::Down)?;
        if !found.iter().eq(expected().rev()) {
            return Err(Failure::Wrong(format!(
                "{range:?} downwards has {}",
                show(&found)
            )));
        }
    }
    Ok(contained)
}

fn compare_snapshot<S: Subject>(snapshot: &S::Snapshot, state: &State) -> Result<(), Failure> {
    let expected = content(state);
    let up = S::scan_snapshot(snapshot, Direction::Up)?;
    let mut down = S::scan_snapshot(snapshot, Direction::Down)?;
    down.reverse();
    if up != expected || down != expected {
        let [up, down, expected] = [&up, &down, &expected].map(show);
        return Err(Failure::Wrong(format!(
            "a snapshot of {expected} has up {up}, down {down}"
        )));
    }
    for key in keys() {
        if S::get_snapshot(snapshot, &key)?.as_ref() != state.get(&key) {
            let key = key.escape_ascii();
            return Err(Failure::Wrong(format!(
                "a snapshot has another value of \"{key}\""
            )));
        }
    }
    Ok(())
}
