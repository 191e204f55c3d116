//! Histories during which calls fail, the disk is full, or stored bits flip.

use super::disk::Disk;
use super::explore::guard;
use super::fault::{Break, Calls, EINTR, Fault};
use super::fs::SimFs;
use super::history::{self, Operation, keys};
use super::model::{Change, State, is_nothing, latest};
use super::random::Random;
use super::subject::{Setup, Subject};
use super::survival::Survival;
use super::world::{Failure, World};
use ats_disk::Error;
use ats_store::{Direction, KeyRange};
use std::io::ErrorKind;

/// A history, and how its store is made.
#[derive(Clone)]
pub(crate) struct Broken {
    pub(crate) seed: u64,
    pub(crate) setup: Setup,
    pub(crate) history: Vec<Operation>,
}

impl Broken {
    pub(crate) fn random(seed: u64, operations: usize) -> Self {
        let mut random = Random::new(seed);
        let setup = Setup::random(&mut random);
        let history = history::random(&mut random, &State::default(), operations, 0);
        Broken {
            seed,
            setup,
            history,
        }
    }

    pub(crate) fn wrong(&self, wrong: &str, what: &str) -> String {
        let history: Vec<String> = self.history.iter().map(|o| format!("\n  {o:?}")).collect();
        let (seed, setup) = (self.seed, &self.setup);
        format!(
            "{wrong}\n{what}\nseed {seed}, {setup:?}{}",
            history.concat()
        )
    }

    /// Fails each call that is one of these in turn, in this way. Returns their number.
    pub(crate) fn fail<S: Subject>(
        &self,
        of: Calls,
        how: Break,
        forever: bool,
    ) -> Result<u64, String> {
        for at in 0.. {
            let fault = Fault {
                at,
                of,
                how,
                forever,
            };
            let failed = guard(|| self.fail_at::<S>(fault));
            if !failed.map_err(|wrong| self.wrong(&wrong, &format!("{fault:?}")))? {
                return Ok(at);
            }
        }
        unreachable!("a history has an end")
    }

    /// Runs the history with a fault. Returns `true` if it was hit.
    fn fail_at<S: Subject>(&self, fault: Fault) -> Result<bool, String> {
        let mut fs = SimFs::new(Disk::default());
        fs.set_fault(Some(fault));
        let mut world = match World::<S>::new(fs.clone(), &self.setup) {
            Err(Failure::Error(_)) if fs.is_hit() && fault.how == Break::Stop => return Ok(true),
            Err(Failure::Error(_)) if fs.is_hit() && fault.how != Break::Nothing(EINTR) => {
                fs.set_fault(None);
                fs = fs.kill();
                World::new(fs, &self.setup).map_err(|f| format!("the next open: {f:?}"))?
            }
            opened => opened.map_err(|failure| format!("{failure:?}"))?,
        };
        // The reason why nothing is written until the store is opened again.
        let mut read_only = false;
        // `true` if the next write must be refused.
        let mut unsynced = false;
        for (index, operation) in self.history.iter().enumerate() {
            let was_hit = world.fs.is_hit();
            let was_open = world.is_open();
            let done = world.step(operation);
            let at = |wrong: String| format!("{wrong}\nin operation {index}, {operation:?}");
            let is_hit = world.fs.is_hit();
            if !was_open || matches!(operation, Operation::Kill | Operation::Close) {
                (read_only, unsynced) = (false, false);
            }
            let is_write =
                matches!(operation, Operation::Write(changes, _) if !is_nothing(changes));
            match done {
                Err(Failure::Wrong(wrong)) => return Err(at(wrong)),
                Err(Failure::Error(error)) if !is_hit => {
                    return Err(at(format!("no call has failed, but {error:?}")));
                }
                Err(Failure::Error(Error::ReadOnly(_))) => read_only = true,
                Err(Failure::Error(error)) => {
                    if was_hit && !fault.forever {
                        return Err(at(format!("an error long after a call failed: {error:?}")));
                    }
                    if fault.how == Break::Nothing(EINTR) {
                        return Err(at(format!("a signal makes a call fail: {error:?}")));
                    }
                    let synced = match operation {
                        Operation::Write(_, synced) => *synced,
                        Operation::Sync => true,
                        _ => false,
                    };
                    let synced = synced && !is_before_writing(&error);
                    unsynced |= synced && fault.of == Calls::SYNC && world.is_open();
                }
                Ok(()) if is_write && (read_only || unsynced) && was_open => {
                    return Err(at(String::from("a store that is read-only writes")));
                }
                Ok(()) => {}
            }
            if is_hit && !was_hit && !fault.forever {
                let checked = world.check();
                checked.map_err(|f| at(format!("after a call failed: {f:?}")))?;
            }
        }
        let is_hit = world.fs.is_hit();
        if !is_hit {
            return Ok(false);
        }
        world.fs.set_fault(None);
        if fault.how == Break::Stop {
            // The store is only dropped: it must not wait for threads that never answer.
            drop(world);
            return Ok(true);
        }
        let end = |f: Failure| format!("at the end: {f:?}");
        world.check().map_err(end)?;
        self.end(&mut world, fault.at)
            .map_err(|wrong| format!("at the end: {wrong}"))?;
        Ok(true)
    }

    /// Opens the store again on the same machine, goes on there, and stops the machine.
    fn end<S: Subject>(&self, world: &mut World<S>, seed: u64) -> Result<(), String> {
        let mut random = Random::new(self.seed ^ seed << 32);
        self.stop(world, &mut random, "stopped")?;
        world.kill();
        let put = |number: usize| {
            let key = keys()[2 + number].clone();
            Change::Put(key, format!("later {number}").into_bytes())
        };
        let wrong = |f: Failure| format!("opened again: {f:?}");
        world.check().map_err(wrong)?;
        self.stop(world, &mut random, "opened and stopped")?;
        world
            .step(&Operation::Write(vec![put(0)], false))
            .map_err(wrong)?;
        world
            .step(&Operation::Write(vec![put(1)], true))
            .map_err(wrong)?;
        self.stop(world, &mut random, "opened, written to and stopped")?;
        world.step(&Operation::Flush).map_err(wrong)?;
        world.step(&Operation::Compact).map_err(wrong)?;
        world.check().map_err(wrong)?;
        self.stop(world, &mut random, "opened, compacted and stopped")
    }

    /// Opens the images that may survive a stop of the machine now.
    fn stop<S: Subject>(
        &self,
        world: &World<S>,
        random: &mut Random,
        when: &str,
    ) -> Result<(), String> {
        let (disk, window) = (world.fs.disk(), world.timeline.window());
        for survival in Survival::few(&disk, random) {
            let low = match survival {
                Survival::Process => window.returned,
                _ => window.synced,
            };
            let fs = SimFs::new(survival.image(&disk));
            World::<S>::open(fs, &self.setup, &world.timeline.survivors(low))
                .map_err(|failure| format!("{when}: {survival:?}, {window:?}: {failure:?}"))?;
        }
        Ok(())
    }

    /// Runs the history with each capacity of the disk. When it is full, operations fail until so
    /// many have; then there is room again. Returns the number of times that the disk was full.
    pub(crate) fn fill<S: Subject>(&self, failures: usize) -> Result<u64, String> {
        let mut full = 0;
        for pages in 1.. {
            let capacity = pages * super::content::PAGE as u64;
            let filled = guard(|| self.fill_to::<S>(capacity, failures));
            let what = || format!("the disk has {capacity} bytes");
            if filled.map_err(|wrong| self.wrong(&wrong, &what()))? {
                full += 1;
            } else {
                return Ok(full);
            }
        }
        unreachable!("a disk is large enough at some time")
    }

    fn fill_to<S: Subject>(&self, capacity: u64, failures: usize) -> Result<bool, String> {
        let mut fs = SimFs::new(Disk::default());
        fs.set_capacity(Some(capacity));
        let mut failed = 0;
        let mut world = match World::<S>::new(fs.clone(), &self.setup) {
            Err(Failure::Error(Error::Io { error, .. }))
                if error.kind == ErrorKind::StorageFull =>
            {
                failed = failures;
                fs = fs.kill();
                fs.set_capacity(None);
                World::new(fs, &self.setup).map_err(|f| format!("with room: {f:?}"))?
            }
            opened => opened.map_err(|failure| format!("{failure:?}"))?,
        };
        for (index, operation) in self.history.iter().enumerate() {
            let at = |wrong: String| format!("{wrong}\nin operation {index}, {operation:?}");
            let is_full = match world.step(operation) {
                Ok(()) => continue,
                Err(Failure::Error(Error::Io { error, .. })) => {
                    error.kind == ErrorKind::StorageFull
                }
                Err(_) => false,
            };
            let now = if failed < failures {
                "while the disk is full"
            } else {
                "when there is room"
            };
            if !is_full || failed == failures {
                let again = world.step(operation);
                return Err(at(format!("{now}, it fails otherwise; then {again:?}")));
            }
            failed += 1;
            if failed == failures {
                world.fs.set_capacity(None);
            }
            if world.is_open() || failed == failures {
                let checked = world.check();
                checked.map_err(|failure| at(format!("{now}: {failure:?}")))?;
            }
            if failed == failures && !matches!(operation, Operation::Kill | Operation::Close) {
                let again = world.step(operation);
                again.map_err(|failure| at(format!("when there is room again: {failure:?}")))?;
            }
        }
        world.fs.set_capacity(None);
        world
            .check()
            .map_err(|failure| format!("at the end: {failure:?}"))?;
        self.end(&mut world, capacity)?;
        Ok(failed > 0)
    }

    /// Flips each bit of each file in turn, after the store was closed or its process has ended.
    /// Returns the number of bits, and of those that have made an error.
    pub(crate) fn flip<S: Subject>(&self, close: bool) -> Result<(u64, u64), String> {
        let live = |failure: Failure| self.wrong(&format!("{failure:?}"), "without a flip");
        let mut world = World::<S>::new(SimFs::new(Disk::default()), &self.setup).map_err(live)?;
        for operation in &self.history {
            world.step(operation).map_err(live)?;
        }
        if close {
            world.close().map_err(live)?;
        }
        world.kill();
        let disk = Survival::Everything.image(&world.fs.disk());
        let window = world.timeline.window();
        let low = if S::MARKS_SYNCS {
            window.synced
        } else {
            world.timeline.evident()
        };
        let states = &world.timeline.states()[low..=window.returned];
        let (mut bits, mut errors) = (0, 0);
        for (name, file) in disk.files() {
            let content = disk.content(file).bytes();
            let used = content.iter().rposition(|byte| *byte != 0).unwrap_or(0) as u64;
            // A part of the room that was made ahead is enough.
            let ahead = (8 * (used + 64)..8 * content.len() as u64).step_by(997);
            let used = 0..8 * content.len().min(used as usize + 64) as u64;
            for bit in used.chain(ahead) {
                let mut flipped = disk.clone();
                flipped.flip(file, bit);
                let read = guard(|| self.read::<S>(SimFs::new(flipped), states));
                let what = || format!("bit {bit} of {name}, closed: {close}");
                errors += u64::from(read.map_err(|wrong| self.wrong(&wrong, &what()))?);
                bits += 1;
            }
        }
        Ok((bits, errors))
    }

    /// Reads in all ways, before and after all is merged. All that is read must be of one of these
    /// states. Returns `true` if something could not be read.
    fn read<S: Subject>(&self, fs: SimFs, states: &[State]) -> Result<bool, String> {
        let Ok(store) = S::open(&self.setup, &fs) else {
            return Ok(true);
        };
        let mut part: Vec<usize> = (0..states.len()).collect();
        let mut failed = read_all(&store, states, &mut part)?;
        // Records that cannot be read are not merged, either.
        failed |= store.compact().is_err();
        failed |= read_all(&store, states, &mut part).map_err(|w| format!("merged, {w}"))?;
        Ok(failed)
    }
}

/// Returns `true` if a write has failed before anything of it was written: by beginning a journal,
/// or by making the manifest durable.
fn is_before_writing(error: &Error) -> bool {
    let begins = ["beginning journal-", "writing a new manifest"];
    matches!(error, Error::Io { what, .. } if begins.iter().any(|begin| what.starts_with(begin)))
}

/// Reads all, and leaves of the states those that it may be of. Returns `true` if something could
/// not be read.
fn read_all<S: Subject>(
    store: &S,
    states: &[State],
    part: &mut Vec<usize>,
) -> Result<bool, String> {
    let mut failed = false;
    for direction in [Direction::Up, Direction::Down] {
        match store.scan(KeyRange::default(), direction) {
            Err(_) => failed = true,
            Ok(mut content) => {
                if direction == Direction::Down {
                    content.reverse();
                }
                part.retain(|&index| latest(&states[index..=index], &content).is_some());
            }
        }
        if part.is_empty() {
            return Err(format!("a scan {direction:?} is wrong"));
        }
    }
    for key in keys() {
        match store.get(&key) {
            Err(_) => failed = true,
            Ok(value) => part.retain(|&index| states[index].get(&key) == value.as_ref()),
        }
        if part.is_empty() {
            return Err(format!("the value of \"{}\" is wrong", key.escape_ascii()));
        }
    }
    Ok(failed)
}
