//! Records keyed by bytes on disk: an ordered store by incremental merge sort, whose writes are merges.

mod background;
mod batch;
mod cache;
mod commit;
mod compaction;
mod core;
mod cursor;
mod doomed;
mod entry;
mod error;
mod fold;
pub mod fs;
mod memtable;
mod options;
mod range_deletes;

pub use batch::Batch;
pub use entry::MAX_BYTES;
pub use error::Error;
pub use info::{Info, RunInfo};
pub use options::{Compression, Durability, Options};
pub use scan::Scan;
pub use snapshot::Snapshot;
pub use store::DiskStore;
