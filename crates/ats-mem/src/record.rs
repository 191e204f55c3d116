//! A record: one key with its value, immutable once published, in one block of the [slab](crate::slab).
//!
//! ```text
//! word 0        stamp: 0 = committed, else a pointer to the batch entry it belongs to
//! word 1        key length in bytes (32 bits) | value length in words (31 bits) | owns (1 bit)
//! word 2..      key bytes, padded with zeros to a whole word
//! then          value words
//! ```
//!
//! The key stands right behind the header because whoever reaches a record compares its key first,
//! and both usually share a cache line. The value is 64-bit words, aligned, so that its owner can
//! read it in place.
//!
//! # Pending records
//! A record whose stamp is not 0 belongs to a batch (several keys written as one). While the batch
//! is open, every reader sees through it to the record that was there before; when the batch
//! commits, by one atomic store, all its records become visible at once. A writer that meets a
//! pending record waits for its batch: the pending record is the lock of its key. Batches install
//! their records in ascending key order, so they cannot wait for each other in a circle.
//! See [`batch`](crate::batch).
//!
//! # Invariants
//! - I1. Key and value of a published record never change; only the stamp does, from "my batch" to 0.
//! - I2. A record that was reachable is freed only through [`Guard::retire`](ats_sync::Guard::retire).
//! - I3. `owns` is set exactly if the value holds resources that [`Release`] must give back when the
//!   record is freed.

use crate::batch::{Entry, State};
use crate::slab;
use ats_sync::Guard;
use ats_sync::shim::atomic::{AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr::{self, NonNull};

/// How resources held by values (shared binaries, references into a virtual machine...) are given
/// back. Implemented by whoever knows what the value words mean.
pub trait Release: Send + Sync + 'static {
    /// Gives back what the words own. Called once for each owning record, when no reader can see it
    /// any more, from any thread.
    ///
    /// # Safety
    /// `value` must be the value of a record that was created with `owns`, and must not be used
    /// afterwards.
    unsafe fn release(value: &[u64]);
}

/// Values that own nothing.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

impl Release for Plain {
    unsafe fn release(_value: &[u64]) {}
}

/// The fixed part of a record; see the module's documentation for what follows it in memory.
#[repr(C)]
pub struct Record<R: Release> {
    stamp: AtomicPtr<Entry<R>>,
    key_len: u32,
    value_words_owns: u32,
    release: PhantomData<R>,
}

const HEADER_WORDS: usize = 2;
const WORD: usize = size_of::<u64>();

/// What a writer finds in a slot.
pub enum Writable<'g, R: Release> {
    /// This is the current record (none if a batch that inserted it was undone).
    Settled(Option<&'g Record<R>>),
    /// A batch holds the key.
    Pending,
}

impl<R: Release> Record<R> {
    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        // SAFETY: a record is only made by `RecordBox::new`, which allocates and fills the key bytes
        // behind the header; they never change (I1).
        unsafe {
            let start = ptr::from_ref(self).cast::<u8>().add(HEADER_WORDS * WORD);
            std::slice::from_raw_parts(start, self.key_len as usize)
        }
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &[u64] {
        // SAFETY: as for `key`; the value follows the padded key.
        unsafe {
            let start = ptr::from_ref(self).cast::<u64>();
            let start = start.add(HEADER_WORDS + key_words(self.key_len as usize));
            std::slice::from_raw_parts(start, self.value_words())
        }
    }

    /// Whether the value owns resources.
    pub fn owns(&self) -> bool {
        self.value_words_owns & 1 == 1
    }

    /// Bytes of memory this record takes: its block of the slab.
    pub fn bytes(&self) -> usize {
        slab::rounded(size_with(self.key_len as usize, self.value_words()))
    }

    fn value_words(&self) -> usize {
        (self.value_words_owns >> 1) as usize
    }

    /// What a reader that found this record in the store sees: itself, or, if it belongs to a batch
    /// that has not committed, what was there before.
    #[inline]
    pub fn settled<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>> {
        let entry = self.stamp.load(Ordering::Acquire);
        if entry.is_null() {
            return Some(self);
        }
        self.settled_in_batch(entry, guard)
    }

    #[cold]
    fn settled_in_batch<'g>(
        &'g self,
        entry: *const Entry<R>,
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        // SAFETY: a batch retires its entries after it has taken them out of every stamp, so an
        // entry read from a stamp under a guard lives as long as the guard.
        let entry = unsafe { &*entry };
        if entry.state() == State::Committed {
            return Some(self);
        }
        // SAFETY: the record before is retired only after the batch has committed, hence after this
        // guard was made if the batch is seen uncommitted under it.
        let before = unsafe { entry.before().as_ref() };
        before.and_then(|record| record.settled(guard))
    }

    /// What a writer that holds the lock of the slot may change.
    pub(crate) fn writable(&self) -> Writable<'_, R> {
        let entry = self.stamp.load(Ordering::Acquire);
        if entry.is_null() {
            return Writable::Settled(Some(self));
        }
        // SAFETY: as in `settled_in_batch`; writers hold a guard, too.
        match unsafe { &*entry }.state() {
            State::Committed => Writable::Settled(Some(self)),
            State::Open | State::Aborted => Writable::Pending,
        }
    }

    pub(crate) fn set_stamp(&self, entry: *mut Entry<R>) {
        self.stamp.store(entry, Ordering::Release);
    }
}

/// A record that nobody else can see yet.
pub struct RecordBox<R: Release>(NonNull<Record<R>>);

// SAFETY: the box is the only way to its record, whose words are plain data or resources that
// `Release` may give back on any thread.
unsafe impl<R: Release> Send for RecordBox<R> {}

impl<R: Release> RecordBox<R> {
    /// A record of these contents. `owns` says that the value holds resources for which
    /// [`Release::release`] must be called in the end; they belong to the record from now on.
    ///
    /// # Panics
    /// If the key has 4 GiB or the value 2^31 words.
    pub fn new(key: &[u8], value: &[u64], owns: bool) -> Self {
        let key_len = u32::try_from(key.len()).expect("a key is shorter than 4 GiB");
        let words = u32::try_from(value.len()).expect("a value is shorter than 2^31 words");
        assert!(words < 1 << 31, "a value is shorter than 2^31 words");
        let record = slab::allocate(size_with(key.len(), value.len())).cast::<Record<R>>();
        // SAFETY: the block holds the header, the padded key and the value, in this order. The
        // last word of the key is zeroed first so that its padding is defined.
        unsafe {
            record.write(Record {
                stamp: AtomicPtr::new(ptr::null_mut()),
                key_len,
                value_words_owns: words << 1 | u32::from(owns),
                release: PhantomData,
            });
            let words = record.cast::<u64>().as_ptr();
            let key_words = key_words(key.len());
            if key_words > 0 {
                words.add(HEADER_WORDS + key_words - 1).write(0);
            }
            ptr::copy_nonoverlapping(key.as_ptr(), words.add(HEADER_WORDS).cast(), key.len());
            let start = words.add(HEADER_WORDS + key_words);
            ptr::copy_nonoverlapping(value.as_ptr(), start, value.len());
        }
        RecordBox(record)
    }

    /// Gives the record away, to be published in a store.
    pub fn into_raw(self) -> *mut Record<R> {
        let raw = self.0.as_ptr();
        std::mem::forget(self);
        raw
    }

    /// Takes a record back.
    ///
    /// # Safety
    /// `raw` comes from [`into_raw`](RecordBox::into_raw), and nobody else can see it.
    pub unsafe fn from_raw(raw: *mut Record<R>) -> Self {
        // SAFETY: `into_raw` never gives null.
        RecordBox(unsafe { NonNull::new_unchecked(raw) })
    }
}

impl<R: Release> std::ops::Deref for RecordBox<R> {
    type Target = Record<R>;

    fn deref(&self) -> &Record<R> {
        // SAFETY: the box owns a live record.
        unsafe { self.0.as_ref() }
    }
}

impl<R: Release> Drop for RecordBox<R> {
    fn drop(&mut self) {
        if self.owns() {
            // SAFETY: the record owns its resources (I3) and ends here.
            unsafe { R::release(self.value()) };
        }
        let bytes = size_with(self.key_len as usize, self.value_words());
        // SAFETY: allocated in `new` with the same size, and not used any more.
        unsafe { slab::free(self.0.cast(), bytes) };
    }
}

/// Retires a record that was just taken out of a store.
///
/// # Safety
/// `record` was published and can no longer be reached by threads that pin from now on.
pub(crate) unsafe fn retire<R: Release>(record: *mut Record<R>, guard: &Guard) {
    unsafe fn free<R: Release>(raw: *mut u8) {
        // SAFETY: `retire` hands over a record that nobody can reach after the grace period.
        drop(unsafe { RecordBox::<R>::from_raw(raw.cast()) });
    }
    // SAFETY: the caller's promise is the one `Guard::retire` asks for. A record that owns nothing is
    // nothing but its block.
    unsafe {
        let bytes = (*record).bytes();
        let free = match slab::freeing(bytes) {
            Some(free_block) if !(*record).owns() => free_block,
            _ => free::<R>,
        };
        guard.retire(record.cast(), bytes, free);
    }
}

fn key_words(key_len: usize) -> usize {
    key_len.div_ceil(WORD)
}

/// Bytes of a record. A key below 4 GiB and a value below 2^31 words cannot overflow this.
fn size_with(key_len: usize, value_words: usize) -> usize {
    (HEADER_WORDS + key_words(key_len) + value_words) * WORD
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn key_and_value_of_every_length_come_back() {
        for key_len in 0..40 {
            for value_len in 0..6 {
                let key: Vec<u8> = (0..key_len).map(|i| i as u8 ^ 0xa5).collect();
                let value: Vec<u64> = (0..value_len).map(|i| u64::MAX - i).collect();
                let record = RecordBox::<Plain>::new(&key, &value, false);
                assert_eq!(record.key(), key);
                assert_eq!(record.value(), value);
                let needed = 16 + key.len().div_ceil(8) * 8 + value.len() * 8;
                assert_eq!(record.bytes(), slab::rounded(needed));
                assert!(!record.owns());
            }
        }
    }

    static RELEASED: AtomicUsize = AtomicUsize::new(0);

    struct Count;

    impl Release for Count {
        unsafe fn release(value: &[u64]) {
            RELEASED.fetch_add(value[0] as usize, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_owning_record_releases_once() {
        drop(RecordBox::<Count>::new(b"k", &[7], true));
        drop(RecordBox::<Count>::new(b"k", &[1000], false));
        let raw = RecordBox::<Count>::new(b"k", &[5], true).into_raw();
        // SAFETY: `raw` was just given away here.
        drop(unsafe { RecordBox::from_raw(raw) });
        assert_eq!(RELEASED.load(Ordering::Relaxed), 12);
    }
}
