//! Transactions of tables on a store of bytes: batches that decide about their keys together, when
//! all are read.
//!
//! The plan of the batch defers each key, and keeps its record. The store holds all keys when it
//! asks for the first change: then the transaction decides, and the store writes the changes as it
//! writes those of any other batch.

use crate::terms::error::Error;
use crate::terms::value::Values;
use ats_mem::{RecordBox, Transaction};
use ats_store::{BatchPlan, Change, Error as StoreError};
use ats_term::image::Host;

/// Bytes of values that a caller who may not block decodes at most: these take less than half a
/// millisecond.
const DECODED_AT_ONCE: usize = 32 << 10;

/// Decodes the value of the key with this index.
pub(super) type Decode<'a, H> = dyn Fn(usize, &[u8]) -> Result<RecordBox<Values<H>>, Error> + 'a;
/// Translates the change of the key with this index for the store.
pub(super) type Encode<'a, H> =
    dyn Fn(usize, Change<RecordBox<Values<H>>>) -> Result<Change<Vec<u8>>, Error> + 'a;

/// The plan of a transaction, which is released when this is dropped, before its records are.
pub(super) struct Transacting<'a, H: Host> {
    plan: &'a mut dyn Transaction<Values<H>>,
    decode: &'a Decode<'a, H>,
    encode: &'a Encode<'a, H>,
    /// The records of the keys that were read until now.
    found: Vec<Option<RecordBox<Values<H>>>>,
    /// Bytes of values that may still be decoded.
    bytes_left: usize,
    /// The error that ended the batch, if the batch did not end by its plan.
    failed: Result<(), Error>,
    has_committed: bool,
}

impl<'a, H: Host> Transacting<'a, H> {
    pub(super) fn new(
        plan: &'a mut dyn Transaction<Values<H>>,
        decode: &'a Decode<'a, H>,
        encode: &'a Encode<'a, H>,
        may_block: bool,
    ) -> Self {
        Transacting {
            plan,
            decode,
            encode,
            found: Vec::new(),
            bytes_left: if may_block {
                usize::MAX
            } else {
                DECODED_AT_ONCE
            },
            failed: Ok(()),
            has_committed: false,
        }
    }

    /// Has the transaction decide. Returns `false` if nothing is to be changed.
    pub(super) fn decide_about_all(&mut self) -> bool {
        let found = &self.found;
        self.plan.decide(&|index: usize| found[index].as_deref())
    }

    /// Notes whether the store has made the changes, and returns the same, or the error that ended
    /// the batch.
    pub(super) fn end(mut self, has_committed: bool) -> Result<bool, Error> {
        self.has_committed = has_committed;
        std::mem::replace(&mut self.failed, Ok(())).map(|()| has_committed)
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
        match current.map(|value| (self.decode)(index, value)).transpose() {
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
        (self.encode)(index, change).unwrap_or_else(|error| self.fail(error))
    }
}

impl<H: Host> Drop for Transacting<'_, H> {
    fn drop(&mut self) {
        self.plan.release(self.has_committed);
    }
}
