//! The content of the directory of a store, found without reading the records.

use super::{Fault, live};
use crate::directory::StoreDirectory;
use crate::error::Error;
use crate::fs::{Directory, File, FileSystem, Sharing};
use crate::ids::{FileNumber, JournalNumber};
use crate::journal;
use crate::lifetime;
use crate::log::{LogIdentity, LogKind, LogReader, Next};
use crate::manifest::{self, Contents, Edit};
use crate::operator_id::OperatorId;
use crate::run_file::file_number;
use crate::run_file::{FileMeta, Footer};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Content of the directory of a store.
///
/// The store cannot be opened for writing while this lives, unless it is a [live](Survey::live)
/// one.
pub struct Survey {
    is_live: bool,
    pub(super) directory: StoreDirectory,
    pub(super) names: Vec<String>,
    /// The number of the store, if a file tells it.
    pub(super) store: Option<u128>,
    pub(super) operator: Option<OperatorId>,
    /// The contents of the manifest, if all of it can be read.
    pub(super) contents: Option<Contents>,
    /// The run files by their numbers: those of their names, or those of their footers if these say
    /// another one.
    pub(super) run_files: BTreeMap<FileNumber, FoundFile>,
    /// The faults so far.
    pub(super) faults: Vec<Fault>,
}

/// A run file that is there.
#[derive(Clone)]
pub(super) struct FoundFile {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// The footer, if it can be read, and is of this store.
    pub(super) footer: Option<Footer>,
    /// The reason, if it cannot be read.
    pub(super) why: Option<String>,
}

impl FoundFile {
    /// Reads it as the file of which the manifest says this: a footer that says something else is
    /// not its footer.
    pub(super) fn as_of(&self, meta: &FileMeta) -> FoundFile {
        let mut found = self.clone();
        found.footer = found.footer.filter(|footer| footer.meta == *meta);
        found
    }
}

/// A run, as the manifest says.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunSurvey {
    /// The sequence numbers of the first and the last change in it.
    pub changes: (u64, u64),
    /// The files of the run, in the order of their keys.
    pub files: Vec<FileSurvey>,
}

/// A run file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileSurvey {
    /// The name of the file.
    pub name: String,
    /// The length of the file.
    pub bytes: u64,
    /// Entries of keys.
    pub entries: u64,
    /// Entries that are operands.
    pub operands: u64,
    /// Entries that are deletes.
    pub deletes: u64,
    /// Ranges that are deleted.
    pub range_deletes: u64,
    /// Bytes of the keys of all entries.
    pub key_bytes: u64,
    /// Bytes of the values of all entries.
    pub value_bytes: u64,
    /// The lowest and the highest key, if there are keys.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
}

/// A journal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JournalSurvey {
    /// The name of the journal.
    pub name: String,
    /// The length of the journal, with the room that was made ahead.
    pub bytes: u64,
    /// `true` if the manifest says that it is needed.
    pub is_needed: bool,
}

impl FileSurvey {
    fn of(meta: &FileMeta) -> Self {
        let key = |key: &[u8]| key.to_vec();
        FileSurvey {
            name: crate::run_file::file_name(meta.number),
            bytes: meta.bytes,
            entries: meta.entries,
            operands: meta.operands,
            deletes: meta.deletes,
            range_deletes: meta.range_deletes,
            key_bytes: meta.key_bytes,
            value_bytes: meta.value_bytes,
            keys: meta.bounds().map(|(first, last)| (key(first), key(last))),
        }
    }
}

impl Survey {
    /// Returns the directory, with its lock.
    #[must_use]
    pub fn into_directory(self) -> StoreDirectory {
        self.directory
    }

    /// Looks at the directory of a store, which stays locked.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no file of a store; [`Error::Locked`] if it is open for
    /// writing; [`Error::NewerFormat`]; and [`Error::Io`] if the directory cannot be listed. A
    /// fault of a file is no error here.
    pub fn new(file_system: Arc<dyn FileSystem>, directory: &Path) -> Result<Self, Error> {
        Survey::of(StoreDirectory::open(
            file_system,
            directory,
            Sharing::Shared,
        )?)
    }

    /// Surveys a store as it is at this moment, which another program may have open for writing.
    /// Nothing is locked, and no writer waits. Writes that the other program has only in memory are
    /// in its journals, which are copied to memory; run files stay open as long as this lives, so
    /// that they can be read when they were removed.
    ///
    /// # Errors
    /// The errors of [`new`](Survey::new) but [`Error::Locked`]; [`Error::Io`] if there are more
    /// files than the process may have open.
    pub fn live(file_system: Arc<dyn FileSystem>, directory: &Path) -> Result<Self, Error> {
        let held = live::hold(file_system, directory)?;
        Ok(Survey {
            is_live: true,
            ..Survey::of(held)?
        })
    }

    /// Returns `true` if another program may have it open for writing.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Like [`new`](Survey::new), of a directory that is open and locked.
    ///
    /// # Errors
    /// The errors of [`new`](Survey::new).
    pub fn of(directory: StoreDirectory) -> Result<Self, Error> {
        let names = directory.names()?;
        let is_ours = |name: &String| {
            name == manifest::NAME || file_number(name).is_some() || journal::number(name).is_some()
        };
        if !names.iter().any(is_ours) {
            return Err(Error::Missing);
        }
        let mut survey = Survey {
            is_live: false,
            directory,
            names,
            store: None,
            operator: None,
            contents: None,
            run_files: BTreeMap::new(),
            faults: Vec::new(),
        };
        survey.names.sort_unstable();
        survey.read_manifest()?;
        if survey.store.is_none() {
            survey.store = survey.store_of_journals();
        }
        survey.read_footers()?;
        survey.compare();
        Ok(survey)
    }

    /// Returns the faults that the manifest, the names and the ends of files show.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Returns the number that tells the store from others.
    #[must_use]
    pub fn store(&self) -> Option<u128> {
        self.store
    }

    /// Returns the name and the version of the merge operator of the store.
    #[must_use]
    pub fn operator(&self) -> Option<(&str, u32)> {
        let operator = self.operator.as_ref();
        operator.map(|(name, version)| (&name[..], *version))
    }

    /// Returns `true` if records [expire](crate::Options::lifetime): values begin with deadlines
    /// then, which [`Lifetime::split`](crate::Lifetime::split) takes off.
    #[must_use]
    pub fn expires(&self) -> bool {
        lifetime::is_marked(self.operator.as_ref())
    }

    /// Returns `true` if a file tells the merge operator, or that there is none.
    #[must_use]
    pub fn knows_operator(&self) -> bool {
        self.operator.is_some() || self.contents.is_some()
    }

    /// Returns the runs, from the newest to the oldest. `None` if the manifest cannot be read.
    #[must_use]
    pub fn runs(&self) -> Option<Vec<RunSurvey>> {
        let runs = self.contents.as_ref()?.runs.iter();
        let runs = runs.map(|run| RunSurvey {
            changes: (run.first_seq.get(), run.last_seq.get()),
            files: run.files.iter().map(FileSurvey::of).collect(),
        });
        Some(runs.collect())
    }

    /// Returns the number of changes that are in runs. `None` if the manifest cannot be read.
    #[must_use]
    pub fn changes_in_runs(&self) -> Option<u64> {
        self.contents
            .as_ref()
            .map(|contents| contents.flushed.get())
    }

    /// Compactions that were begun and not ended, or `None` if the manifest cannot be read.
    #[must_use]
    pub fn compactions(&self) -> Option<usize> {
        self.contents
            .as_ref()
            .map(|contents| contents.compactions.len())
    }

    /// Returns the journals that are there, from the oldest to the newest.
    #[must_use]
    pub fn journals(&self) -> Vec<JournalSurvey> {
        let first = self
            .contents
            .as_ref()
            .map_or(JournalNumber::default(), |contents| contents.first_journal);
        let journals = self.journal_numbers().into_iter().map(|number| {
            let name = journal::name(number);
            let file = self.open(&name);
            JournalSurvey {
                bytes: file.and_then(|file| file.len()).unwrap_or(0),
                name,
                is_needed: number >= first,
            }
        });
        journals.collect()
    }

    /// Returns the files of a store that are not needed: those that were begun, or not removed yet,
    /// when the store was left. Without a manifest they are not known.
    #[must_use]
    pub fn unneeded_files(&self) -> Vec<String> {
        let Some(contents) = &self.contents else {
            return Vec::new();
        };
        let is_unneeded = |name: &&String| match (file_number(name), journal::number(name)) {
            (Some(number), _) => contents.files().all(|needed| needed != number),
            (_, Some(number)) => number < contents.first_journal,
            _ => *name == manifest::NEW_NAME,
        };
        self.names.iter().filter(is_unneeded).cloned().collect()
    }

    /// Reads a file whole that is beside those of the store; `None` if it is not there.
    ///
    /// # Errors
    /// The errors of [`StoreDirectory::read`].
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.directory.read(name)
    }

    /// Returns the numbers of all journals, ascending.
    pub(super) fn journal_numbers(&self) -> Vec<JournalNumber> {
        let numbers = self.names.iter().filter_map(|name| journal::number(name));
        let mut numbers: Vec<_> = numbers.collect();
        numbers.sort_unstable();
        numbers
    }

    pub(super) fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.directory.directory.open(name)
    }

    fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Reads the manifest. If an edit of it is spoilt, only the store and its operator are taken
    /// from it.
    fn read_manifest(&mut self) -> Result<(), Error> {
        match Manifest::read(&*self.directory.directory) {
            Ok(Manifest {
                store,
                operator,
                contents,
                fault,
            }) => {
                self.store = store;
                self.operator = operator;
                self.contents = contents;
                self.faults.extend(fault);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the store of which most journals are, by their headers.
    fn store_of_journals(&self) -> Option<u128> {
        let mut counts = BTreeMap::new();
        for number in self.journal_numbers() {
            let name = journal::name(number);
            let Ok(file) = self.open(&name) else { continue };
            if let Ok(Some(log)) = LogReader::open(Arc::from(file), &name, LogKind::Journal) {
                *counts.entry(log.identity().store).or_insert(0) += 1;
            }
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(store, _)| store)
    }

    /// Reads the footers of all run files.
    fn read_footers(&mut self) -> Result<(), Error> {
        let mut found = Vec::new();
        for name in &self.names {
            let Some(number) = file_number(name) else {
                continue;
            };
            let file = self.open(name).and_then(|file| Ok((file.len()?, file)));
            let (bytes, footer) = match file {
                Ok((bytes, file)) => (bytes, Footer::read(&*file, bytes, name)),
                Err(error) => (0, Err(Error::io(&error, format_args!("open of {name}")))),
            };
            match footer {
                Err(error @ Error::NewerFormat { .. }) => return Err(error),
                footer => found.push((number, name.clone(), bytes, footer)),
            }
        }
        if self.store.is_none() {
            let mut counts = BTreeMap::new();
            for footer in found.iter().filter_map(|found| found.3.as_ref().ok()) {
                *counts.entry(footer.identity.store).or_insert(0) += 1;
            }
            self.store = counts
                .into_iter()
                .max_by_key(|(_, count)| *count)
                .map(|(store, _)| store);
        }
        let (store, mut operator) = (self.store, self.operator.clone());
        let mut strays = Vec::new();
        for (number, name, bytes, footer) in found {
            let mut file = FoundFile {
                name,
                bytes,
                footer: None,
                why: None,
            };
            match footer {
                Err(Error::Corrupt(why)) => file.why = Some(why),
                Err(error) => file.why = Some(error.to_string()),
                Ok(footer) if Some(footer.identity.store) != store => {
                    file.why = Some("it belongs to another store".into());
                }
                Ok(footer) => {
                    if self.contents.is_none() && operator.is_none() {
                        operator.clone_from(&footer.operator);
                    }
                    let real = footer.identity.number;
                    file.footer = Some(footer);
                    if real != number {
                        strays.push((real, file));
                        continue;
                    }
                }
            }
            self.run_files.insert(number, file);
        }
        self.operator = operator;
        // Files that have the names of others.
        for (real, file) in strays {
            let what = format!("it is run file {real}");
            let is_known = self
                .run_files
                .get(&real)
                .is_some_and(|file| file.footer.is_some());
            self.fault(Fault::new(&file.name, None, what));
            if !is_known {
                self.run_files.insert(real, file);
            }
        }
        Ok(())
    }

    /// Compares the manifest with the directory.
    fn compare(&mut self) {
        let Some(contents) = &self.contents else {
            let bad = self
                .run_files
                .values()
                .filter_map(|file| Some((file, file.why.as_ref()?)));
            let faults: Vec<_> = bad
                .map(|(file, why)| Fault::new(&file.name, None, why))
                .collect();
            self.faults.extend(faults);
            return;
        };
        let mut faults = Vec::new();
        for meta in contents.runs.iter().flat_map(|run| &run.files) {
            let name = crate::run_file::file_name(meta.number);
            let what = match self.run_files.get(&meta.number) {
                None => Some("it is missing".to_owned()),
                Some(FoundFile { why: Some(why), .. }) => Some(why.clone()),
                Some(file) if file.bytes != meta.bytes => {
                    let (found, wanted) = (file.bytes, meta.bytes);
                    Some(format!("it has {found} bytes, not {wanted}"))
                }
                Some(file) => {
                    let is_it = file
                        .footer
                        .as_ref()
                        .is_some_and(|footer| footer.meta == *meta);
                    (!is_it).then(|| "it is another file than the manifest says".to_owned())
                }
            };
            faults.extend(what.map(|what| Fault::new(&name, None, what)));
        }
        self.faults.extend(faults);
    }
}

/// The part of a manifest that can be read.
#[derive(Default)]
struct Manifest {
    store: Option<u128>,
    operator: Option<OperatorId>,
    contents: Option<Contents>,
    fault: Option<Fault>,
}

impl Manifest {
    fn read(directory: &dyn Directory) -> Result<Self, Error> {
        let bad = |offset, what: &dyn std::fmt::Display| Manifest {
            fault: Some(Fault::new(manifest::NAME, offset, what)),
            ..Manifest::default()
        };
        let file: Arc<dyn File> = match directory.open(manifest::NAME) {
            Ok(file) => Arc::from(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(bad(None, &"it is missing"));
            }
            Err(error) => return Ok(bad(None, &error)),
        };
        let log = LogReader::open(Arc::clone(&file), manifest::NAME, LogKind::Manifest);
        let mut log = match log {
            Ok(Some(log)) => log,
            Ok(None) => return Ok(bad(Some(0), &"the header is not readable")),
            Err(error @ Error::NewerFormat { .. }) => return Err(error),
            Err(error) => return Ok(bad(Some(0), &error)),
        };
        let mut read = Manifest {
            store: Some(log.identity().store),
            ..Manifest::default()
        };
        match read.edits(&mut log) {
            Ok(()) => {}
            Err((offset, what)) => {
                read.fault = Some(Fault::new(manifest::NAME, Some(offset), what));
                read.contents = None;
            }
        }
        Ok(read)
    }

    /// Reads the edits. Returns the first fault and its offset.
    fn edits(&mut self, log: &mut LogReader) -> Result<(), (u64, String)> {
        let LogIdentity { store, .. } = log.identity();
        loop {
            let at = log.position();
            let wrong = |error: Error| (at.offset, error.to_string());
            match log.next().map_err(wrong)? {
                Next::Record(payload) => {
                    let edit = Edit::decode(payload).map_err(wrong)?;
                    match &mut self.contents {
                        None => {
                            let contents = Contents::new(edit).map_err(wrong)?;
                            self.operator.clone_from(&contents.operator);
                            self.contents = Some(contents);
                        }
                        Some(contents) => contents.apply(edit).map_err(wrong)?,
                    }
                }
                Next::End => {
                    let durable = log.later_durable().map_err(wrong)?;
                    if durable.is_some_and(|durable| durable > at) {
                        return Err((at.offset, "an edit was spoilt".into()));
                    }
                    break match &self.contents {
                        None => Err((at.offset, "the first edit is not readable".into())),
                        Some(contents) if contents.store != store => {
                            Err((at.offset, "it belongs to another store".into()))
                        }
                        Some(_) => Ok(()),
                    };
                }
            }
        }
    }
}
