//! Opening a directory as the store of a table, and closing it.
//!
//! The directory is opened and locked once; all files are reached through that. The file that
//! [describes](ats::Description) the table is written when the table is made, after the store was
//! opened. A process that ends between the two leaves a store without records and without
//! description: such a directory is taken for one in which nothing was made yet.

use super::failure::Failure;
use super::table_store::TableStore;
use crate::atoms::KnownAtom;
use crate::portable::VmCodec;
use crate::process;
use ats::program_merge::{Program, ProgramMerge, is_same};
use ats::{BagValues, Description, NoDescription, ObjectIdentity, ObjectMerge, TableType};
use ats_disk::fs::{RealFs, Sharing};
use ats_disk::{Compression, DiskStore, Durability, Error, Options, StoreDirectory};
use ats_store::{Direction, KeyRange, MergeOperator};
use ats_sync::thread;
use ats_term::Zeros;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How a table is opened. What is `None` is as the table was made, or the default.
pub struct Settings {
    /// Whether a table is made if there is none.
    pub create: bool,
    /// `true` if the table is only read: then nothing in its directory is written.
    pub read_only: bool,
    /// Its type.
    pub table_type: Option<TableType>,
    /// Where objects have their key, from 1.
    pub key_position: Option<usize>,
    /// How values are merged, as a [`Description`] says it.
    pub merge: Option<Vec<u8>>,
    /// The formats by which the program makes bytes of keys and values, as in a [`Description`].
    pub format: Option<Vec<u8>>,
    /// Which zeros are the same, in a table that is made.
    pub zeros: Zeros,
    /// When a write is on disk.
    pub durability: Durability,
    /// About how large a block is.
    pub block_bytes: Option<usize>,
    /// Bytes of memory that are used. `None` is what tables share.
    pub memory: Option<usize>,
    /// The most keys that are written to a run, where memory is not used up before.
    pub memtable_keys: Option<usize>,
    /// The compression of files that are written.
    pub compression: Compression,
    /// For how long a snapshot need not be read until it expires. `None` is for ever.
    pub snapshot_age: Option<Duration>,
}

/// An open table in a directory.
pub struct Opened {
    /// Until this is dropped.
    store: Option<TableStore>,
    /// Others have a count of it as long as there are files of the store that are open.
    files: Arc<()>,
    directory: PathBuf,
    description: Description,
    merging: Merging,
}

/// Tells, for a bag, which of its objects are equal, and whether some may share a record.
fn bag_of(description: &Description) -> Option<(Arc<dyn BagValues>, bool)> {
    let identity = || ObjectIdentity::new(Arc::new(VmCodec), description.zeros);
    description.table_type.is_bag().then(|| {
        let identity: Arc<dyn BagValues> = Arc::new(identity());
        (identity, description.has_shared)
    })
}

/// How values are merged that are written to the same key.
#[derive(Clone)]
enum Merging {
    /// They are not: the last one stays.
    Not,
    /// The elements behind the key.
    Objects(Arc<ObjectMerge>),
    /// By a program.
    Program(Arc<ProgramMerge>),
}

impl Merging {
    fn operator(&self) -> Option<Arc<dyn MergeOperator>> {
        match self {
            Merging::Not => None,
            Merging::Objects(merge) => Some(Arc::clone(merge) as Arc<dyn MergeOperator>),
            Merging::Program(merge) => Some(Arc::clone(merge) as Arc<dyn MergeOperator>),
        }
    }
}

/// Begins the names of files that a store makes.
const OF_STORES: [&str; 6] = ["lock", "manifest", "journal", "reserve", "run-", NEW_NAME];
/// Files of runs become at least as large as this.
const LEAST_FILE_BYTES: u64 = 1 << 20;
/// The name of the file that describes a table until it is complete.
const NEW_NAME: &str = "table.new";

impl Opened {
    /// Opens the table in a directory, or makes it. Reads what was not in runs when the table was left.
    ///
    /// # Errors
    /// [`Failure`]; nothing is left open then.
    pub fn open(directory: &Path, settings: &Settings) -> Result<Self, Failure> {
        let held = settings.hold(directory)?;
        let described = description(held.read(Description::FILE))?;
        let is_new = described.is_none();
        let description = match described {
            Some(description) => {
                settings.check(&description)?;
                description
            }
            None => {
                check_free(&held, settings.create)?;
                settings.description()
            }
        };
        let merging = merging_of(&description)?;
        let options = settings.options(is_new, merging.operator());
        let store = DiskStore::open_in(held, options).map_err(|error| match error {
            // What describes it is written after the store is made.
            Error::Missing => Failure::new(KnownAtom::Damaged, "the manifest is missing"),
            error => Failure::from(error),
        })?;
        if is_new {
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
        if description.has_shared && !settings.read_only {
            store.replace_file(Description::FILE, &description.encode())?;
        }
        Ok(Opened {
            store: Some(TableStore::new(store, bag_of(&description))),
            files: Arc::new(()),
            directory: directory.to_owned(),
            description,
            merging,
        })
    }

    /// How objects are merged that are written to the same key, if they are.
    pub fn merge(&self) -> Option<&ObjectMerge> {
        match &self.merging {
            Merging::Objects(merge) => Some(merge),
            Merging::Not | Merging::Program(_) => None,
        }
    }

    /// The merge of a program, if the table has one.
    pub fn program(&self) -> Option<&Arc<ProgramMerge>> {
        match &self.merging {
            Merging::Program(merge) => Some(merge),
            Merging::Not | Merging::Objects(_) => None,
        }
    }

    /// Has another program merge from now on, also when the table is opened again. All that was written must have been
    /// merged.
    ///
    /// # Errors
    /// [`Failure`]; then the table is what it was.
    pub fn set_program(&self, merge: &ProgramMerge, program: Program) -> Result<(), Failure> {
        let store = self.store().files();
        store.sync()?;
        let unnamed = || Failure::new(KnownAtom::Merge, "the module has no name");
        let description = Description {
            merge: merge.described(&program).ok_or_else(unnamed)?,
            ..self.description.clone()
        };
        store.replace_file(Description::FILE, &description.encode())?;
        merge.set_program(program);
        Ok(())
    }

    /// Merges all runs into one. Objects of a bag that share a record get records of their own first.
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

    /// The store.
    pub fn store(&self) -> &TableStore {
        let store = self.store.as_ref();
        store.expect("it is given up when this is dropped")
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What the table is.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Writes what is in memory to runs, and lets others open the directory. Calls that are made later, and those under
    /// way, can write no more.
    ///
    /// # Errors
    /// [`Failure`], if what was written could not be moved to runs. It is in the journal still, and the table is closed.
    pub fn close(&self) -> Result<(), Failure> {
        Ok(self.store().files().close()?)
    }

    /// Its open files.
    pub fn files(&self) -> OpenFiles {
        OpenFiles(Arc::downgrade(&self.files))
    }
}

impl Drop for Opened {
    /// It takes long to end the threads of a store that was not closed, and to free its memory: too long for the
    /// scheduler that has come to do this.
    fn drop(&mut self) {
        let (store, files) = (self.store.take(), std::mem::take(&mut self.files));
        let drop_in_order = move || {
            drop(store);
            drop(files);
        };
        if process::on_dirty_scheduler() && process::may_wait_for_devices() {
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
    /// epochs must have ended, and calls that read it. A process may read a snapshot for as long as
    /// it likes, so the time is limited.
    pub fn wait(&self) {
        let begun = Instant::now();
        while self.0.strong_count() > 0 && begun.elapsed() < STILL_READ {
            ats_sync::collect();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A call that still reads a table so long after it was closed may do so for long.
const STILL_READ: Duration = Duration::from_millis(300);

impl Settings {
    /// Opens and locks the directory, which is made if that is wanted, in one that is there.
    fn hold(&self, directory: &Path) -> Result<StoreDirectory, Failure> {
        let sharing = match self.read_only {
            true => Sharing::Shared,
            false => Sharing::Exclusive,
        };
        let held = match StoreDirectory::open(Arc::new(RealFs), directory, sharing) {
            Err(Error::Missing) if self.create => {
                merging_of(&self.description())?;
                // A name with a slip of the pen must not make directories.
                if !directory.parent().is_some_and(Path::is_dir) {
                    let text = "the directory in which it shall be is not there";
                    return Err(Failure::new(KnownAtom::Enoent, text));
                }
                StoreDirectory::make(Arc::new(RealFs), directory)
            }
            held => held,
        };
        held.map_err(of_directory)
    }

    fn description(&self) -> Description {
        Description {
            table_type: self.table_type.unwrap_or(TableType::Set),
            key_position: self.key_position.unwrap_or(1),
            zeros: self.zeros,
            merge: self.merge.clone().unwrap_or_default(),
            has_shared: false,
            format: self.format.clone().unwrap_or_default(),
        }
    }

    /// Whether a table that is there is the one that is wanted.
    fn check(&self, description: &Description) -> Result<(), Failure> {
        if self
            .table_type
            .is_some_and(|wanted| wanted != description.table_type)
        {
            let text = format!("the table is of type {}", description.table_type.name());
            return Err(Failure::new(KnownAtom::TypeMismatch, text));
        }
        if self
            .key_position
            .is_some_and(|wanted| wanted != description.key_position)
        {
            let text = format!("the table has its keys at {}", description.key_position);
            return Err(Failure::new(KnownAtom::KeyposMismatch, text));
        }
        if self
            .merge
            .as_ref()
            .is_some_and(|wanted| !is_same(wanted, &description.merge))
        {
            let text = "the table was made with another merge";
            return Err(Failure::new(KnownAtom::MergeMismatch, text));
        }
        if self
            .format
            .as_ref()
            .is_some_and(|wanted| *wanted != description.format)
        {
            let text = "the table was made with another format";
            return Err(Failure::new(KnownAtom::FormatMismatch, text));
        }
        Ok(())
    }

    fn options(&self, create: bool, operator: Option<Arc<dyn MergeOperator>>) -> Options {
        let default = Options::default();
        // Two memtables may be in use at a time, and are a third then.
        let memtable_bytes = self.memory.map(|memory| memory / 6);
        Options {
            create,
            operator,
            durability: self.durability,
            compression: self.compression,
            snapshot_age: self.snapshot_age,
            block_bytes: self.block_bytes.unwrap_or(default.block_bytes),
            memtable_bytes,
            memtable_keys: self.memtable_keys,
            // What a full disk needs as a reserve is as large as a file.
            file_bytes: memtable_bytes.map_or(default.file_bytes, |bytes| {
                (bytes as u64).clamp(LEAST_FILE_BYTES, default.file_bytes)
            }),
            cache_bytes: self.memory.map(|memory| memory / 3 * 2),
            ..default
        }
    }
}

fn merging_of(description: &Description) -> Result<Merging, Failure> {
    if description.merge.is_empty() {
        return Ok(Merging::Not);
    }
    if description.table_type.is_bag() {
        let text = "objects of a bag are not merged";
        return Err(Failure::new(KnownAtom::Merge, text));
    }
    if let Some(merge) = ProgramMerge::of(description) {
        return Ok(Merging::Program(Arc::new(merge)));
    }
    let merge = ObjectMerge::of(description);
    let unknown = || Failure::new(KnownAtom::Merge, "there is no such merge");
    let merge = merge.ok_or_else(unknown)?;
    Ok(Merging::Objects(Arc::new(merge)))
}

fn not_a_table(text: &str) -> Failure {
    Failure::new(KnownAtom::NotADatsTable, text)
}

/// The failure of a directory that cannot be opened.
pub(super) fn of_directory(error: Error) -> Failure {
    match error {
        Error::Missing => Failure::new(KnownAtom::Enoent, "there is no such directory"),
        Error::Io { error, .. } if error.kind == ErrorKind::NotADirectory => {
            not_a_table("it is a file, and a table is a directory")
        }
        error => Failure::from(error),
    }
}

/// What the table in a directory is; `None` if no table was made there.
pub fn describe(directory: &Path) -> Result<Option<Description>, Failure> {
    let file_system = Arc::new(RealFs);
    description(StoreDirectory::read_unlocked(
        file_system,
        directory,
        Description::FILE,
    ))
}

/// Decodes the file that describes a table, if it is there.
pub(super) fn description(
    read: Result<Option<Vec<u8>>, Error>,
) -> Result<Option<Description>, Failure> {
    let Some(bytes) = read.map_err(of_directory)? else {
        return Ok(None);
    };
    match Description::decode(&bytes) {
        Ok(description) => Ok(Some(description)),
        Err(error @ NoDescription::Damaged) => Err(Failure::new(KnownAtom::Damaged, error)),
        Err(error @ NoDescription::Newer(_)) => Err(Failure::new(KnownAtom::NewerFormat, error)),
    }
}

/// Returns `true` if a table can be made in a directory: it has nothing but what was left of making one.
fn check_free(held: &StoreDirectory, create: bool) -> Result<(), Failure> {
    let names = held.names()?;
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
