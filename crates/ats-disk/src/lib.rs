//! Records keyed by bytes on disk: an ordered store by incremental merge sort, whose writes are merges.

mod cursor;
mod entry;
mod error;
pub mod fs;
mod options;

pub use entry::MAX_BYTES;
pub use error::Error;
pub use options::{Compression, Durability, Options};
