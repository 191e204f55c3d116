//! Simple records, which can be removed without being read.

use super::boxed;
use super::published::Record;
use super::release::Release;
use super::weight::Weight;
use crate::slab;
use ats_sync::Guard;
use std::marker::PhantomData;
use std::ptr;

/// A *simple* record: it has no stamp, owns nothing, and counts one object and its own bytes.
pub(crate) struct Simple<R: Release> {
    address: usize,
    words: usize,
    release: PhantomData<R>,
}

impl<R: Release> Simple<R> {
    /// Wraps a simple record at an address, of `words` words.
    ///
    /// # Safety
    /// A simple record with this number of [words](Record::simple_words) must be at the address, in
    /// a store.
    #[inline(always)]
    pub(crate) unsafe fn new(address: usize, words: usize) -> Self {
        Simple {
            address,
            words,
            release: PhantomData,
        }
    }

    fn bytes(&self) -> usize {
        self.words * size_of::<u64>()
    }

    /// Returns the weight of the record.
    #[inline]
    pub(crate) fn weight(&self) -> Weight {
        Weight {
            objects: 1,
            bytes: slab::block_size(self.bytes()) as i64,
        }
    }

    /// Retires the record.
    ///
    /// # Safety
    /// The record must just have been taken out of its store, under the lock under which it was
    /// found.
    #[inline]
    pub(crate) unsafe fn retire(self, guard: &Guard) {
        let record = ptr::with_exposed_provenance_mut::<Record<R>>(self.address);
        // SAFETY: the record was just taken out of its store, under the lock under which it was
        // found, so no thread that pins from now on can reach it (RECORD-2). A simple record owns
        // nothing.
        unsafe { boxed::retire_block(record, self.bytes(), guard) };
    }
}

impl<R: Release> Record<R> {
    /// Returns the number of words of the record, if it is [simple](Simple).
    #[inline]
    pub(crate) fn simple_words(&self) -> Option<usize> {
        let shape = self.header.shape();
        let bytes = shape.bytes();
        let counted = Weight {
            objects: 1,
            bytes: slab::block_size(bytes) as i64,
        };
        let is_simple = !shape.owns && !self.header.is_stamped() && R::weight(self) == counted;
        is_simple.then_some(bytes / size_of::<u64>())
    }
}

/// A record taken out of a store.
pub(crate) enum Old<'g, R: Release> {
    /// A record that was read.
    Seen(&'g Record<R>),
    /// A simple record that need not be read.
    Unseen(Simple<R>),
}

impl<R: Release> Old<'_, R> {
    /// Returns the weight of the record.
    #[inline]
    pub(crate) fn weight(&self) -> Weight {
        match self {
            Old::Seen(record) => record.weight(),
            Old::Unseen(simple) => simple.weight(),
        }
    }

    /// Returns the number of objects, as [`Record::objects_in_slot`].
    pub(crate) fn objects_in_slot(&self) -> u64 {
        match self {
            Old::Seen(record) => record.objects_in_slot(),
            Old::Unseen(_) => 1,
        }
    }

    /// Returns the record's address.
    #[inline]
    pub(crate) fn pointer(&self) -> *mut Record<R> {
        match self {
            Old::Seen(record) => ptr::from_ref(*record).cast_mut(),
            Old::Unseen(simple) => ptr::with_exposed_provenance_mut(simple.address),
        }
    }

    /// Retires the record.
    ///
    /// # Safety
    /// The record must just have been taken out of its store, under the lock under which it was
    /// found.
    #[inline]
    pub(crate) unsafe fn retire(self, guard: &Guard) {
        // SAFETY: the record was just taken out of its store, under the lock under which it was
        // found, so no thread that pins from now on can reach it (RECORD-2).
        unsafe {
            match self {
                Old::Seen(record) => boxed::retire(ptr::from_ref(record).cast_mut(), guard),
                Old::Unseen(simple) => simple.retire(guard),
            }
        }
    }
}
