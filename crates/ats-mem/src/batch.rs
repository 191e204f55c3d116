//! Batches: several keys written as one, also for readers that take no lock.
//!
//! A batch installs its records one after the other, each stamped with an entry of the batch. While
//! the batch is open, readers look through a stamped record to the one before it. The commit is one
//! store into the state all entries share, so the records become visible together. Afterwards
//! the stamps are cleared, and what was replaced is retired.
//!
//! A stamped record is the lock of its key until its stamp is cleared: other writers wait, with
//! bounded patience, and report [`Busy`](crate::Busy) when it is exhausted. Keys are installed in
//! ascending order, so batches wait for each other in one direction only and cannot deadlock. An
//! aborted batch takes its records out again; until it has, they still lock their keys.
//!
//! The idea of a version stamp that can be pending is that of multi-version stores (for instance
//! the versioned pointers of Blelloch and Wei's Verlib, PPoPP 2024); here it costs a reader one
//! comparison on a cache line it needs anyway.
//!
//! # Keys that stay as they are
//! A decision of a batch about one key must still be right when it commits, so it holds every key
//! it has looked at. If a key is to stay as it is, the record that is there is *kept*: it is
//! stamped, but readers see it whatever becomes of the batch. If there is no record, or none that
//! can bear the stamp, the key gets a *hold*: a stamped record without value, through which readers
//! see what was there before. When the batch has ended, the record before is put back. Without that
//! another writer could change the key between the decision and the commit, and its change would be
//! lost or seen in an order that no moment explains. A batch of one key needs none of this, since
//! its decision and its commit are one step under one lock.
//!
//! # Keys whose new record takes long to make
//! A decision runs under a lock that the key shares with others, so it must be short. If it is not,
//! the plan answers [`Change::Later`](ats_store::Change::Later): the key gets a hold, the lock is
//! let go, and [`BatchPlan::build`](ats_store::BatchPlan::build) makes the record while only this
//! key is locked. Then the record takes the place of the hold. A single key that is changed in this
//! way is [`Provided::update_alone`](crate::Provided::update_alone).
//!
//! # Long batches
//! A batch that pins for itself (`Pinning::Own`) pins anew after each [`PIECE`] keys, installed or
//! cleared, and is not pinned while it builds a record. The objects that it refers to from one
//! piece to the next live without a guard: the record before, and the record installed, as long as
//! the stamp holds the key (BATCH-3, BATCH-5); entries, since they are the batch's own; and the
//! store, which its caller keeps alive.
//!
//! # Invariants
//! - BATCH-1. The state goes from `Open` to `Committed` or to `Aborted`, once.
//! - BATCH-2. `before` of an entry is set before its record is published, and never changed.
//! - BATCH-3. The record before is neither retired nor changed by a writer as long as the key is
//!   held.
//! - BATCH-4. Entries live until no stamp names them, plus a grace period.
//! - BATCH-5. A stamped record is taken out of the store by its batch only. Other writers leave it
//!   there until the stamp is cleared, also when the batch has committed; after that, the batch
//!   does not touch it.
//! - BATCH-6. From its decision about a key until its end, a batch holds the key, whatever the
//!   decision was.

mod block;
mod pinning;
mod run;
mod stepwise;
mod wait;

pub use pinning::PIECE;
pub(crate) use pinning::Pinning;
pub(crate) use run::{put, remove, update, update_alone, update_batch};
pub use stepwise::{KeyStep, Stepwise, Trip};
pub use wait::HeldKeyWait;
