//! Options of stores.

use crate::error::Error;
use crate::fs::{FileSystem, RealFs};
use crate::lifetime::is_of_store;
use ats_store::{Lifetime, MergeOperator};
use std::sync::Arc;
use std::time::Duration;

/// The moment at which a write is on disk.
///
/// | | the process is killed | the kernel stops, or power is lost |
/// |---|---|---|
/// | [`Always`](Durability::Always) | nothing is lost | nothing is lost that a write has returned for |
/// | [`Interval`](Durability::Interval) | nothing is lost | the writes of the last interval may be lost, and the time that a sync takes |
/// | [`System`](Durability::System) | nothing is lost | writes that the system still had in memory may be lost: some 30 seconds on Linux |
///
/// A crash loses only the newest part: the store is as it was after some write, and no batch is
/// there in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before a write returns. Writes that wait at the same time share one sync.
    Always,
    /// Writes are synced at most this long after they have returned. Not 0; less than a millisecond
    /// is as good as one.
    Interval(Duration),
    /// The system decides, and may be late.
    System,
}

/// The compression of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Blocks as they are.
    None,
    /// Compression with LZ4, where that makes a block smaller by an eighth at least.
    Lz4,
}

/// The options of opening a store. They may differ each time, except for the operator.
///
/// Each option has a function of its name that sets it. Later versions may have more options.
///
/// ```
/// # use ats_disk::{Compression, DiskStore, Durability, Options};
/// # let directory = std::env::temp_dir().join(format!("ats-disk-options-{}", std::process::id()));
/// let options = Options::new()
///     .durability(Durability::Always)
///     .compression(Compression::Lz4)
///     .cache_bytes(64 << 20);
/// let store = DiskStore::open(&directory, options)?;
/// store.put(b"pear", b"40")?; // on disk when this returns
/// # drop(store);
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), ats_disk::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The file system with the files.
    pub file_system: Arc<dyn FileSystem>,
    /// `true` if a store is made where there is none.
    pub create: bool,
    /// `true` if the store is only read. Then it must be there, and nothing in its directory is
    /// written, removed or repaired, so a directory of somebody else and a medium that cannot be
    /// written to will do. Others can open it for reading at the same time. Writes are refused with
    /// [`Error::ReadOnly`].
    pub read_only: bool,
    /// The operator that merges operands.
    pub operator: Option<Arc<dyn MergeOperator>>,
    /// The lifetime of records that are written without one of their own: [`Lifetime::For`] or
    /// [`Lifetime::Forever`]. `None`: records do not expire. A store is opened with some lifetime
    /// if it was made with one, and only then; each opening may have another one, which holds for
    /// the records that it writes.
    ///
    /// A value that is written begins with its [`Lifetime`] then, which has six bytes in files; a
    /// value that is read does not have it. All writes go through an
    /// [`AtomicStore`](crate::AtomicStore), or their values have deadlines; there are no operands
    /// but those that an `AtomicStore` merges at once. [`DiskStore::len`](crate::DiskStore::len)
    /// takes O(n) always, and a [`Diff`](crate::Diff) reads all records.
    pub lifetime: Option<Lifetime>,
    /// The moment at which a write is on disk, unless it says so itself.
    pub durability: Durability,
    /// Bytes of memory that writes fill before they go to a run, more than 0. Twice as many may be
    /// in use for a moment. `None`: the memory that the stores of the process
    /// [share](crate::set_shared_memory).
    pub memtable_bytes: Option<usize>,
    /// Keys that writes fill before they go to a run, more than 0, where bytes of memory do not do
    /// it before. `None` is any number.
    pub memtable_keys: Option<usize>,
    /// Bytes of memory for blocks, filters and indexes of files that were read, and for the buffers
    /// of compactions. Up to half of it is for working memory: a thousandth of the bytes on disk,
    /// and some MiB for each compaction. `None`: the memory that the stores of the process
    /// [share](crate::set_shared_memory).
    pub cache_bytes: Option<usize>,
    /// About how large a block is, uncompressed; more than 0, and 1 GiB at most.
    pub block_bytes: usize,
    /// About how large a file of a run gets at most before the next one is begun, more than 0. The
    /// files of a run below eight times this size are an eighth of it, or 4 MiB; those of a run
    /// above 64 times this size are a 64th of it. A compaction loses the part of the file that it
    /// is writing when the process ends, and the reserve for a full disk is as large as the largest
    /// file.
    pub file_bytes: u64,
    /// The compression of blocks: LZ4 by default.
    pub compression: Compression,
    /// The approximate share of the lookups of a key that a file does not have which read it
    /// nevertheless. 1.0 is all of them: no filter is made. Not below 0.
    pub false_positives: f64,
    /// The number of runs of about the same size that are compacted into one, 2 at least.
    pub fan_in: usize,
    /// `true` if threads write runs and compact them, which all stores of the process share: one
    /// more than there are processors. Otherwise both is done by [`work`](crate::DiskStore::work)
    /// only, which tests call, and nothing is synced at intervals.
    pub background: bool,
    /// A snapshot, or a scan, that was not read for so long expires, which is not 0: reading it
    /// fails, and it keeps nothing. `None` is never. It is noticed up to a quarter later, and half
    /// a second at least.
    pub snapshot_age: Option<Duration>,
    /// Bytes of memory that [kept](crate::DiskStore::keep_snapshot) snapshots hold together: of
    /// memtables that are in runs already. If it is more, the oldest of them end. It is looked at
    /// when a memtable was written to a run.
    pub snapshot_memory: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            file_system: Arc::new(RealFs),
            create: true,
            read_only: false,
            operator: None,
            lifetime: None,
            durability: Durability::System,
            memtable_bytes: None,
            memtable_keys: None,
            cache_bytes: None,
            block_bytes: 4096,
            file_bytes: 64 << 20,
            compression: Compression::Lz4,
            false_positives: 0.01,
            fan_in: 4,
            background: true,
            snapshot_age: None,
            snapshot_memory: 256 << 20,
        }
    }
}

/// Defines functions that set an option of this type, or of an `Option` of it.
macro_rules! setters {
    ($($name:ident: $type:ty;)*) => {
        impl Options {$(
            #[doc = concat!("Sets the option `", stringify!($name), "`.")]
            #[must_use]
            pub fn $name(mut self, $name: $type) -> Self {
                self.$name = $name.into();
                self
            }
        )*}
    };
}

setters! {
    file_system: Arc<dyn FileSystem>;
    create: bool;
    read_only: bool;
    operator: Arc<dyn MergeOperator>;
    lifetime: Lifetime;
    durability: Durability;
    memtable_bytes: usize;
    memtable_keys: usize;
    cache_bytes: usize;
    block_bytes: usize;
    file_bytes: u64;
    compression: Compression;
    false_positives: f64;
    fan_in: usize;
    background: bool;
    snapshot_age: Duration;
    snapshot_memory: usize;
}

impl Options {
    /// Returns the options of a store that is made where there is none, loses nothing if the
    /// process is killed, and shares memory and threads with the other stores of the process.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// # Errors
    /// [`Error::Option`] with the first option that makes no sense.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let interval = match self.durability {
            Durability::Interval(interval) => Some(interval),
            Durability::Always | Durability::System => None,
        };
        let wrong = [
            (
                "durability",
                interval == Some(Duration::ZERO),
                "the interval is 0",
            ),
            (
                "lifetime",
                self.lifetime.is_some_and(|lifetime| !is_of_store(lifetime)),
                "is no time",
            ),
            ("memtable_bytes", self.memtable_bytes == Some(0), "is 0"),
            ("memtable_keys", self.memtable_keys == Some(0), "is 0"),
            ("block_bytes", self.block_bytes == 0, "is 0"),
            ("file_bytes", self.file_bytes == 0, "is 0"),
            (
                "false_positives",
                self.false_positives.is_nan() || self.false_positives < 0.0,
                "is not a rate",
            ),
            ("fan_in", self.fan_in < 2, "is less than 2"),
            (
                "snapshot_age",
                self.snapshot_age == Some(Duration::ZERO),
                "is 0",
            ),
        ];
        match wrong.into_iter().find(|(_, is_wrong, _)| *is_wrong) {
            Some((name, _, why)) => Err(Error::Option { name, why }),
            None => Ok(()),
        }
    }
}
