//! Opening a directory as the store of a table, and closing it.
//!
//! The directory is opened and locked once; all files are reached through that. The file that
//! [describes](ats::Description) the table gets its name with the manifest of the store. A stop of
//! the machine between the two leaves a store without records and without description, or a
//! description and a manifest without its name: such a directory is taken for one in which nothing
//! was made yet.

use super::description_file::{TABLE_FILES, decode_description, not_a_table};
use super::failure::Failure;
use super::pending::Pending;
use super::settings::{Access, Settings};
use super::table_merge::TableMerge;
use super::table_store::TableStore;
use crate::atoms::KnownAtom;
use crate::process;
use crate::vm_codec::VmCodec;
use ats::program_merge::{Program, ProgramMerge};
use ats::{BagValues, Description, ObjectIdentity, ObjectMerge};
use ats_disk::offline::{Temporary, sync_name};
use ats_disk::{DiskStore, Error, Info, Snapshot};
use ats_store::{Direction, KeyRange, Store, StoreHandle};
use ats_sync::thread;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// An open table in a directory.
pub struct OpenTable {
    /// Until this is dropped.
    store: Option<TableStore>,
    /// Others have a count of it as long as there are files of the store that are open.
    files: Arc<()>,
    directory: PathBuf,
    /// The temporary directory that it is made in, and the directory that it shall have.
    temporary: Option<(Temporary, PathBuf)>,
    description: Description,
    merge: TableMerge,
}

/// A table as it was at a moment.
pub struct TableSnapshot {
    /// Its store as a table sees it that is on it.
    pub store: Box<dyn StoreHandle>,
    /// The same where a program says what keys have, if one does.
    pub pending: Option<Arc<Pending<Box<dyn Store>>>>,
    /// The owners of the files and of the memory.
    pub snapshot: Snapshot,
}

/// Tells, for a bag, which of its objects are equal, and whether some may share a record.
fn bag_of(description: &Description) -> Option<(Arc<dyn BagValues>, bool)> {
    let identity = || ObjectIdentity::new(Arc::new(VmCodec), description.zeros);
    description.table_type.is_bag().then(|| {
        let identity: Arc<dyn BagValues> = Arc::new(identity());
        (identity, description.has_shared)
    })
}

/// Begins the names of files that a store makes.
const OF_STORES: [&str; 6] = ["lock", "manifest", "journal", "reserve", "run-", NEW_NAME];
/// The name of the file that describes a table until it is complete.
const NEW_NAME: &str = "table.new";

impl OpenTable {
    /// Opens the table in a directory, or makes it. Reads what was not in runs when the table was
    /// left.
    ///
    /// # Errors
    /// [`Failure`]; nothing is left open then.
    pub fn open(directory: &Path, settings: &Settings) -> Result<Self, Failure> {
        let temporary = match settings.temporary {
            true => Some((
                Temporary::make(directory, &TABLE_FILES)?,
                directory.to_owned(),
            )),
            false => None,
        };
        let made = temporary.as_ref().map(|(temporary, _)| temporary.store());
        let directory = made.as_deref().unwrap_or(directory);
        let (locked, is_made) = settings.lock_directory(directory)?;
        let described = decode_description(locked.read(Description::FILE))?;
        let names = locked.names()?;
        let has_store = names.iter().any(|name| name == "manifest");
        let is_described = described.is_some();
        let description = match described {
            Some(description) => {
                settings.check(&description)?;
                description
            }
            None => {
                check_free(&names, settings.create)?;
                settings.description()
            }
        };
        let merge = TableMerge::of(&description)?;
        // The description can be there before the manifest has its name.
        let is_begun = !has_store && names.iter().any(|name| name == "manifest.new");
        let options = settings.options(!is_described || is_begun, merge.operator());
        let beside = [(Description::FILE, &description.encode()[..])];
        let opened = DiskStore::open_with(locked, options, &beside);
        let store = opened.map_err(|error| match error {
            Error::Missing => Failure::new(KnownAtom::Damaged, "the manifest is missing"),
            error => Failure::from(error),
        })?;
        if is_made && temporary.is_none() {
            sync_name(directory)?;
        }
        if has_store && !is_described {
            let made = has_records(&store).and_then(|has_records| match has_records {
                true => Err(not_a_table("the directory has a store that is no table")),
                false => Ok(store.replace_file(Description::FILE, &description.encode())?),
            });
            if let Err(failure) = made {
                store.close()?;
                return Err(failure);
            }
        }
        // Objects with records of their own are not what an older release expects.
        if description.has_shared && settings.access == Access::ReadWrite {
            store.replace_file(Description::FILE, &description.encode())?;
        }
        Ok(OpenTable {
            store: Some(TableStore::new(store, bag_of(&description))),
            files: Arc::new(()),
            directory: directory.to_owned(),
            temporary,
            description,
            merge,
        })
    }

    /// The merge of objects that are written to the same key, if they are merged.
    pub fn merge(&self) -> Option<&ObjectMerge> {
        match &self.merge {
            TableMerge::Objects(merge) => Some(merge),
            TableMerge::LastWins | TableMerge::Program(_) => None,
        }
    }

    /// The merge of a program, if the table has one.
    pub fn program(&self) -> Option<&Arc<ProgramMerge>> {
        match &self.merge {
            TableMerge::Program(merge) => Some(merge),
            TableMerge::LastWins | TableMerge::Objects(_) => None,
        }
    }

    /// Has another program merge from now on, also when the table is opened again. All that was
    /// written must have been merged.
    ///
    /// # Errors
    /// [`Failure`]; then the table is what it was.
    pub fn set_program(&self, merge: &ProgramMerge, program: Program) -> Result<(), Failure> {
        let store = self.store().files();
        store.sync()?;
        let unnamed = || Failure::new(KnownAtom::Merge, "the module has no name");
        let description = Description {
            merge: merge.describe_successor(&program).ok_or_else(unnamed)?,
            ..self.description.clone()
        };
        store.replace_file(Description::FILE, &description.encode())?;
        merge.set_program(program);
        Ok(())
    }

    /// The store as a table sees it that is on it.
    pub fn as_table(self: &Arc<Self>) -> Box<dyn StoreHandle> {
        match self.program() {
            None => Box::new(Arc::clone(self)),
            Some(merge) => Box::new(Pending::new(Arc::clone(self), Arc::clone(merge))),
        }
    }

    /// The table as it is at this moment. O(1).
    pub fn freeze(&self) -> TableSnapshot {
        self.freeze_at(self.store().files().snapshot())
    }

    /// The table as it was at a moment. O(1).
    pub fn freeze_at(&self, snapshot: Snapshot) -> TableSnapshot {
        let frozen = self.store().freeze(snapshot.clone());
        let (store, pending): (Box<dyn StoreHandle>, _) = match self.program() {
            None => (Box::new(frozen), None),
            Some(merge) => {
                let pending = Arc::new(Pending::new(frozen, Arc::clone(merge)));
                (Box::new(Arc::clone(&pending)), Some(pending))
            }
        };
        TableSnapshot {
            store,
            pending,
            snapshot,
        }
    }

    /// Makes all durable that was written before.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn sync(&self) -> Result<(), Failure> {
        Ok(self.store().files().sync()?)
    }

    /// Writes to runs what is in memory.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn flush(&self) -> Result<(), Failure> {
        Ok(self.store().files().flush()?)
    }

    /// Merges all runs into one. Objects of a bag that share a record get records of their own
    /// first.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn compact(&self) -> Result<(), Failure> {
        if let TableStore::Objects(store) = self.store()
            && store.has_shared()
        {
            store.rewrite()?;
            let description = Description {
                has_shared: false,
                ..self.description.clone()
            };
            // The file must not say so before it is so.
            self.store().files().sync()?;
            let bytes = description.encode();
            self.store()
                .files()
                .replace_file(Description::FILE, &bytes)?;
        }
        Ok(self.store().files().compact()?)
    }

    /// The store: what calls do with single records.
    pub fn store(&self) -> &TableStore {
        let store = self.store.as_ref();
        store.expect("it is given up when this is dropped")
    }

    /// Number of objects at a moment, if the store knew it then.
    pub fn known_len(&self, snapshot: &Snapshot) -> Option<usize> {
        // Each object has a record, unless those of a key may share one.
        match self.description.has_shared {
            true => None,
            false => snapshot.known_len(),
        }
    }

    /// The figures of the store.
    pub fn info(&self) -> Info {
        self.store().files().info()
    }

    /// The path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The description of the table.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Writes what is in memory to runs, and lets others open the directory. Calls that are made
    /// later, and those under way, can write no more.
    ///
    /// # Errors
    /// [`Failure`], if what was written could not be moved to runs. It is in the journal still, and
    /// the table is closed.
    pub fn close(&self) -> Result<(), Failure> {
        Ok(self.store().files().close()?)
    }

    /// Gives a table that was made in a temporary directory, and is closed, the directory that it
    /// shall have.
    ///
    /// # Errors
    /// [`Failure`], also if something has that name.
    pub fn publish(&self) -> Result<(), Failure> {
        match &self.temporary {
            Some((temporary, target)) => Ok(temporary.publish(target)?),
            None => Ok(()),
        }
    }

    /// Its open files.
    pub fn files(&self) -> OpenFiles {
        OpenFiles(Arc::downgrade(&self.files))
    }
}

impl StoreHandle for OpenTable {
    fn store(&self) -> &dyn Store {
        self.store().keys()
    }
}

impl Drop for OpenTable {
    /// It takes long to end the threads of a store that was not closed, and to free its memory: too
    /// long for the scheduler that has come to do this.
    fn drop(&mut self) {
        let (store, files) = (self.store.take(), std::mem::take(&mut self.files));
        let temporary = self.temporary.take();
        let drop_in_order = move || {
            drop(store);
            // Its files can only be removed when the store does not lock them any more.
            drop(temporary);
            drop(files);
        };
        if process::on_dirty_scheduler() && process::may_block().is_some() {
            return drop_in_order();
        }
        // If there can be no thread, the store is dropped here.
        let _thread = thread::spawn("ats-disk-drop", drop_in_order);
    }
}

/// The open files of a table.
pub struct OpenFiles(Weak<()>);

impl OpenFiles {
    /// Waits until they are closed, which they are when nothing refers to the table any more:
    /// epochs must have ended, and calls that read it. A call may take long, so the time is
    /// limited.
    pub fn wait(&self) {
        let (begun, mut pause) = (Instant::now(), SHORTEST_PAUSE);
        while self.0.strong_count() > 0 && begun.elapsed() < STILL_READ {
            ats_sync::collect();
            std::thread::sleep(pause);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }
}

/// A native call that still reads a table so long after it was closed may do so for long.
const STILL_READ: Duration = Duration::from_millis(300);
/// The pauses between looks for such calls. Mostly there are none, and epochs end at once.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Returns `true` if a table can be made in a directory: it has nothing but what was left of making
/// one.
fn check_free(names: &[String], create: bool) -> Result<(), Failure> {
    let is_ours = |name: &String| OF_STORES.iter().any(|start| name.starts_with(start));
    if !names.iter().all(is_ours) {
        return Err(not_a_table("the directory has other files"));
    }
    match create {
        true => Ok(()),
        false if names.is_empty() => Err(Failure::new(KnownAtom::Enoent, "there is no table")),
        false => Err(not_a_table("no table was completely made in the directory")),
    }
}

fn has_records(store: &DiskStore) -> Result<bool, Failure> {
    let mut scan = store.scan(KeyRange::default(), Direction::Up)?;
    Ok(scan.next()?.is_some())
}
