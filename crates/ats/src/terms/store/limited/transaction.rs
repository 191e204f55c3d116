//! Transactions on records with limits.

use super::Limited;
use crate::terms::store::records::TableRecords;
use crate::terms::value::{Rec, Values};
use ats_mem::{Change, Transaction};
use ats_term::image::Host;

/// A transaction that does not see expired records, and whose new records get deadlines.
pub(super) struct DatedTransaction<'a, 'k, H: Host, S> {
    pub(super) store: &'a Limited<S, H>,
    pub(super) keys: &'a [&'k [u8]],
    pub(super) plan: &'a mut dyn Transaction<Values<H>>,
    /// `true` if a new record is larger than the bound.
    pub(super) is_larger: bool,
}

impl<H: Host, S: TableRecords<H>> Transaction<Values<H>> for DatedTransaction<'_, '_, H, S> {
    fn may_change(&self, index: usize) -> bool {
        self.plan.may_change(index)
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Rec<H>>) -> bool {
        self.plan
            .decide(&|index| Limited::<S, H>::alive(found(index)))
    }

    fn change(&mut self, index: usize, found: Option<&Rec<H>>) -> Change<Values<H>> {
        let change = self.plan.change(index, found);
        let dated = self.store.dated_within(self.keys[index], found, change);
        self.is_larger |= dated.is_none();
        dated.unwrap_or(Change::Abort)
    }

    fn release(&mut self, has_committed: bool) {
        self.plan.release(has_committed);
    }
}
