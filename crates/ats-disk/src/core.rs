//! What the parts of an open store share.

use crate::background::Background;
use crate::commit::{Queue, Writing};
use crate::compaction::Merging;
use crate::directory::{DirectoryLock, StoreDirectory};
use crate::doomed::Doomed;
use crate::error::Error;
use crate::file::{Cache, Settings};
use crate::fork;
use crate::fs::{Directory, FileSystem, Sharing};
use crate::gaps::Gaps;
use crate::journal::NextJournal;
use crate::lull::Lull;
use crate::manifest::Manifest;
use crate::memory::Share;
use crate::operator_id::OperatorId;
use crate::options::Options;
use crate::pressure::Pressure;
use crate::registry::Registry;
use crate::reserve::Reserve;
use crate::snapshot::Snapshots;
use crate::spare::Spare;
use crate::state::State;
use crate::stats::Stats;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// An open store. Its functions are beside what they are about: [`commit`](crate::commit), [`read`](crate::read),
/// [`flush`](crate::flush), [`compaction`](crate::compaction).
///
/// Locks are taken in this order, each while those before it may be held: `writing`, `manifest`,
/// `swapping`; the lock of the registry, that of the queue and that of the gaps are taken last.
/// `manifest` is held while files are synced, so no writer takes it.
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) file_system: Arc<dyn FileSystem>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) store: u128,
    pub(crate) cache: Arc<Cache>,
    /// Nothing if memtables have memory of their own.
    pub(crate) share: Option<Arc<Share>>,
    /// How files of runs are written.
    pub(crate) settings: Settings,
    operator_id: Option<OperatorId>,
    pub(crate) state: ArcSwap<State>,
    /// Held while the state is exchanged.
    pub(crate) swapping: Mutex<()>,
    pub(crate) registry: Registry,
    pub(crate) gaps: Gaps,
    pub(crate) queue: Mutex<Queue>,
    pub(crate) writing: Mutex<Writing>,
    pub(crate) next_journal: NextJournal,
    pub(crate) manifest: Mutex<Manifest>,
    /// `true` if what the manifest says is known to be durable.
    pub(crate) is_manifest_durable: AtomicBool,
    /// The next number for a file or a run.
    pub(crate) next_number: AtomicU64,
    /// Held by the thread that writes memtables to runs.
    pub(crate) flushing: Mutex<()>,
    pub(crate) merging: Mutex<Merging>,
    pub(crate) doomed: Doomed,
    pub(crate) reserve: Reserve,
    /// Files that were not needed when the store was opened, and that were not removed yet.
    pub(crate) unneeded: Mutex<Vec<String>>,
    pub(crate) spare: Spare,
    pub(crate) lull: Lull,
    pub(crate) snapshots: Snapshots,
    pub(crate) pressure: Pressure,
    pub(crate) stats: Stats,
    pub(crate) background: Background,
    /// See [`fork`].
    copies: u64,
    /// Why nothing is written any more.
    broken: OnceLock<String>,
    /// `true` if the store was opened for reading: then it has no threads, and writes nothing.
    pub(crate) is_read_only: bool,
    /// Whether the store is being closed.
    pub(crate) closing: AtomicBool,
    /// The last error of a background thread.
    pub(crate) last_error: Mutex<Option<Error>>,
    /// Until it is dropped no other store opens the directory.
    pub(crate) directory_lock: DirectoryLock,
}

/// What a core is made of when the store is opened.
pub(crate) struct Opened {
    pub(crate) options: Options,
    pub(crate) directory: StoreDirectory,
    pub(crate) store: u128,
    pub(crate) cache: Arc<Cache>,
    pub(crate) settings: Settings,
    pub(crate) state: State,
    pub(crate) writing: Writing,
    pub(crate) manifest: Manifest,
}

impl Core {
    pub(crate) fn new(opened: Opened) -> Self {
        let Opened {
            options,
            directory,
            store,
            cache,
            settings,
            state,
            writing,
            manifest,
        } = opened;
        let is_read_only = directory.sharing == Sharing::Shared;
        let broken = match is_read_only {
            true => OnceLock::from(String::from("it was opened for reading")),
            false => OnceLock::new(),
        };
        Core {
            directory: directory.directory,
            store,
            cache,
            share: options.memtable_bytes.is_none().then(Share::join),
            settings,
            operator_id: manifest.contents().operator.clone(),
            state: ArcSwap::from_pointee(state),
            swapping: Mutex::default(),
            registry: Registry::new(writing.last_seq),
            gaps: Gaps::default(),
            queue: Mutex::default(),
            next_number: AtomicU64::new(manifest.contents().next_number),
            next_journal: NextJournal::new(writing.journal.number()),
            writing: Mutex::new(writing),
            manifest: Mutex::new(manifest),
            is_manifest_durable: AtomicBool::new(false),
            flushing: Mutex::default(),
            merging: Mutex::default(),
            doomed: Doomed::default(),
            reserve: Reserve::default(),
            unneeded: Mutex::default(),
            spare: Spare::default(),
            lull: Lull::default(),
            snapshots: Snapshots::default(),
            pressure: Pressure::new(Arc::clone(&directory.file_system)),
            stats: Stats::default(),
            background: Background::default(),
            copies: fork::copies(),
            broken,
            is_read_only,
            closing: AtomicBool::new(false),
            last_error: Mutex::default(),
            directory_lock: DirectoryLock::new(directory.lock),
            file_system: directory.file_system,
            options,
        }
    }

    /// # Errors
    /// [`Error::ReadOnly`] after a failure that has left unknown what is on disk.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        if self.is_copy() {
            let why = "this process is a copy, by fork, of the one that opened it";
            return Err(Error::ReadOnly(why.into()));
        }
        match self.broken.get() {
            None => Ok(()),
            Some(why) => Err(Error::ReadOnly(why.clone())),
        }
    }

    /// Whether this is a copy of the store in another process.
    pub(crate) fn is_copy(&self) -> bool {
        fork::is_copy(self.copies)
    }

    /// Lets another store open the directory, as soon as nothing of this one works there.
    pub(crate) fn release_directory(&self) {
        self.directory_lock
            .release(&*self.file_system, self.is_copy());
    }

    /// # Errors
    /// [`Error::ReadOnly`] while the store is being closed, which no writer may keep from its end.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        match self.closing.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::ReadOnly("it is being closed".into())),
        }
    }

    /// Lets nothing be written any more because of this error, which it returns.
    pub(crate) fn broken(&self, error: Error) -> Error {
        let why = match &error {
            Error::ReadOnly(why) => why.clone(),
            error => error.to_string(),
        };
        let _first = self.broken.set(why);
        error
    }

    /// How the values of the files are merged.
    pub(crate) fn operator_id(&self) -> Option<&OperatorId> {
        self.operator_id.as_ref()
    }

    /// A number for a file or a run, which no other has had.
    pub(crate) fn new_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }
}

/// The name of the file of a run with this number.
pub(crate) fn file_name(number: u64) -> String {
    format!("run-{number:08}")
}

/// The number of the file of a run with this name.
pub(crate) fn file_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix("run-")?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}
