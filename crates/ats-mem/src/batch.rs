//! Batches: atomic writes of several keys, also for readers that take no lock.
//!
//! A batch installs its records one after the other, each stamped with an entry of the batch. While
//! the batch is open, readers look through a stamped record to the one before it. The commit is one
//! store to the state that all entries share, so the records become visible together. Afterwards
//! the stamps are cleared, and the replaced records are retired.
//!
//! A stamped record is the lock of its key until its stamp is cleared: other writers wait, with
//! bounded patience, and report [`Busy`](crate::Busy) when it is exhausted. Keys are installed in
//! ascending order, so batches wait for each other in one direction only and cannot deadlock. An
//! aborted batch removes its records again; until then, they still lock their keys.
//!
//! The idea of a version stamp that can be pending is that of multi-version stores (for instance
//! the versioned pointers of Blelloch and Wei's Verlib, PPoPP 2024); here it costs a reader one
//! comparison on a cache line that it needs anyway.
//!
//! # Keys that stay as they are
//! A decision of a batch about one key must still be right at the commit, so the batch holds every
//! key it has read. If a key stays unchanged, its record is *kept*: it is stamped, but readers see
//! it even if the batch aborts. If there is no record, or none with room for the stamp, the key
//! gets a *hold*: a stamped record without value, through which readers see the record before. When
//! the batch has ended, the record before is put back. Without a hold another writer could change
//! the key between the decision and the commit, and its change would be lost or not linearizable. A
//! batch of one key needs none of this, because its decision and its commit are one step under one
//! lock.
//!
//! # Keys whose new record takes long to make
//! A decision runs under a lock that the key shares with others, so it must be short. If it is not,
//! the plan answers [`Change::Later`](ats_store::Change::Later): the key gets a hold, the lock is
//! let go, and [`BatchPlan::build`](ats_store::BatchPlan::build) makes the record while only this
//! key is locked. Then the record replaces the hold. A single key that is changed in this way is
//! [`Provided::update_alone`](crate::Provided::update_alone).
//!
//! # Transactions
//! The plan of a batch decides about each key when it comes to it. A [`Transaction`] first holds
//! all keys, and decides then, with all records at hand, about each of them. A key that only is
//! read is kept, as above; a key that may change gets a hold, which a new record replaces.
//!
//! A transaction also removes keys: the hold itself becomes a removal, and stays in the store until
//! the commit, by which the key is gone: the hold has no value. The batch then takes it out. For
//! queries that ran at the commit, the removal has the time of the commit, not that of its end: a
//! query that begins between the two does not see the record before.
//!
//! # Transactions over several stores
//! A transaction over several stores has a batch in each of them, which form a *group*. The last
//! batch is the *leader*: while it is open, the others count as open, whatever their own states
//! say. The commit enters the store of each batch in turn, takes the time there, and stays inside
//! until the leader has committed: so one store to the state of the leader makes all batches
//! visible, and a query of each of the stores begins either before all of it or after. All threads
//! take the stores in the order of their addresses, both to hold keys and to commit, so they wait
//! for each other in one direction only.
//!
//! # Long batches
//! A batch that pins for itself (`Pinning::Own`) repins after each [`PIECE`] keys, installed or
//! cleared, and is not pinned while it builds a record. The objects that it refers to across pieces
//! live without a guard: the record before, and the record installed, as long as the stamp holds
//! the key (BATCH-3, BATCH-5); entries, because the batch owns them; and the store, which the
//! caller keeps alive.
//!
//! # Invariants
//! - BATCH-1. The state goes from `Open` to `Committed` or to `Aborted`, once.
//! - BATCH-2. `before` of an entry is set before its record is published, and never changed.
//! - BATCH-3. The record before is neither retired nor changed by a writer as long as the key is
//!   held.
//! - BATCH-4. Entries live until no stamp names them, plus a grace period.
//! - BATCH-5. Only its batch removes a stamped record from the store. Other writers leave it there
//!   until the stamp is cleared, even after the commit; from then on, the batch does not touch it.
//! - BATCH-6. From its decision about a key until its end, a batch holds the key, for every kind of
//!   decision.
//! - BATCH-7. The leader of a group commits after the times of the other batches are set, while the
//!   thread is inside all stores that have changes; its block is retired after all keys of the
//!   group were released, so its state outlives the entries of the group.

mod block;
#[cfg(all(test, loom))]
mod models;
mod pinning;
mod run;
mod stepwise;
mod transaction;
mod wait;

pub use pinning::PIECE;
pub(crate) use pinning::Pinning;
pub(crate) use run::{put, remove, update, update_alone, update_batch};
pub use stepwise::{KeyStep, Stepwise, Trip};
pub(crate) use transaction::transact;
pub use transaction::{Decision, MOST_STORES, Part, Transaction, transact_all};
pub use wait::HeldKeyWait;
