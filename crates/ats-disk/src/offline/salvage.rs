//! Reading the rest of a damaged store, and writing it to a new one.

use super::Fault;
use super::layer::Layers;
use super::survey::Survey;
use crate::batch::Batch;
use crate::directory::StoreDirectory;
use crate::entry::Kind;
use crate::entry::collapse::Chain;
use crate::error::Error;
use crate::options::Options;
use crate::progress::{OnProgress, Progress};
use crate::store::DiskStore;
use ats_store::{MergeOperator, Merged};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// The number of bytes that are written to the new store at a time.
const BATCH_BYTES: usize = 256 << 10;
/// After so many records the progress is told.
const RECORDS_PER_STEP: u64 = 4096;

/// Reader of the records of a store whose files are damaged or missing.
///
/// Each record is a value that its key had after some write. It is the last one, unless the key is
/// among the [keys](Fault::keys) of a fault: then newer values may be lost, and a key that was
/// deleted may be there. A key of which too little is left is not there. Without a manifest, a file
/// that is missing altogether is not noticed.
///
/// ```
/// use ats_disk::fs::RealFs;
/// use ats_disk::offline::{Salvage, Survey};
/// use ats_disk::{DiskStore, Options};
/// use std::sync::Arc;
///
/// let directory = std::env::temp_dir().join(format!("ats-disk-salvage-{}", std::process::id()));
/// let store = DiskStore::open(&directory, Options::new())?;
/// store.put(b"apples", b"3")?;
/// store.close()?;
///
/// std::fs::remove_file(directory.join("manifest")).expect("it was there");
/// assert!(DiskStore::open(&directory, Options::new()).is_err());
///
/// let survey = Survey::new(Arc::new(RealFs), &directory)?;
/// let mut salvage = Salvage::new(&survey)?;
/// assert_eq!(salvage.faults()[0].to_string(), "manifest: it is missing");
/// let record = salvage.next()?.expect("a record");
/// assert_eq!((&record.key[..], record.value.as_deref()), (&b"apples"[..], Some(&b"3"[..])));
/// assert_eq!(salvage.next()?, None);
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), ats_disk::Error>(())
/// ```
pub struct Salvage {
    layers: Layers,
    chain: Chain,
    outdated: u64,
}

/// A record that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvagedRecord {
    /// Its key.
    pub key: Vec<u8>,
    /// The value that the operands are merged with. `None` if there is none; then there are
    /// operands.
    pub value: Option<Vec<u8>>,
    /// The operands that are merged with the value, from the oldest to the newest.
    pub operands: Vec<Vec<u8>>,
}

impl Salvage {
    /// Reads the journals, and all blocks of all runs that are needed, to see which of them are
    /// whole.
    ///
    /// # Errors
    /// No error for damage; [`Error::Io`] and [`Error::Corrupt`] if bytes that were read at first
    /// cannot be read again.
    pub fn new(survey: &Survey) -> Result<Self, Error> {
        Salvage::with_progress(survey, &mut |_| ControlFlow::Continue(()))?
            .ok_or_else(|| Error::corrupt("nothing breaks it off"))
    }

    /// Like [`new`](Salvage::new), but tells how many bytes of files were read. Returns `None` if
    /// it is broken off.
    ///
    /// # Errors
    /// The errors of [`new`](Salvage::new).
    pub fn with_progress(
        survey: &Survey,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<Option<Self>, Error> {
        let mut progress = Progress {
            done: 0,
            total: survey.run_files.values().map(|file| file.bytes).sum(),
        };
        let mut is_broken_off = false;
        let layers = Layers::read(survey, &mut |bytes| {
            progress.done = (progress.done + bytes).min(progress.total);
            is_broken_off |= on_progress(progress).is_break();
            !is_broken_off
        })?;
        Ok((!is_broken_off).then_some(Salvage {
            layers,
            chain: Chain::new(),
            outdated: 0,
        }))
    }

    /// Returns the faults of the store.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.layers.faults
    }

    /// Entries of runs that are lost, as far as the manifest or a footer tells how many there were.
    #[must_use]
    pub fn lost_entries(&self) -> u64 {
        self.layers.lost_entries
    }

    /// Returns the number of keys so far that are without newer operands, since something older was
    /// lost.
    #[must_use]
    pub fn outdated_keys(&self) -> u64 {
        self.outdated
    }

    /// Returns the next record, in the order of keys. `None` at the end.
    ///
    /// # Errors
    /// The errors of [`new`](Salvage::new).
    #[expect(
        clippy::should_implement_trait,
        reason = "it is used as other walks of this crate are"
    )]
    pub fn next(&mut self) -> Result<Option<SalvagedRecord>, Error> {
        loop {
            let Some(key) = self.layers.key().map(<[u8]>::to_vec) else {
                return Ok(None);
            };
            let is_outdated = self.layers.gather(&key, &mut self.chain)?;
            self.outdated += u64::from(is_outdated);
            let mut record = SalvagedRecord {
                key,
                ..SalvagedRecord::default()
            };
            for entry in (0..self.chain.len()).rev() {
                match self.chain.entry(entry) {
                    (Kind::Put, value) => record.value = Some(value.to_vec()),
                    (Kind::Operand, operand) => record.operands.push(operand.to_vec()),
                    (Kind::Delete, _) => {}
                }
            }
            if record.value.is_some() || !record.operands.is_empty() {
                return Ok(Some(record));
            }
        }
    }
}

/// The outcome for a store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Salvaged {
    /// The number of records that were written.
    pub records: u64,
    /// The number of them that have operands.
    pub with_operands: u64,
    /// The number of keys that are without newer operands, since something older was lost.
    pub outdated: u64,
    /// Entries of runs that are lost, as far as that is known.
    pub lost_entries: u64,
    /// The faults of the store.
    pub faults: Vec<Fault>,
    /// `true` if it was broken off.
    pub is_broken_off: bool,
}

/// Writes the rest of a store to a new one, in a directory that is missing or empty. The options
/// are those of the new store; of their operator, the name and the version matter if no file of the
/// damaged store tells them. See [`Salvage`] for the meaning of the records. `beside` are the names
/// and bytes of files that belong to the store besides its records: they are written when all
/// records are durable.
///
/// # Errors
/// [`Error::NoOperator`] if there are operands, and nothing tells the operator. As those of
/// [`Salvage::new`], and those of [`DiskStore::open`] and [`DiskStore::write`] for the new store.
/// [`Error::Io`] of the kind [`AlreadyExists`](io::ErrorKind::AlreadyExists) if the directory has
/// files.
pub fn salvage(
    survey: &Survey,
    target: &Path,
    options: Options,
    beside: &[(&str, &[u8])],
    on_progress: &mut OnProgress<'_>,
) -> Result<Salvaged, Error> {
    let target = StoreDirectory::make(Arc::clone(&options.file_system), target)?;
    if !target.names()?.is_empty() {
        let error = io::Error::from(io::ErrorKind::AlreadyExists);
        return Err(Error::io(
            &error,
            "the directory of the new store has files",
        ));
    }
    let mut salvaged = Salvaged::default();
    let Some(mut salvage) = Salvage::with_progress(survey, on_progress)? else {
        salvaged.is_broken_off = true;
        return Ok(salvaged);
    };
    let given = options
        .operator
        .as_deref()
        .filter(|_| !survey.knows_operator());
    let given = given.map(|operator| (operator.name(), operator.version()));
    let operator = survey.operator().or(given).map(|(name, version)| {
        let kept: Arc<dyn MergeOperator> = Arc::new(KeepOperands::new(name, version));
        kept
    });
    let store = DiskStore::open_in(
        target,
        Options {
            operator,
            create: true,
            ..options
        },
    )?;
    let mut progress = Progress {
        done: 0,
        total: salvage.layers.content_bytes(),
    };
    let mut batch = Batch::new();
    while let Some(record) = salvage.next()? {
        let SalvagedRecord {
            key,
            value,
            operands,
        } = &record;
        progress.done += (key.len() + value.as_ref().map_or(0, Vec::len)) as u64;
        if batch.bytes() + value.as_ref().map_or(0, Vec::len) > BATCH_BYTES {
            store.write(&batch)?;
            batch.clear();
        }
        if let Some(value) = value {
            batch.put(key, value)?;
        }
        for operand in operands {
            if batch.bytes() > BATCH_BYTES {
                store.write(&batch)?;
                batch.clear();
            }
            batch.merge(key, operand)?;
        }
        salvaged.records += 1;
        salvaged.with_operands += u64::from(!operands.is_empty());
        if salvaged.records.is_multiple_of(RECORDS_PER_STEP) && on_progress(progress).is_break() {
            salvaged.is_broken_off = true;
            break;
        }
    }
    // Keys may end with the numbers of old changes: new changes have larger ones.
    store.skip_numbers(salvage.layers.last_seq);
    store.write(&batch)?;
    if !salvaged.is_broken_off {
        store.flush()?;
        for (name, bytes) in beside {
            store.replace_file(name, bytes)?;
        }
    }
    store.close()?;
    salvaged.outdated = salvage.outdated;
    salvaged.lost_entries = salvage.layers.lost_entries;
    salvaged.faults = salvage.layers.faults;
    Ok(salvaged)
}

/// An operator that merges nothing: it has the name and the version of another one, and opens the
/// stores of that, whose operands stay as they are.
#[derive(Clone, Debug)]
pub struct KeepOperands {
    name: String,
    version: u32,
}

impl KeepOperands {
    /// Makes a stand-in for the operator with this name and version.
    #[must_use]
    pub fn new(name: &str, version: u32) -> Self {
        KeepOperands {
            name: name.to_owned(),
            version,
        }
    }
}

impl MergeOperator for KeepOperands {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn merge(
        &self,
        _key: &[u8],
        _earlier: &[u8],
        _later: &[u8],
    ) -> Result<Merged, ats_store::Error> {
        Err(ats_store::Error::Merge)
    }
}
