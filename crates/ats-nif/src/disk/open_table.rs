//! A directory opened as the store of a table.
//!
//! The directory is opened and locked once; all files are reached through its handle. The file that
//! [describes](ats::terms::Description) the table gets its final name together with the manifest of
//! the store. A crash between the two leaves a store without records and description, or a
//! description and a manifest without its final name: such a directory counts as one without a
//! table.

use super::description_file::{TABLE_FILES, decode_description, not_a_table};
use super::failure::Failure;
use super::pending::Pending;
use super::settings::{Access, Settings};
use super::table_merge::TableMerge;
use super::table_store::TableStore;
use super::target::check_outside_tables;
use crate::atoms::KnownAtom;
use crate::process;
use crate::vm_codec::VmCodec;
use ats::terms::program_merge::{Program, ProgramMerge};
use ats::terms::{BagValues, Description, ObjectIdentity, ObjectMerge};
use ats_disk::offline::{Temporary, sync_name};
use ats_disk::{DiskStore, Error, Info, Snapshot};
use ats_store::{MayBlock, Store, StoreHandle};
use ats_sync::thread;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// An open table in a directory.
pub struct OpenTable {
    /// The store, until the table is dropped.
    store: Option<TableStore>,
    /// Shared by all owners of open files of the store, so that its last count is the last of them.
    files: Arc<()>,
    directory: PathBuf,
    /// The temporary directory in which the table is made, and its final directory.
    temporary: Option<(Temporary, PathBuf)>,
    description: Description,
    merge: TableMerge,
}

/// A store that does not change, as tables use it, and the same store with values merged by a
/// program, if the table has one.
pub(super) type FrozenStore = (Box<dyn StoreHandle>, Option<Arc<Pending<Box<dyn Store>>>>);

/// A snapshot of a table.
pub struct TableSnapshot {
    /// The store of the snapshot, as tables use it.
    pub store: Box<dyn StoreHandle>,
    /// The same store with values merged by a program, if the table has one.
    pub pending: Option<Arc<Pending<Box<dyn Store>>>>,
    /// Keeps the files and the memory of the snapshot alive.
    pub snapshot: Snapshot,
}

/// Returns, for a bag whose objects are records, the rule by which they are equal, and whether some
/// may share a record. Where objects expire, all objects of a key are one record, since they have
/// one deadline.
fn bag_of(description: &Description) -> Option<(Arc<dyn BagValues>, bool)> {
    let identity = || ObjectIdentity::new(Arc::new(VmCodec), description.zeros);
    let are_records = description.table_type.is_bag() && description.lifetime.is_none();
    are_records.then(|| {
        let identity: Arc<dyn BagValues> = Arc::new(identity());
        (identity, description.has_shared)
    })
}

/// Prefixes of the names of files that a store makes.
const OF_STORES: [&str; 6] = ["lock", "manifest", "journal", "reserve", "run-", NEW_NAME];
/// Name of the description file until it is complete.
const NEW_NAME: &str = "table.new";

impl OpenTable {
    /// Opens the table in a directory, or makes it. Replays the journal of the table.
    ///
    /// # Errors
    /// Returns a [`Failure`]; nothing is left open.
    pub fn open(directory: &Path, settings: &Settings) -> Result<Self, Failure> {
        let temporary = if settings.temporary {
            check_outside_tables(directory)?;
            let temporary = Temporary::make(directory, &TABLE_FILES)?;
            Some((temporary, directory.to_owned()))
        } else {
            None
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
                settings.renewed(description)
            }
            None => {
                check_free(&names, settings.create)?;
                settings.description()
            }
        };
        let merge = TableMerge::of(&description)?;
        // The description may exist before the manifest has its final name.
        let is_begun = !has_store && names.iter().any(|name| name == "manifest.new");
        let options = settings.options(!is_described || is_begun, &description, merge.operator());
        let beside = [(Description::FILE, &description.encode()[..])];
        let opened = DiskStore::open_with(locked, options, &beside);
        let store = opened.map_err(|error| match error {
            Error::Missing => Failure::new(KnownAtom::Damaged, "the manifest is missing"),
            // The description says that objects expire, and the store does not, or the other way
            // round.
            Error::Option { .. } if is_described => Failure::new(KnownAtom::Damaged, error),
            Error::Option { .. } => not_a_table("the directory has a store that is no table"),
            error => Failure::from(error),
        })?;
        if is_made && temporary.is_none() {
            sync_name(directory)?;
        }
        if has_store && !is_described {
            let made = has_records(&store).and_then(|has_records| {
                if has_records {
                    Err(not_a_table("the directory has a store that is no table"))
                } else {
                    Ok(store.replace_file(Description::FILE, &description.encode())?)
                }
            });
            if let Err(failure) = made {
                store.close()?;
                return Err(failure);
            }
        }
        // Older releases do not expect objects with records of their own, so the description says
        // so first.
        let is_renewed = is_described && settings.lifetime.is_some();
        if (description.has_shared || is_renewed) && settings.access == Access::ReadWrite {
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

    /// Returns the merge of objects that are written to the same key, if the table has one.
    pub fn merge(&self) -> Option<&ObjectMerge> {
        match &self.merge {
            TableMerge::Objects(merge) => Some(merge),
            TableMerge::LastWins | TableMerge::Program(_) => None,
        }
    }

    /// Returns the program that merges values, if the table has one.
    pub fn program(&self) -> Option<&Arc<ProgramMerge>> {
        match &self.merge {
            TableMerge::Program(merge) => Some(merge),
            TableMerge::LastWins | TableMerge::Objects(_) => None,
        }
    }

    /// Replaces the program that merges values, also for later openings of the table. All earlier
    /// values must have been merged.
    ///
    /// # Errors
    /// Returns a [`Failure`]; the table is then unchanged.
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

    /// Returns the store as tables use it.
    pub fn as_table(self: &Arc<Self>) -> Box<dyn StoreHandle> {
        match self.program() {
            None => Box::new(Arc::clone(self)),
            Some(merge) => Box::new(Pending::new(Arc::clone(self), Arc::clone(merge))),
        }
    }

    /// Takes a snapshot of the table. O(1).
    pub fn freeze(&self) -> TableSnapshot {
        self.freeze_at(self.store().files().snapshot())
    }

    /// Opens the table at a snapshot of its store. O(1).
    pub fn freeze_at(&self, snapshot: Snapshot) -> TableSnapshot {
        let (store, pending) = self.frozen(self.store().freeze(snapshot.clone()));
        TableSnapshot {
            store,
            pending,
            snapshot,
        }
    }

    /// Removes all records, at one moment for every reader and writer, and returns them as the
    /// store of a table, and as its pending values. O(1).
    ///
    /// # Errors
    /// Returns the errors of the store; nothing has changed then.
    pub fn take_all(&self, may_block: MayBlock) -> Result<FrozenStore, ats_store::Error> {
        Ok(self.frozen(self.store().keys().take_all(Some(may_block))?))
    }

    /// Returns records that do not change as tables use them.
    fn frozen(&self, records: Box<dyn Store>) -> FrozenStore {
        match self.program() {
            None => (Box::new(records), None),
            Some(merge) => {
                let pending = Arc::new(Pending::new(records, Arc::clone(merge)));
                (Box::new(Arc::clone(&pending)), Some(pending))
            }
        }
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// Returns a [`Failure`].
    pub fn sync(&self) -> Result<(), Failure> {
        Ok(self.store().files().sync()?)
    }

    /// Writes all memtables to runs.
    ///
    /// # Errors
    /// Returns a [`Failure`].
    pub fn flush(&self) -> Result<(), Failure> {
        Ok(self.store().files().flush()?)
    }

    /// Compacts all runs into one. Objects of a bag that share a record get records of their own
    /// first.
    ///
    /// # Errors
    /// Returns a [`Failure`].
    pub fn compact(&self) -> Result<(), Failure> {
        if let TableStore::Objects(store) = self.store()
            && store.has_shared()
        {
            store.rewrite()?;
            let description = Description {
                has_shared: false,
                ..self.description.clone()
            };
            // The records must be durable before the description says so.
            self.store().files().sync()?;
            let bytes = description.encode();
            self.store()
                .files()
                .replace_file(Description::FILE, &bytes)?;
        }
        Ok(self.store().files().compact()?)
    }

    /// Returns the store, for operations on single records.
    pub fn store(&self) -> &TableStore {
        let store = self.store.as_ref();
        store.expect("it is given up when this is dropped")
    }

    /// Returns the number of objects at a snapshot, if the store knew it then.
    pub fn known_len(&self, snapshot: &Snapshot) -> Option<usize> {
        // Each object has a record, unless those of a key may share one.
        if self.description.has_shared {
            None
        } else {
            snapshot.known_len()
        }
    }

    /// Returns the figures of the store.
    pub fn info(&self) -> Info {
        self.store().files().info()
    }

    /// Returns the path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the description of the table.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Flushes the memtables and unlocks the directory. Calls under way and later calls can no
    /// longer write.
    ///
    /// # Errors
    /// Returns a [`Failure`] if the memtables could not be flushed. The data is still in the
    /// journal, and the table is closed.
    pub fn close(&self) -> Result<(), Failure> {
        Ok(self.store().files().close()?)
    }

    /// Moves a closed table from its temporary directory to its final one.
    ///
    /// # Errors
    /// Returns a [`Failure`], also if the final directory exists.
    pub fn publish(&self) -> Result<(), Failure> {
        match &self.temporary {
            Some((temporary, target)) => Ok(temporary.publish(target)?),
            None => Ok(()),
        }
    }

    /// Returns a handle by which the end of the open files can be awaited.
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
    /// Dropping a store that was not closed ends its threads and frees its memory, which takes too
    /// long on a scheduler, so a thread does it.
    fn drop(&mut self) {
        let (store, files) = (self.store.take(), std::mem::take(&mut self.files));
        let temporary = self.temporary.take();
        let drop_in_order = move || {
            drop(store);
            // The files can be removed only after the store has unlocked them.
            drop(temporary);
            drop(files);
        };
        if process::on_dirty_scheduler() && process::may_block().is_some() {
            return drop_in_order();
        }
        // Without a thread the store is dropped here.
        let _thread = thread::spawn("ats-disk-drop", drop_in_order);
    }
}

/// Open files of a table.
pub struct OpenFiles(Weak<()>);

impl OpenFiles {
    /// Waits until the files are closed: until all references to the table are dropped, epochs have
    /// ended, and calls that read it have returned. A call may take long, so the time is limited.
    pub fn wait(&self) {
        let (begun, mut pause) = (Instant::now(), SHORTEST_PAUSE);
        while self.0.strong_count() > 0 && begun.elapsed() < STILL_READ {
            ats_sync::collect();
            std::thread::sleep(pause);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }
}

/// Time after a close at which a native call that still reads the table is taken for a long one.
const STILL_READ: Duration = Duration::from_millis(300);
/// Shortest pause between two checks for such calls. Mostly there are none, and epochs end at once.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Returns `true` if a table can be made in a directory: it has no files but the remains of a
/// failed attempt.
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
    Ok(!store.is_empty()?)
}
