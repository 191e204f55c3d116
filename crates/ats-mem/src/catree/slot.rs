//! Slots of a leaf: words with the address of a record, and a summary that often spares reading it.
//!
//! ```text
//!  63       56 55        48 47                            3   2   1   0
//! +-----------+------------+--------------------------------+---+---+---+
//! | bytes of  | words of   | address of the record / 8      | 0 | S | 0 |
//! | its key   | the record |                                |   |   |   |
//! +-----------+------------+--------------------------------+---+---+---+
//! | 0                      | address of the removal / 8     | R | 0 | 0 |
//! +------------------------+--------------------------------+---+---+---+
//! | bytes of the key, of which there is no record any more          | 1 |
//! +-----------------------------------------------------------------+---+
//! ```
//!
//! A record that is replaced or removed was written long ago, and is not in the cache. It need not
//! be: S marks the upper 16 bits as the *summary* of a *simple* record, which has no stamp, owns
//! nothing, and counts as one object and its own bytes. So the word alone determines whether the
//! record has a searched key, if the head of the key completes it; whether it is visible; its
//! weight; and how it is freed.
//!
//! R marks a removed key whose old record earlier queries may still read: the record is a
//! [removal](crate::read_points), which leads to it. Ordinary readers need not read it.
//!
//! # Invariant
//! - SLOT-1. A slot with a summary leads to a simple record. Only a batch stamps records that are
//!   in the store, in a [step](crate::batch::Stepwise::step), under the lock; before this is
//!   released, the summary is removed from the slot. A thread that reads the summary meanwhile sees
//!   a record that the key keeps even if the batch aborts.

use crate::record::{Record, Release, Simple};
use crate::slab;
use ats_sync::shim::atomic::{
    AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release as Rel,
};
use std::marker::PhantomData;
use std::ptr;

const TOMBSTONE: u64 = 1;
const SUMMARY: u64 = 2;
const REMOVED: u64 = 4;
const ADDRESS: u64 = ((1 << WORDS_SHIFT) - 1) & !(TOMBSTONE | SUMMARY | REMOVED);
const WORDS_SHIFT: u32 = 48;
const KEY_SHIFT: u32 = 56;
/// Largest number of words, or of bytes of a key, in a summary.
const MOST: usize = u8::MAX as usize;

const _: () = assert!(slab::ADDRESS_LIMIT <= 1 << WORDS_SHIFT);

/// A word of a leaf.
#[repr(transparent)]
pub(super) struct Slot<R: Release>(AtomicU64, PhantomData<R>);

/// The content of a slot at one moment.
pub(super) struct Word<R: Release>(u64, PhantomData<R>);

impl<R: Release> Clone for Word<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Release> Copy for Word<R> {}

impl<R: Release> Word<R> {
    /// The word of a slot that has no key yet.
    pub(super) const UNUSED: Self = Word(0, PhantomData);

    /// Returns the word of a record.
    #[inline]
    pub(super) fn of(record: &Record<R>) -> Self {
        let address = ptr::from_ref(record).expose_provenance() as u64;
        let summary = match record.simple_words() {
            Some(words) if words <= MOST && record.key().len() <= MOST => {
                let key_len = record.key().len() as u64;
                key_len << KEY_SHIFT | (words as u64) << WORDS_SHIFT | SUMMARY
            }
            _ if record.is_removal() => REMOVED,
            _ => 0,
        };
        Word(address | summary, PhantomData)
    }

    /// Returns a *tombstone*, which keeps the slot of a removed key for its return. It only has the
    /// length of the key, so a key gets one only if its head completes it.
    pub(super) fn tombstone(key_len: usize) -> Self {
        Word((key_len as u64) << 1 | TOMBSTONE, PhantomData)
    }

    #[inline(always)]
    pub(super) fn is_tombstone(self) -> bool {
        self.0 & TOMBSTONE != 0
    }

    /// Returns `true` if the word has no record that an ordinary reader, or a writer, could see.
    #[inline(always)]
    pub(super) fn is_gone(self) -> bool {
        self.0 & (TOMBSTONE | REMOVED) != 0
    }

    #[inline(always)]
    fn is_summarised(self) -> bool {
        self.0 & (TOMBSTONE | SUMMARY) == SUMMARY
    }

    /// Returns the length of the key, if the word has it.
    #[inline(always)]
    pub(super) fn key_len(self) -> Option<usize> {
        if self.is_tombstone() {
            Some((self.0 >> 1) as usize)
        } else if self.is_summarised() {
            Some((self.0 >> KEY_SHIFT) as usize)
        } else {
            None
        }
    }

    /// Returns the address of the record; meaningless if there is none.
    #[inline(always)]
    pub(super) fn address(self) -> usize {
        (self.0 & ADDRESS) as usize
    }

    /// Returns the record, if there is one (it may be pending).
    ///
    /// # Safety
    /// The word must have been loaded from a slot of a leaf to which the caller has a reference
    /// that lives as long as `'r` (CATREE-6).
    #[inline(always)]
    pub(super) unsafe fn record<'r>(self) -> Option<&'r Record<R>> {
        if self.is_gone() {
            return None;
        }
        // SAFETY: the caller promises that the word is from a leaf that lives as long as `'r`
        // (CATREE-6).
        unsafe { self.any_record() }
    }

    /// Returns the record, if there is one; it may be a removal.
    ///
    /// # Safety
    /// The same as for [`record`](Self::record).
    #[inline(always)]
    pub(super) unsafe fn any_record<'r>(self) -> Option<&'r Record<R>> {
        if self.is_tombstone() {
            return None;
        }
        // SAFETY: a reference to a leaf exists only under a guard, or with exclusive access
        // (CATREE-6). A record seen in a slot then is retired only after its removal (RECORD-2), so
        // it lives as long.
        Some(unsafe { &*ptr::with_exposed_provenance(self.address()) })
    }

    /// Returns the record, if it is a simple one that need not be read.
    #[inline(always)]
    pub(super) fn simple(self) -> Option<Simple<R>> {
        let words = (self.0 >> WORDS_SHIFT) as usize & MOST;
        // SAFETY: the word has a summary, so the record is a simple one (SLOT-1).
        self.is_summarised()
            .then(|| unsafe { Simple::new(self.address(), words) })
    }
}

impl<R: Release> Slot<R> {
    pub(super) fn new(word: Word<R>) -> Self {
        Slot(AtomicU64::new(word.0), PhantomData)
    }

    /// Loads the word with acquire.
    #[inline(always)]
    pub(super) fn load(&self) -> Word<R> {
        Word(self.0.load(Acquire), PhantomData)
    }

    /// Loads the word for the holder of the lock, or as a hint.
    #[inline(always)]
    pub(super) fn peek(&self) -> Word<R> {
        Word(self.0.load(Relaxed), PhantomData)
    }

    /// Stores a word. The caller holds the lock.
    #[inline(always)]
    pub(super) fn store(&self, word: Word<R>) {
        self.0.store(word.0, Rel);
    }
}
