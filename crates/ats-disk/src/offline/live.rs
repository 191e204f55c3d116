//! The directory of a store that another program has open for writing, as it is at a moment.
//!
//! The owner adds to the manifest and to journals, and removes files that are not needed any more.
//! So these logs are read once and kept, and the run files that the manifest names are held open: a
//! file can be read as long as it is open. Where one of them is gone already, the manifest has
//! changed, and is read again. Journals are read from the newest to the oldest: a record is true of
//! the journals before it when these are read.
//!
//! Nothing is locked, and nothing is written.

use crate::directory::{StoreDirectory, open_dir};
use crate::error::Error;
use crate::fs::{Directory, File, FileSystem, Sharing, with_retries};
use crate::journal;
use crate::manifest::{self, Manifest};
use crate::run_file::{file_name, file_number};
use std::any::Any;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// Attempts to find all files that a manifest names.
const ATTEMPTS: usize = 1000;

/// Holds the files of a store as they are at a moment.
pub(super) fn hold(file_system: Arc<dyn FileSystem>, path: &Path) -> Result<StoreDirectory, Error> {
    let file_system = with_retries(file_system);
    let directory = open_dir(&*file_system, path)?;
    let is_gone = |held: &io::Result<Held>| {
        let error = held.as_ref().err();
        error.is_some_and(|error| error.kind() == ErrorKind::NotFound)
    };
    let mut held = Held::new(&directory);
    for _ in 1..ATTEMPTS {
        if !is_gone(&held) {
            break;
        }
        held = Held::new(&directory);
    }
    Ok(StoreDirectory {
        file_system,
        directory: Arc::new(held.map_err(|error| Error::io(&error, "opening files"))?),
        sharing: Sharing::Shared,
        lock: Box::new(()),
    })
}

/// A directory with the files of a moment.
struct Held {
    directory: Arc<dyn Directory>,
    files: BTreeMap<String, Arc<dyn File>>,
    /// The names of other files.
    others: Vec<String>,
}

impl Held {
    fn new(directory: &Arc<dyn Directory>) -> io::Result<Self> {
        let names = directory.list()?;
        let mut held = Held {
            directory: Arc::clone(directory),
            files: BTreeMap::new(),
            others: Vec::new(),
        };
        if names.iter().any(|name| name == manifest::NAME) {
            held.copy_log(manifest::NAME)?;
        }
        // The survey reports a manifest that cannot be read, and lists all run files then.
        let contents = Manifest::read(&held).ok().flatten();
        let contents = contents.map(|(contents, _)| contents);
        let mut journals = Vec::new();
        for name in names {
            match (file_number(&name), journal::number(&name), &contents) {
                (Some(_), _, None) => held.hold(&name)?,
                (Some(_), _, Some(_)) => {}
                (_, Some(number), Some(contents)) if number < contents.first_journal => {}
                (_, Some(number), _) => journals.push(number),
                _ if [manifest::NAME, manifest::NEW_NAME].contains(&&name[..]) => {}
                _ => held.others.push(name),
            }
        }
        journals.sort_unstable();
        for number in journals.into_iter().rev() {
            held.copy_log(&journal::name(number))?;
        }
        let runs = contents.iter().flat_map(|contents| &contents.runs);
        for file in runs.flat_map(|run| &run.files) {
            held.hold(&file_name(file.number))?;
        }
        Ok(held)
    }

    /// Holds a file open that does not change.
    fn hold(&mut self, name: &str) -> io::Result<()> {
        let file = Arc::from(self.directory.open(name)?);
        self.files.insert(name.to_owned(), file);
        Ok(())
    }

    /// Reads a file that may grow meanwhile. Bytes behind the end that the first look finds are
    /// left out; those before it are there at the second look.
    fn copy_log(&mut self, name: &str) -> io::Result<()> {
        let file = self.directory.open(name)?;
        let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(usize::MAX)];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        let end = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        let _cut_meanwhile = file.read_at(&mut bytes[..end], 0)?;
        self.files.insert(name.to_owned(), Arc::new(Copied(bytes)));
        Ok(())
    }
}

fn read_only<T>() -> io::Result<T> {
    Err(ErrorKind::ReadOnlyFilesystem.into())
}

impl Directory for Held {
    fn lock(&self, _sharing: Sharing) -> io::Result<Box<dyn Any + Send + Sync>> {
        Ok(Box::new(()))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.keys().chain(&self.others).cloned().collect())
    }

    fn create(&self, _name: &str) -> io::Result<Box<dyn File>> {
        read_only()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        match self.files.get(name) {
            Some(file) => Ok(Box::new(Shared(Arc::clone(file)))),
            None if self.others.iter().any(|other| other == name) => self.directory.open(name),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        read_only()
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        read_only()
    }

    fn link(&self, _name: &str, _to: &dyn Directory) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of a file.
struct Copied(Vec<u8>);

impl File for Copied {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(start..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        read_only()
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn set_len(&self, _bytes: u64) -> io::Result<()> {
        read_only()
    }

    fn reserve(&self, _bytes: u64) -> io::Result<()> {
        read_only()
    }
}

/// A file that others have, too, which is only read.
struct Shared(Arc<dyn File>);

impl File for Shared {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        read_only()
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, _bytes: u64) -> io::Result<()> {
        read_only()
    }

    fn reserve(&self, _bytes: u64) -> io::Result<()> {
        read_only()
    }
}
