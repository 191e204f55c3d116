//! A word of a leaf: where the record of a key is, and what of it can be told without looking at
//! it.
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
//! A record that is replaced or removed was written long ago, and is not in the cache. Nor need it
//! be: S says that the upper 16 bits are the *summary* of a *simple* record, which has no stamp,
//! owns nothing, and counts one object and its own bytes. So it can be told from the word whether
//! its key is that of a search, if the head of the key completes it; whether the record is visible;
//! what it counts; and how it is freed.
//!
//! R says that the key was removed, but queries of an earlier moment may still read what was there:
//! the record is a [removal](crate::moments), which leads to that. Readers of the present need not
//! look at it.
//!
//! # Invariant
//! - SLOT-1. A slot with a summary leads to a simple record. Only a batch stamps records that are
//!   in the store, in a [step](crate::batch::Stepwise::step), under the lock; before this is given
//!   back, the summary is taken out of the slot. A thread that sees it meanwhile sees a record that
//!   its key keeps, whatever becomes of the batch.

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
/// More words, or bytes of a key, do not fit.
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
    /// That of a place which has no key yet.
    pub(super) const UNUSED: Self = Word(0, PhantomData);

    /// A record.
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

    /// A *tombstone*: it keeps the place of a removed key so that the key can come back. It only
    /// knows the length of the key, so a key gets one only if its head completes it.
    pub(super) fn tombstone(key_len: usize) -> Self {
        Word((key_len as u64) << 1 | TOMBSTONE, PhantomData)
    }

    #[inline(always)]
    pub(super) fn is_tombstone(self) -> bool {
        self.0 & TOMBSTONE != 0
    }

    /// Returns `true` if it has no record that a reader of the present, or a writer, could see.
    #[inline(always)]
    pub(super) fn is_gone(self) -> bool {
        self.0 & (TOMBSTONE | REMOVED) != 0
    }

    #[inline(always)]
    fn is_summarised(self) -> bool {
        self.0 & (TOMBSTONE | SUMMARY) == SUMMARY
    }

    /// The length of the key, if the word tells it.
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

    /// The address of the record; nothing of use if there is none.
    #[inline(always)]
    pub(super) fn address(self) -> usize {
        (self.0 & ADDRESS) as usize
    }

    /// The record, if there is one (it may be pending).
    ///
    /// # Safety
    /// The word was loaded from a slot of a leaf to which the caller has a reference that lives as
    /// long as `'r` (CATREE-6).
    #[inline(always)]
    pub(super) unsafe fn record<'r>(self) -> Option<&'r Record<R>> {
        if self.is_gone() {
            return None;
        }
        // SAFETY: the caller says that the word is of a leaf that lives as long as `'r` (CATREE-6).
        unsafe { self.any_record() }
    }

    /// The record, if there is one: also a removal.
    ///
    /// # Safety
    /// As for [`record`](Self::record).
    #[inline(always)]
    pub(super) unsafe fn any_record<'r>(self) -> Option<&'r Record<R>> {
        if self.is_tombstone() {
            return None;
        }
        // SAFETY: a reference to a leaf is had under a guard, or alone (CATREE-6). A record that is
        // seen in a slot then is retired only after it was taken out (RECORD-2), so it lives as
        // long.
        Some(unsafe { &*ptr::with_exposed_provenance(self.address()) })
    }

    /// The record, if it is a simple one that need not be looked at.
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

    /// The word that it holds, and all that was written before that was stored.
    #[inline(always)]
    pub(super) fn load(&self) -> Word<R> {
        Word(self.0.load(Acquire), PhantomData)
    }

    /// The word that it holds, for the holder of the lock or as a hint.
    #[inline(always)]
    pub(super) fn peek(&self) -> Word<R> {
        Word(self.0.load(Relaxed), PhantomData)
    }

    /// Stores a word. For the holder of the lock.
    #[inline(always)]
    pub(super) fn store(&self, word: Word<R>) {
        self.0.store(word.0, Rel);
    }
}
