//! The machine stops at any call of a history in which checkpoints are made, and anything may
//! survive of the unsynced writes: the source is as it would be without them, and a checkpoint is
//! the store at its moment, or no store. The two share files, so neither must change the other.
//!
//! With `ATS_DISK_CRASH_SECONDS` in the environment, other histories are visited for so long.

mod sim;

use ats_disk::{DiskStore, Error, StoreDirectory};
use ats_store::{Direction, KeyRange};
use sim::disk::Disk;
use sim::disk_store::options;
use sim::explore::{Case, guard};
use sim::fault::{Break, Calls, EIO, ENOSPC, Fault, Point};
use sim::fs::{OTHER_DISK, SimFs};
use sim::history::{self, Operation};
use sim::model::State;
use sim::random::Random;
use sim::subject::{Content, Setup};
use sim::survival::Survival;
use sim::world::World;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that is kept beside those of the store, and without which a checkpoint is none.
const DESCRIPTION_NAME: &str = "table";
const DESCRIPTION: &[u8] = b"a table";

/// The names of the files that are kept beside those of the store: none, or the description.
type Beside = &'static [&'static str];
const BESIDES: [Beside; 2] = [&[], &[DESCRIPTION_NAME]];

/// A checkpoint as it shall be.
struct Meant {
    path: PathBuf,
    beside: Beside,
    /// The contents of the store.
    state: State,
}

/// A checkpoint that was made.
struct Made {
    meant: Meant,
    /// The number of the first call, and of the first one after it.
    begun: u64,
    ended: u64,
}

/// Returns a directory for a checkpoint: in the same file system or in another one.
fn target(random: &mut Random, number: usize) -> PathBuf {
    if random.one_in(3) {
        Path::new(OTHER_DISK).join(number.to_string())
    } else {
        PathBuf::from(format!("/copy{number}"))
    }
}

fn content(store: &DiskStore) -> Result<Content, Error> {
    let mut scan = store.scan_lending(KeyRange::default(), Direction::Up)?;
    let mut content = Vec::new();
    while let Some((key, value)) = scan.next()? {
        content.push((key.to_vec(), value.to_vec()));
    }
    Ok(content)
}

/// Opens a checkpoint, which must be the expected one; `None` if there is no store, or if it is not
/// described.
fn open(
    setup: &Setup,
    fs: &SimFs,
    meant: &Meant,
    read_only: bool,
) -> Result<Option<DiskStore>, String> {
    let options = options(setup, fs).create(false).read_only(read_only);
    let path = &meant.path;
    let wrong = |error| format!("opening {}: {error}", path.display());
    for name in meant.beside {
        match StoreDirectory::read_unlocked(Arc::new(fs.clone()), path, name) {
            Ok(None) | Err(Error::Missing) => return Ok(None),
            Ok(Some(bytes)) if bytes == DESCRIPTION => {}
            Ok(Some(bytes)) => return Err(format!("it is described by {bytes:?}")),
            Err(error) => return Err(wrong(error)),
        }
    }
    let store = match DiskStore::open(path, options) {
        Err(Error::Missing | Error::Corrupt(_)) => return Ok(None),
        opened => opened.map_err(wrong)?,
    };
    let found = content(&store).map_err(|error| format!("reading {}: {error}", path.display()))?;
    if meant
        .state
        .iter()
        .eq(found.iter().map(|(key, value)| (key, value)))
    {
        Ok(Some(store))
    } else {
        Err(format!("{} is not what it was", path.display()))
    }
}

/// Checks a checkpoint after a stop at this call. Then it is written to.
fn check(setup: &Setup, fs: &SimFs, made: &Made, call: u64, writes: bool) -> Result<(), String> {
    let is_empty = fs
        .disk()
        .names(&made.meant.path)
        .map_or(true, |names| names.is_empty());
    if call <= made.begun && !is_empty {
        return Err(String::from("it is there before it was begun"));
    }
    let read = open(setup, fs, &made.meant, true)?;
    if read.is_none() && call >= made.ended {
        return Err(format!("{} is lost", made.meant.path.display()));
    }
    if read.is_none() || !writes {
        return Ok(());
    }
    drop(read);
    let wrong = |error: Error| format!("writing to {}: {error}", made.meant.path.display());
    let store = open(setup, fs, &made.meant, false)?;
    let store = store.ok_or("it can be read only")?;
    for key in history::keys() {
        store.put(&key, b"0.other").map_err(wrong)?;
    }
    store.compact().map_err(wrong)?;
    store.close().map_err(wrong)
}

/// Visits the images that may survive at a point. Returns their number.
fn stop(
    setup: &Setup,
    point: &Point,
    made: &[Made],
    states: &[State],
    random: &mut Random,
) -> Result<u64, String> {
    let survivals = if random.one_in(4) {
        Survival::all(&point.disk, 2, random)
    } else {
        Survival::few(&point.disk, random)
    };
    for survival in &survivals {
        let mut fs = SimFs::new(survival.image(&point.disk));
        for made in made {
            check(setup, &fs, made, point.call, random.one_in(3))?;
        }
        let mut low = match survival {
            Survival::Process => point.window.returned,
            _ => point.window.synced,
        };
        if random.one_in(2) {
            // The machine stops again.
            fs = SimFs::new(Survival::Nothing.image(&fs.disk()));
            low = point.window.synced;
        }
        let of_source = |failure| format!("the source: {failure:?}");
        let part = &states[low..=point.window.begun];
        let opened = World::<DiskStore>::open(fs, setup, part);
        let (mut world, _) = opened.map_err(of_source)?;
        for operation in [Operation::Compact, Operation::Close] {
            world.step(&operation).map_err(of_source)?;
        }
    }
    Ok(survivals.len() as u64)
}

/// A history that is run with checkpoints in it.
struct Run {
    world: World<DiskStore>,
    beside: Beside,
    made: Vec<Made>,
}

impl Run {
    fn new(setup: &Setup, random: &mut Random) -> Result<Self, String> {
        let fs = SimFs::new(Disk::default());
        fs.record();
        let mut world = World::new(fs, setup).map_err(|failure| format!("{failure:?}"))?;
        let beside = random.pick(&BESIDES);
        for name in beside {
            let described =
                world.sync_by(|store: &DiskStore| store.replace_file(name, DESCRIPTION));
            described.map_err(|failure| format!("without a stop: {failure:?}"))?;
        }
        let made = Vec::new();
        Ok(Run {
            world,
            beside,
            made,
        })
    }

    fn step(&mut self, operation: &Operation) -> Result<(), String> {
        let step = self.world.step(operation);
        step.map_err(|failure| format!("without a stop: {failure:?}"))
    }

    fn checkpoint(&mut self, path: PathBuf) -> Result<(), String> {
        let begun = self.world.fs.calls();
        let (fs, beside) = (Arc::new(self.world.fs.clone()), self.beside);
        let call = |store: &DiskStore| {
            let target = StoreDirectory::make(fs, &path)?;
            store.checkpoint_in(&target, None, beside)
        };
        let done = self.world.sync_by(call);
        done.map_err(|failure| format!("without a stop: {failure:?}"))?;
        self.made.push(Made {
            meant: self.meant(path),
            begun,
            ended: self.world.fs.calls(),
        });
        Ok(())
    }

    /// Returns a checkpoint of now.
    fn meant(&self, path: PathBuf) -> Meant {
        Meant {
            path,
            beside: self.beside,
            state: self.world.timeline.now().clone(),
        }
    }
}

fn random_history(seed: u64, operations: usize) -> (Random, Setup, Vec<Operation>) {
    let mut random = Random::new(seed);
    let setup = Setup::random(&mut random);
    let history = history::random(&mut random, &State::default(), operations, 0);
    (random, setup, history)
}

fn explore(seed: u64) -> Result<u64, String> {
    let (mut random, setup, history) = random_history(seed, 20);
    let mut run = Run::new(&setup, &mut random)?;
    for (number, operation) in history.iter().enumerate() {
        run.step(operation)?;
        if random.one_in(6) {
            run.checkpoint(target(&mut random, number))?;
        }
    }
    let states = run.world.timeline.states().to_vec();
    let mut visited = 0;
    for point in run.world.fs.points() {
        let stopped = stop(&setup, &point, &run.made, &states, &mut random);
        visited += stopped.map_err(|wrong| format!("{wrong}, stopped at call {}", point.call))?;
    }
    Ok(visited)
}

#[test]
fn stops_leave_the_source_and_whole_checkpoints() {
    let mut visited = 0;
    for seed in Case::seeds(0..6) {
        let explored = guard(|| explore(seed));
        visited += explored.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
    println!("{visited} points");
    assert!(visited > 4_000, "{visited}");
}

/// Fails one call of a checkpoint after a history. Returns `false` if it makes fewer calls.
fn fail(seed: u64, of: Calls, how: Break, at: u64) -> Result<bool, String> {
    let (mut random, setup, history) = random_history(seed, 12);
    let mut run = Run::new(&setup, &mut random)?;
    for operation in &history {
        run.step(operation)?;
    }
    let path = target(&mut random, 0);
    let fs = run.world.fs.clone();
    fs.set_fault(Some(Fault {
        at,
        of,
        how,
        forever: false,
    }));
    let done = run.checkpoint(path.clone());
    fs.set_fault(None);
    let is_hit = fs.is_hit();
    let copy = open(&setup, &fs, &run.meant(path), true)?;
    match (done.is_ok(), copy.is_some()) {
        (true, false) => return Err(String::from("it is done and not there")),
        (false, true) => return Err(String::from("it has failed and is there")),
        _ => drop(copy),
    }
    run.step(&Operation::Check)?;
    run.step(&Operation::Kill)?;
    run.step(&Operation::Check)?;
    Ok(is_hit)
}

#[test]
fn calls_that_fail_leave_the_source_and_no_checkpoint() {
    let mut failed = 0;
    for seed in 0..6 {
        for (of, how) in [
            (Calls::ALL, Break::Nothing(EIO)),
            (Calls::ALL, Break::Nothing(ENOSPC)),
            (Calls::SYNCING, Break::Half(EIO)),
            (Calls::WRITE, Break::Half(EIO)),
        ] {
            let wrong = |wrong| format!("seed {seed}, {of:?}, {how:?}: {wrong}");
            for at in 0.. {
                match fail(seed, of, how, at).map_err(wrong) {
                    Ok(false) => break,
                    Ok(true) => failed += 1,
                    Err(wrong) => panic!("{wrong} at {at}"),
                }
            }
        }
    }
    println!("{failed} failures");
    assert!(failed > 200, "{failed}");
}
