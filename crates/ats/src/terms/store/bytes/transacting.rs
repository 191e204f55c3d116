//! Transactions of tables on a store of bytes: batches that decide about their keys together, when
//! all are read.
//!
//! The plan of the batch defers each key, and keeps its record. The store holds all keys when it
//! asks for the first change: then the transaction decides, and the store writes the changes as it
//! writes those of any other batch.

use super::ByteStore;
use crate::terms::error::Error;
use crate::terms::value::Values;
use ats_mem::{RecordBox, Transaction};
use ats_store::{BatchPlan, Change, Error as StoreError};
use ats_term::image::Host;

/// Bytes of values that a caller who may not block decodes at most: these take less than half a
/// millisecond.
const DECODED_AT_ONCE: usize = 32 << 10;

/// Runs a transaction: see [`TableRecords::transact`](super::TableRecords::transact).
pub(super) fn transact<H: Host>(
    records: &ByteStore<H>,
    keys: &[&[u8]],
    plan: &mut dyn Transaction<Values<H>>,
) -> Result<bool, Error> {
    let may_block = records.may_block();
    let mut transacting = Transacting {
        records,
        keys,
        plan,
        found: Vec::with_capacity(keys.len()),
        bytes_left: may_block.map_or(DECODED_AT_ONCE, |_| usize::MAX),
        failed: Ok(()),
        has_committed: false,
    };
    // A batch without keys is never asked for a change.
    if keys.is_empty() {
        return Ok(transacting.decide_about_all());
    }
    let done = records.store().update(may_block, keys, &mut transacting)?;
    transacting.has_committed = done;
    std::mem::replace(&mut transacting.failed, Ok(())).map(|()| done)
}

/// The plan of a transaction, which is released when this is dropped, before its records are.
struct Transacting<'a, H: Host> {
    records: &'a ByteStore<H>,
    keys: &'a [&'a [u8]],
    plan: &'a mut dyn Transaction<Values<H>>,
    /// The records of the keys that were read until now.
    found: Vec<Option<RecordBox<Values<H>>>>,
    /// Bytes of values that may still be decoded.
    bytes_left: usize,
    /// The error that ended the batch, if the batch did not end by its plan.
    failed: Result<(), Error>,
    has_committed: bool,
}

impl<H: Host> Transacting<'_, H> {
    fn decide_about_all(&mut self) -> bool {
        let found = &self.found;
        self.plan.decide(&|index: usize| found[index].as_deref())
    }

    fn fail(&mut self, error: Error) -> Change<Vec<u8>> {
        self.failed = Err(error);
        Change::Abort
    }
}

impl<H: Host> BatchPlan<[u8], Vec<u8>> for Transacting<'_, H> {
    fn decide(&mut self, index: usize, current: Option<&[u8]>) -> Change<Vec<u8>> {
        let bytes = current.map_or(0, <[u8]>::len);
        let Some(bytes_left) = self.bytes_left.checked_sub(bytes) else {
            return self.fail(StoreError::WouldBlock.into());
        };
        self.bytes_left = bytes_left;
        let record = current.map(|value| self.records.record(self.keys[index], value));
        match record.transpose() {
            Ok(record) => {
                self.found.push(record);
                Change::Later
            }
            Err(error) => self.fail(error),
        }
    }

    fn build(&mut self, index: usize, _: Option<&[u8]>) -> Change<Vec<u8>> {
        if index == 0 && !self.decide_about_all() {
            return Change::Abort;
        }
        if !self.plan.may_change(index) {
            return Change::Keep;
        }
        let change = self.plan.change(index, self.found[index].as_deref());
        let change = self.records.translate(self.keys[index], change);
        change.unwrap_or_else(|error| self.fail(error))
    }
}

impl<H: Host> Drop for Transacting<'_, H> {
    fn drop(&mut self) {
        self.plan.release(self.has_committed);
    }
}
