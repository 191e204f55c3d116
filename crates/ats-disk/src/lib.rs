//! Records keyed by bytes on disk: an ordered store by incremental merge sort, whose writes are
//! merges.
//!
//! A [`DiskStore`] keeps records, each a key and a value of bytes, in a directory. A write goes to
//! a journal and to a tree in memory; from time to time the tree becomes a sorted *run*, a few
//! immutable files, and runs that follow each other in time are compacted into larger ones. A write
//! may be an *operand*, which is merged with the older value when the key is read or its runs are
//! compacted, by a [`MergeOperator`](ats_store::MergeOperator) that the store is opened with.
//! `docs/inside/disk.md` tells how it works, `docs/inside/disk-format.md` has the format of files.
//!
//! ```
//! use ats_disk::{Batch, DiskStore, Options};
//! use ats_store::{Error, MergeOperator, Merged};
//! use std::sync::Arc;
//!
//! /// Adds numbers.
//! struct Sum;
//!
//! impl MergeOperator for Sum {
//!     fn name(&self) -> &str {
//!         "sum"
//!     }
//!
//!     fn version(&self) -> u32 {
//!         1
//!     }
//!
//!     fn merge(&self, _key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
//!         let number = |value: &[u8]| value.try_into().map(u64::from_le_bytes);
//!         match (number(earlier), number(later)) {
//!             (Ok(earlier), Ok(later)) => {
//!                 let sum = earlier.wrapping_add(later);
//!                 Ok(Merged::New(sum.to_le_bytes().to_vec()))
//!             }
//!             _ => Err(Error::Merge),
//!         }
//!     }
//! }
//!
//! let directory = std::env::temp_dir().join(format!("ats-disk-example-{}", std::process::id()));
//! let options = Options::new().operator(Arc::new(Sum));
//! let store = DiskStore::open(&directory, options.clone())?;
//!
//! // Both are there after a crash, or none is.
//! let mut batch = Batch::new();
//! batch.put(b"apples", &3_u64.to_le_bytes())?;
//! batch.put(b"pears", &4_u64.to_le_bytes())?;
//! store.write(&batch)?;
//!
//! let before = store.snapshot();
//! store.merge(b"apples", &5_u64.to_le_bytes())?;
//! store.delete(b"pears")?;
//! assert_eq!(store.get(b"apples")?, Some(8_u64.to_le_bytes().to_vec()));
//! assert_eq!(before.get(b"apples")?, Some(3_u64.to_le_bytes().to_vec()));
//! drop(before);
//! store.close()?;
//!
//! let store = DiskStore::open(&directory, options)?;
//! for record in store.scan("a"..) {
//!     let (key, value) = record?;
//!     assert_eq!((&key[..], &value[..]), (&b"apples"[..], &8_u64.to_le_bytes()[..]));
//! }
//! # drop(store);
//! # std::fs::remove_dir_all(&directory).ok();
//! # Ok::<(), ats_disk::Error>(())
//! ```
//!
//! # Good for
//! - Many writes, of any order of keys. None of them reads from disk, and those that wait at the
//!   same time share one sync.
//! - Counters, sets and logs as values, changed by operands that need not know the value.
//! - Ranges: walks in both directions, and deletes that take as long as that of one key.
//! - Data larger than memory. Of a key that is missing, filters tell without reading from disk,
//!   nearly always.
//! - Snapshots, which cost nothing until memtables or files that they read would be removed.
//!
//! # Bad at
//! - Reading where much was just written: each run is searched, too, until the runs are compacted.
//! - Telling the number of records: a store only knows it after a walk.
//! - Values of many megabytes: each merge copies them.
//! - Being opened by several processes: one at a time may, or several if all of them only
//!   [read](Options::read_only). A copy of the process, by `fork`, only reads.
//!
//! # Crashes
//! [`Durability`] tells which of the newest writes are lost if the process is killed, or power is
//! lost; a batch is never there in part. Each piece of a file has a checksum, and a spoilt one is
//! [`Error::Corrupt`], never a wrong answer. After a sync has failed the store is
//! [read-only](Error::ReadOnly), since the state of the disk is unknown then.
//!
//! Each later version of this crate opens the files of earlier ones: it reads their format, or
//! brings them into its own. An earlier version refuses files of a later format, by
//! [`Error::NewerFormat`], and leaves them as they are.
//!
//! A [`DiskStore`] writes without reading. [`AtomicStore`] lets changes depend on values, as
//! [`ats_store::Store`] asks for, and [`BagStore`] has keys with several values.
//!
//! # Records that expire
//! A store with the option [`lifetime`](Options::lifetime) keeps a deadline with each value. Past
//! it the record is gone for every reader, at once, and no older value of its key returns;
//! compactions give its room back. Deadlines are those of the time of day. A clock that is set back
//! brings nothing back: in an open store the time stands still then, and a later opening does not
//! begin before the latest time in the files, which are told it when they are written, and by
//! writes once a second.
//!
//! # Consistency
//! - **One key.** Writes and reads of a key are linearizable: a read that begins after a write has
//!   returned sees it, or a later one. No reader sees a write that returned an error.
//! - **A batch.** [`DiskStore::write`] makes all changes of a [`Batch`] at one moment: a reader
//!   sees all of them or none, and so does the next opening after a crash. Later changes of a key
//!   in the batch come after earlier ones.
//! - **A scan and a snapshot.** A [`Scan`] and a [`Snapshot`] see the whole store as of the moment
//!   at which they were made, without later writes. They keep files and memtables until
//!   they are dropped; [`Options::snapshot_age`] bounds that, by [`Error::Expired`]. Snapshots that
//!   are [kept](DiskStore::keep_snapshot) have bounds of their own.
//! - **Operands.** The operands of a key are merged in the order of their writes. An operand that
//!   cannot be merged is found out by a read of its key, which gives [`Error::Merge`]; other keys
//!   are not concerned.
//! - **Read, then write.** A [`get`](DiskStore::get) and a [`put`](DiskStore::put) are two steps,
//!   between which others write. One step that depends on the value is an operand, or an
//!   [`update`](ats_store::Store::update) of an [`AtomicStore`].
//!
//! # Complexity
//! *n* is the number of keys, and *r* that of the runs, which grows with log n; compactions keep it
//! small, and [`DiskStore::settle`] brings it down to one or two. Bytes of keys and values are
//! copied besides. A block is 4 KiB unless [`Options::block_bytes`] says otherwise.
//!
//! | operation | time | reads of the disk |
//! |---|---|---|
//! | `put`, `delete`, `merge`, and each change of a `write` | O(log n) | none |
//! | `delete_range` | O(1), however many keys there are | none |
//! | `get` | O(r log n) | about one block, if it is not in the cache; of a missing key nearly none |
//! | `get` of a key with operands | the same, and merging them | a block of each run that has some |
//! | `snapshot` | O(1) | none |
//! | the first `next` of a scan | O(r log n) | a block of each run |
//! | each further `next` | O(log r), and the deleted keys on the way | a block for each 4 KiB |
//! | `Snapshot::median` | O(r log n) | some blocks |
//! | `sync` | | writes the unsynced part of the journal |
//! | `flush` | O(keys of the memtables) | writes them to a run |
//! | `compact`, `verify` | O(n) | all files |
//! | `checkpoint` | O(files) | syncs the journals, and links files; in another file system, copies them |
//! | `open` after `close` | | the manifest, and the ends of the run files |
//! | `open` after a crash | | the journals besides: as many bytes as memtables had |
//! | `AtomicStore::update` of m keys | m times that of `get` and `put` | those of `get` |
//! | `BagStore`: adding or removing a value | O(r log n) | those of a short scan |
//!
//! A record is written again by each compaction that it takes part in:
//! [`Info::write_amplification`] tells how often that was, and [`Info::read_amplification`] how
//! many blocks and parts a read looked at.
//!
//! # Blocking
//! A read waits for the disk if a block that it needs is not in the cache. A write waits for the
//! journal, with [`Durability::Always`] for a sync, and while runs are written more slowly than
//! records come, for at most 40 ms. [`sync`](DiskStore::sync), [`flush`](DiskStore::flush),
//! [`compact`](DiskStore::compact), [`settle`](DiskStore::settle), [`verify`](DiskStore::verify),
//! [`checkpoint`](DiskStore::checkpoint) and [`close`](DiskStore::close) wait until their work is
//! done. No reader or writer waits for a snapshot, a scan or a checkpoint.
//!
//! A thread that must not block calls [`DiskStore::try_get`], [`DiskStore::try_write`],
//! [`DiskStore::try_len`], [`Snapshot::try_get`], [`Snapshot::try_median`] and
//! [`LendingScan::try_next`]. They work in memory, or return [`Error::WouldBlock`] and change
//! nothing; then a thread that may block calls the function without `try_`. The functions of
//! [`AtomicStore`] and [`BagStore`], which are those of any [`Store`](ats_store::Store), take an
//! `Option<`[`MayBlock`]`>` instead.
//!
//! ```
//! # use ats_disk::{DiskStore, Error, Options};
//! # let directory = std::env::temp_dir().join(format!("ats-disk-block-{}", std::process::id()));
//! let store = DiskStore::open(&directory, Options::new())?;
//! store.put(b"apples", b"3")?;
//!
//! let mut value = Vec::new();
//! let quick = store.try_get(b"apples", &mut |bytes| value = bytes.to_vec());
//! if quick == Err(Error::WouldBlock) {
//!     // On a thread that serves nobody.
//!     store.get_with(b"apples", &mut |bytes| value = bytes.to_vec())?;
//! }
//! assert_eq!(value, b"3");
//! # drop(store);
//! # std::fs::remove_dir_all(&directory).ok();
//! # Ok::<(), Error>(())
//! ```
//!
//! # Limits
//! | resource | the most |
//! |---|---|
//! | bytes of a key, of a value, of a batch | [`MAX_BYTES`], about 2 GiB each |
//! | memory of writes that are not in a run yet | about twice [`Options::memtable_bytes`]; for all stores that share memory, a third of [it](set_shared_memory); more while writes come faster than runs are written, and then they are slowed down |
//! | memory of cached blocks, indexes, buffers of compactions | [`Options::cache_bytes`]; for all stores that share memory, two thirds of [it](set_shared_memory); or twice as much as indexes and buffers need if that is more |
//! | space on disk | about twice the records, while a compaction of all runs is running three times |
//! | threads of all stores of a process | one more than there are processors, and four with [`Durability::Interval`] |
//! | open files of a store | the directory, and one or two more from a write until ten seconds after the last one |
//! | run files that all stores of a process have open | [a quarter of the descriptors](fs::set_open_files), besides those that are read at that moment |
//! | changes that a store ever gets | 2<sup>56</sup> |
//!
//! It needs a Unix system.
//!
//! # Further reading
//! The folder `examples` of the crate has programs: words counted by merges, a time series, a
//! snapshot beside a writer, and a batch as a transaction. [`ats_store`] has the words that stores
//! share. [`offline`] checks a damaged store and saves its readable records.

mod atomic_store;
mod background;
mod bag_store;
mod batch;
mod blocking;
mod checkpoint;
mod coding;
mod compaction;
mod cursor;
mod directory;
mod engine;
mod entry;
mod error;
#[cfg(feature = "fault-injection")]
pub mod fault_injection;
#[cfg(not(feature = "fault-injection"))]
mod fault_injection;
mod files;
mod flush;
mod fork_detection;
pub mod fs;
mod ids;
mod journal;
mod key_bounds;
mod keys;
mod lifetime;
mod log;
mod manifest;
mod median;
mod memtable;
pub mod offline;
mod operator_id;
mod options;
mod paths;
mod pool;
mod progress;
mod range_deletes;
mod read;
mod record_count;
mod run_file;
mod state;
mod stats;
mod store;
mod write;

pub use atomic_store::AtomicStore;
pub use ats_store::{Lifetime, MayBlock};
pub use bag_store::{BagStore, one_of_several, values_of_record};
pub use batch::Batch;
pub use directory::StoreDirectory;
pub use entry::MAX_BYTES;
pub use error::Error;
pub use key_bounds::KeyBounds;
pub use options::{Compression, Durability, Options};
pub use progress::{OnProgress, Progress};
pub use read::{Diff, Difference, LendingScan, Record, Scan, Snapshot};
pub use state::expiry::{Ending, KeptSnapshots};
pub use state::memory::{SharedMemory, set_shared_memory, shared_memory};
pub use store::{DiskStore, Info, RunInfo};
