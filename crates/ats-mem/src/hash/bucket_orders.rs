//! A thread's cache of the order of records in buckets, so that a walk from key to key sorts a
//! bucket once.
//!
//! A step has to find the successor of a key in the [order of the table](super::walk), which needs
//! the hash of every key of the bucket. A walk takes several steps in a bucket, and short walks
//! begin in the same buckets again and again. Each thread remembers the order in some dozen
//! buckets, with their contents. A remembered order holds for a bucket of the same table as long as
//! - no object reachable then has been freed ([`Guard::is_still`], EPOCH-5), so that an address
//!   stands for the same record, whose key never changes (RECORD-1);
//! - the fingerprints and the words of all slots are the same, in one line or two;
//! - the table has the same [view](super::directory::View), so the bucket is the same interval.
//!
//! The words are loaded anew for each step, like those of a step without the cache. A table that
//! frees records without a grace period changes its identity.
//!
//! Good for: walks in any table that few threads write to. Costs: a step in a bucket that is not
//! remembered sorts the records of the bucket, a handful.

use super::bucket::{Bucket, Contents, FEW_SLOTS};
use super::directory::View;
use super::fingerprints::Fingerprints;
use super::line::{Full, Word};
use crate::identity::Identity;
use crate::record::Release;
use ats_sync::Guard;
use ats_sync::model::CACHED_ORDERS;
use ats_sync::shim::constants_of_threads;
use std::cell::Cell;

/// The end of the order of a bucket; also the index of the first slot among the successors.
const END: u8 = FEW_SLOTS as u8;

/// A bucket in a view of a table.
#[derive(Clone, Copy)]
pub(super) struct Here<'t> {
    pub(super) identity: &'t Identity,
    pub(super) view: View,
    pub(super) bucket: usize,
}

/// The order in one bucket.
struct BucketOrder {
    /// Identity of the table; 0 is none.
    identity: Cell<u64>,
    epoch: Cell<u64>,
    view: Cell<View>,
    bucket: Cell<usize>,
    fingerprints: Cell<Fingerprints>,
    words: [Cell<Word>; FEW_SLOTS],
    /// The successor of each slot in the order of the table, [`END`] for the last; behind them the
    /// first slot.
    successors: [Cell<u8>; FEW_SLOTS + 1],
}

impl BucketOrder {
    /// Returns the order of no bucket.
    const fn none() -> Self {
        BucketOrder {
            identity: Cell::new(0),
            epoch: Cell::new(0),
            view: Cell::new(View::NONE),
            bucket: Cell::new(0),
            fingerprints: Cell::new(Fingerprints::NONE),
            words: [const { Cell::new(Word::EMPTY) }; FEW_SLOTS],
            successors: [const { Cell::new(END) }; FEW_SLOTS + 1],
        }
    }
}

constants_of_threads! {
    static ORDERS: [BucketOrder; CACHED_ORDERS] = [const { BucketOrder::none() }; CACHED_ORDERS];
}

/// The order of a bucket, as a thread remembers it.
pub(super) struct Remembered<'o, 'g, R: Release> {
    bucket: Bucket<'g, R>,
    order: &'o BucketOrder,
}

impl<'g, R: Release> Remembered<'_, 'g, R> {
    /// Returns the record in a slot, unless the slot is empty or [`END`].
    #[inline]
    fn full(&self, slot: u8) -> Option<Full<'g, R>> {
        let word = self.order.words.get(usize::from(slot))?.get();
        // SAFETY: `recall` has just loaded the same word from the bucket.
        unsafe { self.bucket.full(word) }
    }

    /// Returns the records in order: behind a given slot, or all.
    #[inline]
    pub(super) fn records_behind(&self, slot: Option<u8>) -> impl Iterator<Item = Full<'g, R>> {
        let mut slot = slot.unwrap_or(END);
        std::iter::from_fn(move || {
            slot = self.order.successors[usize::from(slot)].get();
            self.full(slot)
        })
    }

    /// Returns the slot of a key, if the bucket has it.
    #[inline]
    pub(super) fn find(&self, hash: u64, key: &[u8]) -> Option<(u8, Full<'g, R>)> {
        let mut slots = 0..END;
        slots.find_map(|slot| {
            if !self.order.words[usize::from(slot)].get().may_be(hash) {
                return None;
            }
            let full = self.full(slot)?;
            full.record().has_key(key).then_some((slot, full))
        })
    }
}

impl Here<'_> {
    #[inline(always)]
    fn index(self) -> usize {
        let product = (self.bucket as u64 ^ self.identity.number().rotate_left(32))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (product >> (u64::BITS - CACHED_ORDERS.ilog2())) as usize
    }

    /// Calls `act` with the order of the bucket, if this thread remembers it.
    #[inline]
    pub(super) fn recall<'g, R: Release, T>(
        self,
        bucket: Bucket<'g, R>,
        guard: &Guard,
        act: impl FnOnce(Remembered<'_, 'g, R>) -> Option<T>,
    ) -> Option<T> {
        ORDERS.with(|orders| {
            let order = &orders[self.index()];
            let is_here = order.identity.get() == self.identity.number()
                && order.bucket.get() == self.bucket
                && order.view.get() == self.view
                && guard.is_still(order.epoch.get())
                && bucket.has(order.fingerprints.get(), &order.words);
            is_here
                .then_some(Remembered { bucket, order })
                .and_then(act)
        })
    }

    /// Remembers the order of these contents, which the thread has loaded under this guard: the
    /// slots in order.
    pub(super) fn remember(
        self,
        contents: &Contents,
        slots: impl Iterator<Item = u8>,
        guard: &Guard,
    ) {
        ORDERS.with(|orders| {
            let order = &orders[self.index()];
            order.identity.set(self.identity.number());
            order.epoch.set(guard.epoch());
            order.view.set(self.view);
            order.bucket.set(self.bucket);
            order.fingerprints.set(contents.fingerprints);
            for (kept, word) in order.words.iter().zip(contents.words) {
                kept.set(word);
            }
            let mut before = END;
            for slot in slots {
                order.successors[usize::from(before)].set(slot);
                before = slot;
            }
            order.successors[usize::from(before)].set(END);
        });
    }
}
