//! The manifest: which runs there are, and what else must survive.
//!
//! It is a log of edits, each synced before anything relies on it: a file is complete and durable before an edit
//! names it, and is removed after the edit that forgets it. When the store is opened, and when the log has become
//! long, a new one with the whole state as its first record is put in its place by a rename.

mod contents;
mod edit;

pub(crate) use contents::{Contents, MergeMeta, RunMeta};
pub(crate) use edit::Edit;

use crate::error::Error;
use crate::fs::FileSystem;
use crate::log::{LogIdentity, LogKind, LogReader, LogWriter, Next, Position};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) const NAME: &str = "manifest";
pub(crate) const NEW_NAME: &str = "manifest.new";
/// A log that is longer than this, and than four times its first record, is replaced.
const LONG_BYTES: u64 = 256 << 10;

/// The manifest of an open store.
pub(crate) struct Manifest {
    file_system: Arc<dyn FileSystem>,
    directory: PathBuf,
    log: LogWriter,
    number: u64,
    contents: Contents,
    /// The length of the log after its first record.
    began: u64,
    /// The end of the last edit. All before is durable.
    durable: Position,
}

impl Manifest {
    /// What the manifest of a store says, and the number of its log; `None` if there is none.
    pub(crate) fn read(
        file_system: &dyn FileSystem,
        directory: &Path,
    ) -> Result<Option<(Contents, u64)>, Error> {
        let file = match file_system.open(&directory.join(NAME)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&error, "open of manifest")),
        };
        // It has this name only since it was complete.
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
        Ok(Some((contents, log.identity().number)))
    }

    /// Puts a manifest with these contents in the place of what there is.
    pub(crate) fn create(
        file_system: Arc<dyn FileSystem>,
        directory: &Path,
        number: u64,
        contents: Contents,
    ) -> Result<Self, Error> {
        let log = prepare(&*file_system, directory, number, &contents)
            .map_err(|error| Error::io(&error, "writing a new manifest"))?;
        replace(&*file_system, directory)
            .map_err(|error| Error::io(&error, "replacing the manifest"))?;
        let durable = log.position();
        Ok(Manifest {
            file_system,
            directory: directory.to_owned(),
            log,
            number,
            contents,
            began: durable.offset,
            durable,
        })
    }

    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Writes an edit. When this returns it is durable.
    ///
    /// # Errors
    /// An error of the system. `Broken` says that it is unknown whether the edit is there.
    pub(crate) fn write(&mut self, edit: Edit) -> Result<(), WriteError> {
        let mut contents = self.contents.clone();
        let payload = edit.encode();
        contents.apply(edit).map_err(WriteError::Refused)?;
        if self.log.position().offset > LONG_BYTES.max(4 * self.began) {
            // The rename is what counts: an error before it leaves everything as it was.
            let number = self.number + 1;
            let log = prepare(&*self.file_system, &self.directory, number, &contents).map_err(
                |error| WriteError::Refused(Error::io(&error, "writing a new manifest")),
            )?;
            replace(&*self.file_system, &self.directory)
                .map_err(|error| WriteError::Broken(Error::io(&error, "replacing the manifest")))?;
            self.durable = log.position();
            self.began = self.durable.offset;
            self.log = log;
            self.number = number;
        } else {
            self.log.append(&[&payload], self.durable);
            if let Err(error) = self.log.write() {
                let error = Error::io(&error, "write of manifest");
                return Err(match self.log.cut() {
                    Ok(()) => WriteError::Refused(error),
                    Err(_) => WriteError::Broken(error),
                });
            }
            self.log
                .file()
                .sync()
                .map_err(|error| WriteError::Broken(Error::io(&error, "sync of manifest")))?;
            self.contents = contents;
            self.mark();
            return Ok(());
        }
        self.contents = contents;
        Ok(())
    }

    /// Writes an edit that changes nothing, and is not synced. It says that the last one is durable: otherwise, if
    /// that is spoilt later, it would be taken for one that was never finished.
    fn mark(&mut self) {
        self.durable = self.log.position();
        let nothing = Edit {
            next_number: Some(self.contents.next_number),
            ..Edit::default()
        };
        self.log.append(&[&nothing.encode()], self.durable);
        // Without it, all is as well as before.
        let _ = self.log.write();
    }
}

/// Why an edit was not written.
pub(crate) enum WriteError {
    /// It is not there. It may be tried again.
    Refused(Error),
    /// It may be there or not.
    Broken(Error),
}

/// Writes a manifest under another name.
fn prepare(
    file_system: &dyn FileSystem,
    directory: &Path,
    number: u64,
    contents: &Contents,
) -> io::Result<LogWriter> {
    let new = directory.join(NEW_NAME);
    match file_system.remove(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let identity = LogIdentity {
        store: contents.store,
        kind: LogKind::Manifest,
        number,
    };
    let file = Arc::from(file_system.create(&new)?);
    let mut log = LogWriter::create(file, identity)?;
    let start = Position { number, offset: 0 };
    log.append(&[&contents.to_edit().encode()], start);
    log.write()?;
    log.file().sync()?;
    Ok(log)
}

/// Puts it in the place of the manifest.
fn replace(file_system: &dyn FileSystem, directory: &Path) -> io::Result<()> {
    file_system.rename(&directory.join(NEW_NAME), &directory.join(NAME))?;
    file_system.sync_dir(directory)
}
