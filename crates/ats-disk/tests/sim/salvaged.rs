//! Stores with a damaged or missing file: the saved records are those that they had, and only the
//! records of that file are lost.

use super::broken::Broken;
use super::disk::Disk;
use super::disk_store::options;
use super::explore::guard;
use super::fs::SimFs;
use super::history::keys;
use super::model::{Mixed, State};
use super::survival::Survival;
use super::world::{Failure, World};
use ats_disk::offline::{Fault, Salvage, Survey, salvage, verify};
use ats_disk::{DiskStore, Error, StoreDirectory};
use ats_store::{Direction, KeyRange, MergeOperator, Merged};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// One in so many damaged stores is also written to a new one.
const WRITTEN: u64 = 61;

/// A store that was left, its contents after each write, and the records that may be lost without a
/// trace.
struct Left<'b> {
    broken: &'b Broken,
    disk: Disk,
    states: Vec<State>,
    /// The first state that may be the last one, when the end of a journal is lost.
    low: usize,
}

/// The number of trials, and of their results.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// The number of times that something was damaged.
    pub(crate) damaged: u64,
    /// The number of times that all records were saved as they were last.
    pub(crate) whole: u64,
    /// The number of records that were saved, and of all.
    pub(crate) records: (u64, u64),
}

/// The damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damaged {
    Run,
    Manifest,
    Journal,
    /// A journal that is not there any more, which nothing tells if no later one is.
    WholeJournal,
    Other,
}

impl Damaged {
    fn of(name: &str) -> Self {
        match name {
            _ if name.starts_with("run-") => Damaged::Run,
            _ if name.starts_with("journal-") => Damaged::Journal,
            "manifest" => Damaged::Manifest,
            _ => Damaged::Other,
        }
    }
}

/// The records that are saved.
struct Saved {
    records: BTreeMap<Vec<u8>, Vec<u8>>,
    faults: Vec<Fault>,
}

fn survey(fs: &SimFs) -> Result<Survey, Error> {
    Survey::new(Arc::new(fs.clone()), Path::new("/store"))
}

/// Merges a value with its operands.
fn merge_values(key: &[u8], value: Option<Vec<u8>>, operands: Vec<Vec<u8>>) -> Option<Vec<u8>> {
    let mut values = value.into_iter().chain(operands);
    let first = values.next()?;
    let value = values.fold(first, |earlier, later| {
        match Mixed
            .merge(key, &earlier, &later)
            .expect("they were merged before")
        {
            Merged::Earlier => earlier,
            Merged::Later => later,
            Merged::New(value) => value,
        }
    });
    (!Mixed.is_absent(key, &value)).then_some(value)
}

fn read(fs: &SimFs) -> Result<Saved, Error> {
    let mut salvage = Salvage::new(&survey(fs)?)?;
    let mut records = BTreeMap::new();
    while let Some(record) = salvage.next()? {
        if let Some(value) = merge_values(&record.key, record.value, record.operands) {
            records.insert(record.key, value);
        }
    }
    Ok(Saved {
        records,
        faults: salvage.faults().to_vec(),
    })
}

impl Left<'_> {
    /// Returns all values that a key ever had; `None` is none.
    fn values(&self, key: &[u8], low: usize) -> impl Iterator<Item = Option<&Vec<u8>>> {
        self.states[low..].iter().map(move |state| state.get(key))
    }

    /// Saves the records of a disk on which such a file is damaged.
    fn check(&self, disk: Disk, damaged: Damaged, counts: &mut Counts) -> Result<(), String> {
        let fs = SimFs::new(disk);
        let before = fs.disk();
        let saved = read(&fs).map_err(|error| format!("it cannot be read: {error}"))?;
        if !Arc::ptr_eq(&before, &fs.disk()) {
            return Err("the damaged store was changed".into());
        }
        let last = self.states.last().expect("there is one");
        counts.damaged += 1;
        let is_whole = saved.records == **last;
        counts.whole += u64::from(is_whole);
        for key in saved.records.keys().chain(&keys()) {
            let shown = key.escape_ascii();
            let found = saved.records.get(key);
            let mut lost = saved.faults.iter().filter_map(|fault| fault.keys.as_ref());
            let is_lost = lost.any(|lost| lost.has(key));
            let low = match damaged {
                Damaged::Run | Damaged::Other if !is_lost => self.states.len() - 1,
                Damaged::Journal if saved.faults.is_empty() => self.low,
                _ => 0,
            };
            if self.values(key, low).all(|value| value != found) {
                return Err(format!(
                    "\"{shown}\" is {found:?}, lost: {is_lost}, faults {:?}",
                    saved.faults
                ));
            }
            counts.records.0 += u64::from(found.is_some() && found == last.get(key));
            counts.records.1 += u64::from(last.contains_key(key));
        }
        if damaged == Damaged::Run && !is_whole && saved.faults.is_empty() {
            return Err("something is lost, and nothing tells of it".into());
        }
        if counts.damaged.is_multiple_of(WRITTEN) {
            self.write(&fs, &saved)?;
        }
        Ok(())
    }

    /// Writes the saved records to a new store, which must contain them.
    fn write(&self, fs: &SimFs, saved: &Saved) -> Result<(), String> {
        let wrong = |error: Error| format!("the new store: {error}");
        let target = SimFs::new(Disk::default());
        let options = options(&self.broken.setup, &target);
        let path = Path::new("/store");
        let go_on = &mut |_| ControlFlow::Continue(());
        let beside: &[(&str, &[u8])] = &[("beside", b"bytes")];
        let survey = survey(fs).map_err(wrong)?;
        let done = salvage(&survey, path, options.clone(), beside, go_on).map_err(wrong)?;
        if done.faults != saved.faults {
            return Err("other faults are told".into());
        }
        let read = StoreDirectory::read_unlocked(Arc::new(target.clone()), path, "beside");
        if read.map_err(wrong)?.as_deref() != Some(b"bytes") {
            return Err("the file beside the records is not there".into());
        }
        if salvage(&survey, path, options.clone(), beside, go_on).is_ok() {
            return Err("it was written over another store".into());
        }
        // The operator is that of the damaged store, or the given one if no file tells it.
        let store = DiskStore::open(path, options).map_err(wrong)?;
        let mut records = BTreeMap::new();
        let mut scan = store
            .scan_lending(KeyRange::default(), Direction::Up)
            .map_err(wrong)?;
        while let Some((key, value)) = scan.next().map_err(wrong)? {
            records.insert(key.to_vec(), value.to_vec());
        }
        if records == saved.records {
            Ok(())
        } else {
            Err(format!(
                "the new store has {records:?}, not {:?}",
                saved.records
            ))
        }
    }
}

impl Broken {
    /// Returns the store after the history, closed or not.
    fn leave(&self, close: bool) -> Result<Left<'_>, Failure> {
        let mut world = World::<DiskStore>::new(SimFs::new(Disk::default()), &self.setup)?;
        for operation in &self.history {
            world.step(operation)?;
        }
        if close {
            world.close()?;
        }
        world.kill();
        let window = world.timeline.window();
        Ok(Left {
            broken: self,
            disk: Survival::Everything.image(&world.fs.disk()),
            states: world.timeline.states()[..=window.returned].to_vec(),
            low: window.synced,
        })
    }

    /// Saves a store of which each bit of each file, and each file, is lost in turn.
    pub(crate) fn salvage(&self, close: bool) -> Result<Counts, String> {
        let live = |failure: Failure| self.wrong(&format!("{failure:?}"), "without damage");
        let left = self.leave(close).map_err(live)?;
        let mut counts = Counts::default();
        let mut check = |disk: Disk, damaged, what: &dyn Fn() -> String| {
            let checked = guard(|| left.check(disk, damaged, &mut counts));
            checked.map_err(|wrong| self.wrong(&wrong, &what()))
        };
        check(left.disk.clone(), Damaged::Other, &|| "undamaged".into())?;
        for (name, file) in left.disk.files() {
            let damaged = Damaged::of(&name);
            let removed = match damaged {
                Damaged::Journal => Damaged::WholeJournal,
                damaged => damaged,
            };
            let without = SimFs::new(left.disk.clone());
            without
                .remove(&Path::new("/store").join(&*name))
                .expect("it is there");
            check((*without.disk()).clone(), removed, &|| {
                format!("without {name}, closed: {close}")
            })?;
            let content = left.disk.content(file).bytes();
            if damaged == Damaged::Run {
                for bytes in (0..content.len() as u64).step_by(31) {
                    let truncated = SimFs::new(left.disk.clone());
                    let file = truncated.open(&Path::new("/store").join(&*name));
                    let file = file.expect("it is there");
                    file.set_len(bytes).expect("it can be truncated");
                    check((*truncated.disk()).clone(), damaged, &|| {
                        format!("{bytes} bytes of {name}, closed: {close}")
                    })?;
                }
            }
            let used = content.iter().rposition(|byte| *byte != 0).unwrap_or(0) as u64;
            let ahead = (8 * (used + 64)..8 * content.len() as u64).step_by(997);
            let used = 0..8 * content.len().min(used as usize + 64) as u64;
            for bit in used.chain(ahead) {
                let mut flipped = left.disk.clone();
                flipped.flip(file, bit);
                let what = || format!("bit {bit} of {name}, closed: {close}");
                if damaged == Damaged::Run && bit % 5 == 0 {
                    let found = finds(&SimFs::new(flipped.clone()), &name);
                    found.map_err(|wrong| self.wrong(&wrong, &what()))?;
                }
                check(flipped, damaged, &what)?;
            }
        }
        // Files that have each other's names are found, and all that is in them.
        let names = left.disk.files().into_iter().map(|(name, _)| name);
        let runs: Vec<_> = names.filter(|name| name.starts_with("run-")).collect();
        for pair in runs.windows(2) {
            let swapped = SimFs::new(left.disk.clone());
            let [one, other, between] =
                [&*pair[0], &*pair[1], "between"].map(|name| Path::new("/store").join(name));
            for (from, to) in [(&one, &between), (&other, &one), (&between, &other)] {
                swapped.rename(from, to).expect("it is there");
            }
            check((*swapped.disk()).clone(), Damaged::Run, &|| {
                format!("{pair:?} exchanged, closed: {close}")
            })?;
        }
        Ok(counts)
    }
}

/// Checks that a check of the store finds a fault of this file, if the file is needed.
fn finds(fs: &SimFs, name: &str) -> Result<(), String> {
    let survey = survey(fs).map_err(|error| format!("it cannot be looked at: {error}"))?;
    let report = verify(&survey, &mut |_| ControlFlow::Continue(()));
    let report = report.map_err(|error| format!("it cannot be checked: {error}"))?;
    let is_unneeded = || {
        survey
            .unneeded_files()
            .iter()
            .any(|unneeded| unneeded == name)
    };
    if report.faults.iter().any(|fault| fault.file == name) || is_unneeded() {
        Ok(())
    } else {
        Err(format!("the fault is not found: {:?}", report.faults))
    }
}
