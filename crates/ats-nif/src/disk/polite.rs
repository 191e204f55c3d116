//! A store on disk that lets no scheduler wait.
//!
//! On a scheduler that serves processes, or computes for them, each call answers from memory or says that it
//! [would wait](ats_store::Error::WouldWait). Then the call of the VM is made again where waiting harms no other process: see
//! [`NoReply::DirtyIo`](crate::call::NoReply::DirtyIo). There, and on threads of our own, it waits.

use crate::process;
use ats_store::store::{DecideEnd, Visit};
use ats_store::{
    AddRule, Bags, BatchPlan, Direction, End, Error, KeyRange, MergeOperator, Merges, Store,
};

/// Lets `work` wait only where that harms no other process.
pub(super) fn politely<R>(work: impl FnOnce() -> R) -> R {
    match process::may_wait_for_devices() {
        true => work(),
        false => ats_disk::without_waiting(work),
    }
}

/// A holder of a store.
pub trait Holder: Send + Sync {
    /// The store.
    fn held(&self) -> &dyn Store;
}

impl Holder for Box<dyn Store> {
    fn held(&self) -> &dyn Store {
        &**self
    }
}

/// The store of a table in a directory, or what such a store was at a moment, as the table sees it.
pub(super) struct Polite<H>(pub H);

impl<H: Holder> Store for Polite<H> {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        politely(|| self.0.held().get(key, read))
    }

    fn update(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, Error> {
        politely(|| self.0.held().update(keys, plan))
    }

    fn update_end(&self, end: End, decide: &mut DecideEnd<'_>) -> Result<(), Error> {
        politely(|| self.0.held().update_end(end, decide))
    }

    fn scan(
        &self,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        politely(|| self.0.held().scan(key_range, direction, visit))
    }

    fn median(&self, key_range: KeyRange<'_>) -> Result<Option<Vec<u8>>, Error> {
        politely(|| self.0.held().median(key_range))
    }

    fn len(&self) -> Result<usize, Error> {
        politely(|| self.0.held().len())
    }

    fn sum(&self, weigh: &dyn Fn(&[u8]) -> usize) -> Result<usize, Error> {
        politely(|| self.0.held().sum(weigh))
    }

    fn take_all(&self) -> Result<Box<dyn Store>, Error> {
        let taken = politely(|| self.0.held().take_all())?;
        Ok(Box::new(Polite(taken)))
    }

    fn bytes(&self) -> usize {
        self.0.held().bytes()
    }

    fn most_bytes(&self) -> usize {
        self.0.held().most_bytes()
    }

    fn merges(&self) -> Option<&dyn Merges> {
        let merges = self.0.held().merges().is_some();
        merges.then_some(self as &dyn Merges)
    }

    fn bags(&self) -> Option<&dyn Bags> {
        let bags = self.0.held().bags().is_some();
        bags.then_some(self as &dyn Bags)
    }
}

impl<H: Holder> Polite<H> {
    fn inner_bags(&self) -> &dyn Bags {
        let bags = self.0.held().bags();
        bags.expect("only a store with bags is asked to change them")
    }

    fn inner(&self) -> &dyn Merges {
        let merges = self.0.held().merges();
        merges.expect("only a store that merges is asked to")
    }
}

impl<H: Holder> Merges for Polite<H> {
    fn operator(&self) -> &dyn MergeOperator {
        self.inner().operator()
    }

    fn merge(&self, key: &[u8], operand: &[u8]) -> Result<(), Error> {
        politely(|| self.inner().merge(key, operand))
    }
}

impl<H: Holder> Bags for Polite<H> {
    fn add(&self, values: &[(&[u8], &[u8])], rule: AddRule) -> Result<bool, Error> {
        politely(|| self.inner_bags().add(values, rule))
    }

    fn remove(&self, key: &[u8], value: &[u8], most: usize) -> Result<Option<usize>, Error> {
        politely(|| self.inner_bags().remove(key, value, most))
    }

    fn values(&self) -> Result<usize, Error> {
        politely(|| self.inner_bags().values())
    }
}
