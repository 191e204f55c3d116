//! The manifest: the list of runs, and other state that must survive.
//!
//! It is a log of edits, each synced before anything relies on it: a file is complete and durable
//! before an edit names it, and is removed after the edit that forgets it. With the first edit
//! after the store was opened, and when the log has become long, a new one with the whole state as
//! its first record replaces it by a rename.

mod contents;
mod edit;
mod meta;

pub(crate) use contents::Contents;
pub(crate) use edit::Edit;
pub(crate) use meta::{CompactionMeta, RunMeta};

use crate::directory::put_files;
use crate::error::Error;
use crate::fs::{Directory, File, remove_if_there};
use crate::lifetime;
use crate::log::{self, LogIdentity, LogKind, LogReader, LogWriter, Next, Position};
use std::io;
use std::sync::Arc;

pub(crate) const NAME: &str = "manifest";
pub(crate) const NEW_NAME: &str = "manifest.new";
/// A log that is longer than this, and than four times its first record, is replaced.
const LONG_BYTES: u64 = 256 << 10;

/// A file that is kept beside those of a store, under its name with `.new` behind it.
pub(crate) type NewFile<'n> = (&'n str, Box<dyn File>);

/// The manifest of an open store.
pub(crate) struct Manifest {
    directory: Arc<dyn Directory>,
    /// The log of this opening; `None` before its first edit, as it does not go on with the log of
    /// an earlier one.
    log: Option<Log>,
    /// The number of the last log.
    number: u64,
    contents: Contents,
}

/// The log that edits are written to. Its file is open only while one is written: edits are rare,
/// and a process may have many stores.
struct Log {
    writer: LogWriter,
    /// The length after its first record.
    began: u64,
    /// The end of the last edit. All before is durable.
    durable: Position,
}

impl Manifest {
    /// Returns the contents of the manifest of a store, and the number of its log; `None` if there
    /// is none.
    pub(crate) fn read(directory: &dyn Directory) -> Result<Option<(Contents, u64)>, Error> {
        let file = match directory.open(NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&error, "open of manifest")),
        };
        // A manifest gets this name only when it is complete.
        let unreadable = || Error::corrupt("manifest: the header is not readable");
        let mut log =
            LogReader::open(Arc::from(file), NAME, LogKind::Manifest)?.ok_or_else(unreadable)?;
        let mut contents = None;
        while let Next::Record(payload) = log.next()? {
            let edit = Edit::decode(payload)?;
            match &mut contents {
                None => contents = Some(Contents::new(edit)?),
                Some(contents) => contents.apply(edit)?,
            }
        }
        let end = log.position();
        if log.later_durable()?.is_some_and(|durable| durable > end) {
            return Err(Error::corrupt(format_args!(
                "manifest: the edit at {} was spoilt",
                end.offset
            )));
        }
        let contents =
            contents.ok_or_else(|| Error::corrupt("manifest: the first edit is not readable"))?;
        if contents.store != log.identity().store {
            return Err(Error::corrupt("manifest: it belongs to another store"));
        }
        if log.identity().format != format_of(&contents) {
            return Err(Error::corrupt(
                "manifest: it has the format of another store",
            ));
        }
        Ok(Some((contents, log.identity().number)))
    }

    /// Returns `true` if a directory has a manifest, of any format, whether or not all of it is
    /// readable.
    pub(crate) fn is_there(directory: &dyn Directory) -> bool {
        let Ok(file) = directory.open(NAME) else {
            return false;
        };
        match LogReader::open(Arc::from(file), NAME, LogKind::Manifest) {
            Ok(log) => log.is_some(),
            Err(error) => matches!(error, Error::NewerFormat { .. }),
        }
    }

    /// Makes the manifest that has these contents and a log with this number.
    pub(crate) fn new(directory: Arc<dyn Directory>, contents: Contents, number: u64) -> Self {
        Manifest {
            directory,
            log: None,
            number,
            contents,
        }
    }

    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Makes the contents durable, also if an earlier process has written them and the disk may not
    /// have them. Syncs [new](crate::directory::write_new) files of the directory, and gives them
    /// their names behind the manifest.
    ///
    /// # Errors
    /// The errors of [`write`](Manifest::write).
    pub(crate) fn renew(&mut self, beside: &[NewFile<'_>]) -> Result<(), WriteError> {
        let contents = self.contents.clone();
        self.replace(contents, beside)
    }

    /// Writes an edit. When this returns it is durable.
    ///
    /// # Errors
    /// An error of the system. `Broken` says that it is unknown whether the edit is there.
    pub(crate) fn write(&mut self, edit: Edit) -> Result<(), WriteError> {
        let mut contents = self.contents.clone();
        let payload = edit.encode();
        contents.apply(edit).map_err(WriteError::Refused)?;
        let is_long = |log: &Log| log.writer.position().offset > LONG_BYTES.max(4 * log.began);
        let Some(log) = self.log.as_mut().filter(|log| !is_long(log)) else {
            return self.replace(contents, &[]);
        };
        let reopened = self
            .directory
            .open(NAME)
            .and_then(|file| log.writer.reopen(Arc::from(file)));
        reopened.map_err(|error| WriteError::Refused(Error::io(&error, "open of manifest")))?;
        let written = log.write(&payload);
        if written.is_ok() {
            log.mark(contents.next_number);
            self.contents = contents;
        }
        log.writer.close();
        written
    }

    /// Replaces the log by one with these contents. The rename is the moment of the change: an
    /// error before it leaves everything as it was.
    fn replace(&mut self, contents: Contents, beside: &[NewFile<'_>]) -> Result<(), WriteError> {
        let number = self.number + 1;
        let mut writer = prepare(&*self.directory, number, &contents)
            .and_then(|writer| {
                beside.iter().try_for_each(|(_, file)| file.sync())?;
                Ok(writer)
            })
            .map_err(|error| WriteError::Refused(Error::io(&error, "writing a new manifest")))?;
        let renamed = self.directory.rename(NEW_NAME, NAME);
        renamed.map_err(|error| WriteError::Broken(Error::io(&error, "replacing the manifest")))?;
        let names: Vec<_> = beside.iter().map(|(name, _)| *name).collect();
        put_files(&*self.directory, &names).map_err(WriteError::Broken)?;
        writer.close();
        let durable = writer.position();
        self.log = Some(Log {
            writer,
            began: durable.offset,
            durable,
        });
        self.number = number;
        self.contents = contents;
        Ok(())
    }
}

impl Log {
    /// Writes an edit, and syncs it.
    fn write(&mut self, payload: &[u8]) -> Result<(), WriteError> {
        self.writer.append(&[payload], self.durable);
        if let Err(error) = self.writer.write() {
            let error = Error::io(&error, "write of manifest");
            return Err(match self.writer.truncate() {
                Ok(()) => WriteError::Refused(error),
                Err(_) => WriteError::Broken(error),
            });
        }
        let synced = self.writer.file().and_then(|file| file.sync());
        synced.map_err(|error| WriteError::Broken(Error::io(&error, "sync of manifest")))
    }

    /// Writes an edit that changes nothing, and is not synced. It says that the last one is
    /// durable: otherwise, if that is spoilt later, it would be taken for one that was never
    /// finished.
    fn mark(&mut self, next_number: u64) {
        let nothing = Edit {
            next_number: Some(next_number),
            ..Edit::default()
        };
        self.durable = self.writer.position();
        self.writer.append(&[&nothing.encode()], self.durable);
        // Without it, all is as well as before.
        let _ = self.writer.write();
    }
}

/// The reason why an edit was not written.
pub(crate) enum WriteError {
    /// The edit was not written; the caller may try again.
    Refused(Error),
    /// The edit may have been written or not.
    Broken(Error),
}

/// Prepares the first manifest of a directory, as
/// [`prepare_file`](crate::directory::prepare_file) does with other files.
pub(crate) fn prepare_first(directory: &dyn Directory, contents: &Contents) -> Result<(), Error> {
    let prepared = prepare(directory, 1, contents);
    prepared
        .map(drop)
        .map_err(|error| Error::io(&error, "writing a new manifest"))
}

/// Returns the format of a manifest with these contents.
fn format_of(contents: &Contents) -> u32 {
    if lifetime::is_marked(contents.operator.as_ref()) {
        log::FORMAT_OF_LIFETIMES
    } else {
        log::PLAIN_FORMAT
    }
}

/// Writes a manifest under another name.
fn prepare(directory: &dyn Directory, number: u64, contents: &Contents) -> io::Result<LogWriter> {
    remove_if_there(directory, NEW_NAME)?;
    let identity = LogIdentity {
        store: contents.store,
        kind: LogKind::Manifest,
        number,
        format: format_of(contents),
    };
    let file = Arc::from(directory.create(NEW_NAME)?);
    let mut log = LogWriter::create(file, identity)?;
    let start = Position { number, offset: 0 };
    log.append(&[&contents.to_edit().encode()], start);
    log.write()?;
    log.file()?.sync()?;
    Ok(log)
}
