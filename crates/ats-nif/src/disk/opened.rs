//! Opening a directory as the store of a table, and closing it.
//!
//! The file that [describes](ats::Description) the table is written when the table is made, after the store was opened,
//! which no other process can do at the same time. A process that ends between the two leaves a store without records
//! and without description: such a directory is taken for one in which nothing was made yet.

use super::failure::Failure;
use crate::atoms::KnownAtom;
use ats::program_merge::ProgramMerge;
use ats::{Description, NoDescription, ObjectMerge, TableType};
use ats_disk::{AtomicStore, DiskStore, Durability, Error, Options};
use ats_store::{Direction, KeyRange, MergeOperator};
use ats_term::Zeros;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

/// How a table is opened. What is `None` is as the table was made, or the default.
pub struct Settings {
    /// Whether a table is made if there is none.
    pub create: bool,
    /// Its type.
    pub table_type: Option<TableType>,
    /// Where objects have their key, from 1.
    pub key_position: Option<usize>,
    /// How values are merged, as a [`Description`] says it.
    pub merge: Option<Vec<u8>>,
    /// Which zeros are the same, in a table that is made.
    pub zeros: Zeros,
    /// When a write is on disk.
    pub durability: Durability,
    /// About how large a block is.
    pub block_bytes: Option<usize>,
    /// How much memory is used.
    pub memory: Option<usize>,
}

/// An open table in a directory.
pub struct Opened {
    /// Until this is dropped.
    store: Option<AtomicStore>,
    directory: PathBuf,
    description: Description,
    merging: Merging,
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
const OF_STORES: [&str; 5] = ["lock", "manifest", "journal", "run-", NEW_NAME];
/// The name of the file that describes a table until it is complete.
const NEW_NAME: &str = "table.new";

impl Opened {
    /// Opens the table in a directory, or makes it. Reads what was not in runs when the table was left.
    ///
    /// # Errors
    /// [`Failure`]; nothing is left open then.
    pub fn open(directory: &Path, settings: &Settings) -> Result<Self, Failure> {
        loop {
            let described = describe(directory)?;
            if described.is_none() {
                check_free(directory, settings.create)?;
            }
            let description = match &described {
                Some(description) => {
                    settings.check(description)?;
                    description.clone()
                }
                None => settings.description(),
            };
            let merging = merging_of(&description)?;
            let options = settings.options(described.is_none(), merging.operator());
            let store = DiskStore::open(directory, options).map_err(|error| match error {
                // What describes it is written after the store is made.
                Error::Missing => Failure::new(KnownAtom::Damaged, "the manifest is missing"),
                error => Failure::from(error),
            })?;
            // From here on no other process opens the directory.
            if described.is_none() {
                if describe(directory)?.is_some() {
                    // One has, just before.
                    store.close()?;
                    continue;
                }
                let made = has_records(&store).and_then(|has_records| match has_records {
                    true => Err(not_a_table("the directory has a store that is no table")),
                    false => write(directory, &description),
                });
                if let Err(failure) = made {
                    store.close()?;
                    return Err(failure);
                }
            }
            return Ok(Opened {
                store: Some(AtomicStore::new(store)),
                directory: directory.to_owned(),
                description,
                merging,
            });
        }
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

    /// The store.
    pub fn store(&self) -> &AtomicStore {
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
        Ok(self.store().store().close()?)
    }
}

impl Drop for Opened {
    /// It takes long to end the threads of a store that was not closed, and to free its memory: too long for the
    /// scheduler that has come to do this.
    fn drop(&mut self) {
        let store = self.store.take();
        let dropping = thread::Builder::new().name("ats-disk-drop".into());
        // If there can be no thread, the store is dropped here.
        let _thread = dropping.spawn(move || drop(store));
    }
}

impl Settings {
    fn description(&self) -> Description {
        Description {
            table_type: self.table_type.unwrap_or(TableType::Set),
            key_position: self.key_position.unwrap_or(1),
            zeros: self.zeros,
            merge: self.merge.clone().unwrap_or_default(),
        }
    }

    /// Whether a table that is there is the one that is wanted.
    fn check(&self, description: &Description) -> Result<(), Failure> {
        if self
            .table_type
            .is_some_and(|wanted| wanted != description.table_type)
        {
            let text = format!("the table is of type {}", name_of(description.table_type));
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
            .is_some_and(|wanted| *wanted != description.merge)
        {
            let text = "the table was made with another merge";
            return Err(Failure::new(KnownAtom::MergeMismatch, text));
        }
        Ok(())
    }

    fn options(&self, create: bool, operator: Option<Arc<dyn MergeOperator>>) -> Options {
        let default = Options::default();
        Options {
            create,
            operator,
            durability: self.durability,
            block_bytes: self.block_bytes.unwrap_or(default.block_bytes),
            // Two memtables may be in use at a time, and are a third then.
            memtable_bytes: self
                .memory
                .map_or(default.memtable_bytes, |memory| memory / 6),
            cache_bytes: self
                .memory
                .map_or(default.cache_bytes, |memory| memory / 3 * 2),
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

/// The name of a type in Erlang.
fn name_of(table_type: TableType) -> &'static str {
    match table_type {
        TableType::Set => "set",
        TableType::OrderedSet => "ordered_set",
        TableType::Bag => "bag",
        TableType::DuplicateBag => "duplicate_bag",
    }
}

fn not_a_table(text: &str) -> Failure {
    Failure::new(KnownAtom::NotADatsTable, text)
}

/// What the table in a directory is; `None` if no table was made there.
pub fn describe(directory: &Path) -> Result<Option<Description>, Failure> {
    let bytes = match fs::read(directory.join(Description::FILE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(not_a_table("it is a file, and a table is a directory"));
        }
        Err(error) => return Err(Failure::of_system(&error, "reading the file `table`")),
    };
    match Description::decode(&bytes) {
        Ok(description) => Ok(Some(description)),
        Err(error @ NoDescription::Damaged) => Err(Failure::new(KnownAtom::Damaged, error)),
        Err(error @ NoDescription::Newer(_)) => Err(Failure::new(KnownAtom::NewerFormat, error)),
    }
}

/// Whether a table can be made in a directory: there is none, or it has nothing but what was left of making one.
fn check_free(directory: &Path, create: bool) -> Result<(), Failure> {
    let missing = || Failure::new(KnownAtom::Enoent, "there is no table");
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound && create => {
            // A name with a slip of the pen must not make directories.
            let parent = directory.parent().is_some_and(Path::is_dir);
            return match parent {
                true => Ok(()),
                false => Err(Failure::new(
                    KnownAtom::Enoent,
                    "the directory in which it shall be is not there",
                )),
            };
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing()),
        Err(error) => return Err(Failure::of_system(&error, "listing the directory")),
    };
    let mut is_empty = true;
    for entry in entries {
        let entry = entry.map_err(|error| Failure::of_system(&error, "listing the directory"))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !OF_STORES.iter().any(|start| name.starts_with(start)) {
            return Err(not_a_table("the directory has other files"));
        }
        is_empty = false;
    }
    match create {
        true => Ok(()),
        false if is_empty => Err(missing()),
        false => Err(not_a_table("no table was completely made in the directory")),
    }
}

fn has_records(store: &DiskStore) -> Result<bool, Failure> {
    let mut scan = store.scan(KeyRange::default(), Direction::Up)?;
    Ok(scan.next()?.is_some())
}

/// Writes the file that describes a table, completely or not at all.
fn write(directory: &Path, description: &Description) -> Result<(), Failure> {
    let written = || -> io::Result<()> {
        let new = directory.join(NEW_NAME);
        let mut file = File::create(&new)?;
        file.write_all(&description.encode())?;
        file.sync_all()?;
        fs::rename(new, directory.join(Description::FILE))?;
        File::open(directory)?.sync_all()
    };
    written().map_err(|error| Failure::of_system(&error, "writing the file `table`"))
}
