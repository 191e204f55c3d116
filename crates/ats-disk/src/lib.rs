//! Records keyed by bytes on disk: an ordered store by incremental merge sort, whose writes are merges.

mod cache;
mod cursor;
mod doomed;
mod entry;
mod error;
mod file;
pub mod fs;
mod info;
mod install;
mod journal;
mod log;
mod manifest;
mod memtable;
mod merging;
mod options;
mod pressure;
mod range_deletes;
mod read;
mod recovery;
mod registry;
mod run_writer;
mod scan;
mod snapshot;
mod state;
mod stats;
mod store;

pub use atomic::AtomicStore;
pub use batch::Batch;
pub use entry::MAX_BYTES;
pub use error::Error;
pub use info::{Info, RunInfo};
pub use options::{Compression, Durability, Options};
pub use scan::Scan;
pub use snapshot::Snapshot;
pub use store::DiskStore;
