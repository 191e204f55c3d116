//! Run files: sorted, immutable, and checked wherever they are read.
//!
//! ```text
//!   blocks                                parts                     range deletes   top   footer
//!   [records][records] ... [records]      [index, filter] ...       [ranges]        [index]
//! ```
//!
//! A *block* has the records of a short range of keys. A *part* is about a hundred neighbouring
//! blocks: an index of them, and a filter of their keys. The *top* is the index of the parts. The
//! *footer* identifies the file and describes its contents. The formats are in
//! `docs/inside/disk-format.md`, byte by byte.
//!
//! | module | subject |
//! |---|---|
//! | `frame` | checksums and compression of pieces of a file |
//! | `block`, `block_builder`, `block_cursor` | records: lookups among them, writing them, walks over them |
//! | `filter`, `index`, `part` | filters, indexes, both together |
//! | `bounds`, `meta` | the description of a file in the manifest and the footer |
//! | `writer`, `reader`, `cursor`, `verify` | writing, looking up, walking, checking a file |
//! | `run` | several files as one |
//! | `block_cache` | blocks and parts that were read from files |

pub(crate) mod block;
mod block_builder;
pub(crate) mod block_cache;
mod block_cursor;
mod bounds;
mod cursor;
mod filter;
mod frame;
mod index;
mod meta;
mod name;
pub(crate) mod part;
mod reader;
mod run;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use block_cache::{BlockCache, Reserved};
pub(crate) use block_cursor::BlockCursor;
pub(crate) use bounds::{is_upper, lower};
pub(crate) use filter::key_hash;
pub(crate) use frame::{Content, Identity, TRAILER_BYTES, open as open_frame};
pub(crate) use index::Index;
pub(crate) use meta::{FileMeta, Footer};
pub(crate) use name::{file_name, file_number};
pub(crate) use reader::RunFile;
pub(crate) use run::Run;
pub(crate) use writer::{FileWriter, Settings};
