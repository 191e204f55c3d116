//! A store on disk that lets no scheduler wait.
//!
//! On a scheduler that serves processes, or computes for them, each call answers from memory or says that it
//! [would wait](ats_store::Error::WouldWait). Then the call of the VM is made again where waiting harms nobody: see
//! [`NoReply::DirtyIo`](crate::call::NoReply::DirtyIo). There, and on threads of our own, it waits.

use super::opened::Opened;
use crate::process;
use ats_store::store::{DecideEnd, Visit};
use ats_store::{BatchPlan, Direction, End, Error, KeyRange, MergeOperator, Merges, Store};
use std::sync::Arc;

/// The store of a table in a directory, as the table sees it.
pub struct Polite(pub Arc<Opened>);

/// Waits only where that harms nobody.
pub fn politely<R>(work: impl FnOnce() -> R) -> R {
    match process::may_wait_for_devices() {
        true => work(),
        false => ats_disk::without_waiting(work),
    }
}

impl Store for Polite {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        politely(|| self.0.store().get(key, read))
    }

    fn update(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, Error> {
        politely(|| self.0.store().update(keys, plan))
    }

    fn update_end(&self, end: End, decide: &mut DecideEnd<'_>) -> Result<(), Error> {
        politely(|| self.0.store().update_end(end, decide))
    }

    fn scan(
        &self,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        politely(|| self.0.store().scan(key_range, direction, visit))
    }

    fn len(&self) -> Result<usize, Error> {
        politely(|| self.0.store().len())
    }

    fn sum(&self, weigh: &dyn Fn(&[u8]) -> usize) -> Result<usize, Error> {
        politely(|| self.0.store().sum(weigh))
    }

    fn take_all(&self) -> Result<Box<dyn Store>, Error> {
        let taken = politely(|| self.0.store().take_all())?;
        Ok(Box::new(PoliteFrozen(taken)))
    }

    fn bytes(&self) -> usize {
        self.0.store().bytes()
    }

    fn merges(&self) -> Option<&dyn Merges> {
        let merges = self.0.store().merges().is_some();
        merges.then_some(self as &dyn Merges)
    }
}

impl Merges for Polite {
    fn operator(&self) -> &dyn MergeOperator {
        Merges::operator(self.0.store())
    }

    fn merge(&self, key: &[u8], operand: &[u8]) -> Result<(), Error> {
        politely(|| Merges::merge(self.0.store(), key, operand))
    }
}

/// What such a store was at a moment.
pub struct PoliteFrozen(pub Box<dyn Store>);

impl Store for PoliteFrozen {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        politely(|| self.0.get(key, read))
    }

    fn update(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, Error> {
        politely(|| self.0.update(keys, plan))
    }

    fn update_end(&self, end: End, decide: &mut DecideEnd<'_>) -> Result<(), Error> {
        politely(|| self.0.update_end(end, decide))
    }

    fn scan(
        &self,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        politely(|| self.0.scan(key_range, direction, visit))
    }

    fn len(&self) -> Result<usize, Error> {
        politely(|| self.0.len())
    }

    fn sum(&self, weigh: &dyn Fn(&[u8]) -> usize) -> Result<usize, Error> {
        politely(|| self.0.sum(weigh))
    }

    fn take_all(&self) -> Result<Box<dyn Store>, Error> {
        self.0.take_all()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
