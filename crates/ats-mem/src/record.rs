//! A record: one key with its value, immutable once published, in one block of the
//! [slab](crate::slab).
//!
//! ```text
//! word 0        stamp (48 bits): 0 = committed, else the batch entry it belongs to
//!               | lengths of key and value, owns (16 bits)
//! (words 1, 2   lengths and stamp that do not fit there; see the module `header`)
//! then          key bytes, padded with zeros to a whole word
//! then          value words
//! ```
//!
//! The key follows the header directly because a thread that reaches a record compares its key
//! first, and both usually share a cache line. The value is aligned 64-bit words, so that its owner
//! can read it in place.
//!
//! # Pending records
//! A record whose stamp is not 0 belongs to a batch (an atomic write of several keys). While the
//! batch is open, every reader looks through it to the record before; when the batch commits, by
//! one atomic store, all its records become visible at once. A writer that meets a stamped record
//! waits until the stamp is cleared: the stamp is the lock of its key. Batches install their
//! records in ascending key order, so they cannot deadlock.
//! See [`batch`](crate::batch).
//!
//! A batch that keeps a key unchanged stamps its present record, which stays visible. If the key
//! has no record, one without value marks the key as held. It never becomes visible: every reader
//! looks through it.
//!
//! # Invariants
//! - RECORD-1. Key and value of a published record never change; only the stamp does, from 0 to the
//!   entry of a batch and back, and those words of the value that their owner accesses atomically,
//!   through [`value_words`](Record::value_words) only. A record is stamped before it is published,
//!   or under the lock of its key, and only if it has no stamp; only the batch that has stamped it
//!   clears the stamp.
//! - RECORD-2. A record that was reachable is freed only through
//!   [`Guard::retire`](ats_sync::Guard::retire).
//! - RECORD-3. `owns` is set exactly if the value holds resources that [`Release`] must release
//!   when the record is freed.

mod boxed;
pub(crate) mod entry;
mod header;
pub(crate) mod history;
mod published;
mod release;
mod simple;
#[cfg(test)]
mod tests;
pub(crate) mod version;
mod weight;

pub(crate) use boxed::free_alone;
pub use boxed::{RecordBox, retire};
pub use published::Record;
pub use release::{Plain, Release};
pub(crate) use simple::{Old, Simple};
pub use weight::Weight;
