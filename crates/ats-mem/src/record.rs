//! A record: one key with its value, immutable once published, in one block of the [slab](crate::slab).
//!
//! ```text
//! word 0        stamp (48 bits): 0 = committed, else the batch entry it belongs to
//!               | lengths of key and value, owns (16 bits)
//! (words 1, 2   lengths and stamp that do not fit there; see the module `header`)
//! then          key bytes, padded with zeros to a whole word
//! then          value words
//! ```
//!
//! The key stands right behind the header because a thread that reaches a record compares its key
//! first, and both usually share a cache line. The value is 64-bit words, aligned, so that its owner
//! can read it in place.
//!
//! # Pending records
//! A record whose stamp is not 0 belongs to a batch (several keys written as one). While the batch
//! is open, every reader sees through it to the record that was there before; when the batch
//! commits, by one atomic store, all its records become visible at once. A writer that meets a
//! stamped record waits until the stamp is gone: the stamp is the lock of its key. Batches install
//! their records in ascending key order, so they cannot wait for each other in a circle.
//! See [`batch`](crate::batch).
//!
//! A batch that lets a key be as it is stamps the record that is there, which stays visible. For a key that
//! has none, a record without value stands for a key that the batch only holds. It never becomes visible:
//! every reader sees through it.
//!
//! # Invariants
//! - I1. Key and value of a published record never change; only the stamp does, from 0 to the entry of a batch
//!   and back, and such words of the value as their owner accesses atomically, and by
//!   [`value_words`](Record::value_words) only. A record is stamped before it is published, or under the lock
//!   of its key, and only if it has no stamp; only the batch that has stamped it takes the stamp away.
//! - I2. A record that was reachable is freed only through [`Guard::retire`](ats_sync::Guard::retire).
//! - I3. `owns` is set exactly if the value holds resources that [`Release`] must give back when the
//!   record is freed.

pub(crate) mod entry;
mod header;

use crate::slab;
use ats_sync::Guard;
use entry::Entry;
use header::{Header, Shape};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

/// How resources held by values (shared binaries, references into a virtual machine...) are given
/// back. Implemented by the code that knows what the value words mean.
pub trait Release: Send + Sync + 'static {
    /// Gives back what the words own. Called once for each owning record, when no reader can see it
    /// any more, from any thread.
    ///
    /// # Safety
    /// `value` must be the value of a record that was created with `owns`, and must not be used
    /// afterwards.
    unsafe fn release(value: &[u64]);

    /// About how many bytes of memory what the words own keeps from being used, besides the words. Called
    /// when an owning value is retired, while readers may still be looking at it. Nothing, unless the owner of the
    /// values says more.
    ///
    /// # Safety
    /// `value` and `words` are those of an owning value, as
    /// [`value_words`](Record::value_words) tells them.
    unsafe fn kept_bytes(value: *const u64, words: usize) -> usize {
        let _ = (value, words);
        0
    }
}

/// Values that own nothing.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

impl Release for Plain {
    unsafe fn release(_value: &[u64]) {}
}

/// The fixed part of a record; see the module's documentation for what follows it in memory.
#[repr(transparent)]
pub struct Record<R: Release> {
    header: Header<Entry<R>>,
    release: PhantomData<R>,
}

impl<R: Release> Record<R> {
    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        let shape = self.header.shape();
        // SAFETY: a record is only made by `RecordBox::make`, which allocates and fills the key bytes
        // behind the header; they never change (I1).
        unsafe {
            let start = self.words_from(shape.header_words()).cast();
            std::slice::from_raw_parts(start, shape.key_len as usize)
        }
    }

    /// Whether this is the key. Up to 16 bytes, the most common, are compared without a call.
    #[inline(always)]
    pub(crate) fn has_key(&self, key: &[u8]) -> bool {
        let own = self.key();
        let len = own.len();
        if len != key.len() {
            return false;
        }
        match len {
            0 => true,
            1..=3 => {
                own[0] == key[0] && own[len / 2] == key[len / 2] && own[len - 1] == key[len - 1]
            }
            4..=7 => own[..4] == key[..4] && own[len - 4..] == key[len - 4..],
            8..=16 => own[..8] == key[..8] && own[len - 8..] == key[len - 8..],
            _ => own == key,
        }
    }

    /// The value. Not for values of which some words [change](Record::value_words).
    #[inline]
    pub fn value(&self) -> &[u64] {
        let (start, words) = self.value_words();
        // SAFETY: as for `key`, and words do not change (I1).
        unsafe { std::slice::from_raw_parts(start, words) }
    }

    /// Where the words of the value begin, and how many there are. For code that owns values and changes
    /// some of their words atomically, and so must not have a slice of them.
    #[inline]
    pub fn value_words(&self) -> (*const u64, usize) {
        let shape = self.header.shape();
        // SAFETY: as for `key`; the value follows the padded key.
        let start = unsafe { self.words_from(shape.header_words() + shape.key_words()) };
        (start, shape.value_words as usize)
    }

    /// Whether the value owns resources.
    pub fn owns(&self) -> bool {
        self.header.shape().owns
    }

    /// Bytes of memory this record takes: its block of the slab.
    pub fn bytes(&self) -> usize {
        slab::rounded(self.header.shape().bytes())
    }

    /// # Safety
    /// The record has at least `words` words.
    unsafe fn words_from(&self, words: usize) -> *const u64 {
        // SAFETY: the contract.
        unsafe { ptr::from_ref(self).cast::<u64>().add(words) }
    }

    /// What a reader that found this record in the store sees: itself, or, if it belongs to a batch
    /// that has not committed, what was there before.
    #[inline]
    pub fn settled<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>> {
        let entry = self.header.stamp();
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
        if entry.shows(self) {
            return Some(self);
        }
        // SAFETY: the record before is retired only after the batch has committed, hence after this
        // guard was made if the batch is seen uncommitted under it. If the record is one that only holds
        // its key, it was taken out of the store before the record before could be replaced, and this guard
        // is older than that.
        let before = unsafe { entry.before().as_ref() };
        before.and_then(|record| record.settled(guard))
    }

    /// Whether a batch holds the key of this record, which was found in a store whose lock the caller has.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        !self.header.stamp().is_null()
    }

    /// Whether the record, as it is, can be stamped with this entry.
    pub(crate) fn has_room_for(&self, entry: *const Entry<R>) -> bool {
        self.header.has_room_for(entry)
    }

    /// Stamps a record that has [room](Record::has_room_for) for it and no stamp, as I1 says. With null, takes
    /// the stamp away.
    pub(crate) fn set_stamp(&self, entry: *mut Entry<R>) {
        if entry.is_null() {
            self.header.clear_stamp();
        } else {
            self.header.set_stamp(entry);
        }
    }
}

/// A record that no other code can reach yet.
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
        Self::in_parts(key, [&[], value], owns)
    }

    /// As [`new`](RecordBox::new), of a value that is given in two parts.
    ///
    /// # Panics
    /// As `new`.
    pub fn in_parts(key: &[u8], value: [&[u64]; 2], owns: bool) -> Self {
        let words = value[0].len() + value[1].len();
        Self::make(key, value, Shape::new(key.len(), words, owns))
    }

    /// A record of these contents, which have this shape.
    fn make(key: &[u8], value: [&[u64]; 2], shape: Shape) -> Self {
        let record = slab::allocate(shape.bytes()).cast::<Record<R>>();
        let key_words = shape.key_words();
        // SAFETY: the block holds the header, the padded key and the value, in this order. The
        // last word of the key is zeroed first so that its padding is defined.
        unsafe {
            Header::<Entry<R>>::write(record.cast().as_ptr(), shape);
            let start = record.cast::<u64>().add(shape.header_words());
            if key_words > 0 {
                start.add(key_words - 1).write(0);
            }
            ptr::copy_nonoverlapping(key.as_ptr(), start.cast().as_ptr(), key.len());
            let mut start = start.add(key_words);
            for part in value {
                ptr::copy_nonoverlapping(part.as_ptr(), start.as_ptr(), part.len());
                start = start.add(part.len());
            }
        }
        RecordBox(record)
    }

    /// This record, or if `entry` is at an address that does not fit into its header, a copy which
    /// has room for any.
    pub(crate) fn with_room_for(self, entry: *const Entry<R>) -> Self {
        if self.has_room_for(entry) {
            return self;
        }
        let shape = self.header.shape();
        let wide = Shape {
            wide: true,
            ..shape
        };
        let copy = Self::make(self.key(), [&[], self.value()], wide);
        // What the value owns belongs to the copy now, so only the block goes.
        let block = ManuallyDrop::new(self).0.cast();
        // SAFETY: the block was allocated with this size, and no code refers to it any more.
        unsafe { slab::free(block, shape.bytes()) };
        copy
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
    /// `raw` comes from [`into_raw`](RecordBox::into_raw), and no other code can reach it.
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
        let bytes = self.header.shape().bytes();
        // SAFETY: allocated in `make` with the same size, and not used any more.
        unsafe { slab::free(self.0.cast(), bytes) };
    }
}

/// Retires a record that was just taken out of a store.
///
/// # Safety
/// `record` was published and can no longer be reached by threads that pin from now on.
pub(crate) unsafe fn retire<R: Release>(record: *mut Record<R>, guard: &Guard) {
    unsafe fn free<R: Release>(raw: *mut u8) {
        // SAFETY: `retire` hands over a record that no thread can reach after the grace period.
        drop(unsafe { RecordBox::<R>::from_raw(raw.cast()) });
    }
    // SAFETY: the caller's promise is the one `Guard::retire` asks for. A record that owns nothing is
    // nothing but its block.
    unsafe {
        let mut bytes = (*record).bytes();
        let free = match slab::freeing(bytes) {
            _ if (*record).owns() => {
                let (value, words) = (*record).value_words();
                bytes = bytes.saturating_add(R::kept_bytes(value, words));
                free::<R>
            }
            Some(free_block) => free_block,
            None => free::<R>,
        };
        guard.retire(record.cast(), bytes, free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn check(record: &RecordBox<Plain>, key: &[u8], value: &[u64], header: usize) {
        assert_eq!(record.key(), key);
        assert_eq!(record.value(), value);
        assert!(!record.owns());
        let needed = header + key.len().div_ceil(8) * 8 + value.len() * 8;
        assert_eq!(record.bytes(), slab::rounded(needed));
        assert!(ptr::eq(
            record.settled(&ats_sync::pin()).unwrap(),
            &**record
        ));
    }

    #[test]
    fn key_and_value_of_every_length_come_back() {
        for key_len in (0..40).chain(120..140) {
            for value_len in (0..6).chain(250..260) {
                let key: Vec<u8> = (0..key_len).map(|i| i as u8 ^ 0xa5).collect();
                let value: Vec<u64> = (0..value_len).map(|i| u64::MAX - i).collect();
                let fits = key_len < 128 && value_len < 256;
                let record = RecordBox::<Plain>::new(&key, &value, false);
                check(&record, &key, &value, if fits { 8 } else { 24 });
                // Of two neighbours one has no room, in tests.
                for entry in [1 << 20, (1 << 20) + 8, 1 << 60, (1 << 20) + 1] {
                    let entry = ptr::without_provenance_mut(entry);
                    let record = RecordBox::<Plain>::new(&key, &value, false).with_room_for(entry);
                    let wide = !fits || entry.addr() != (1 << 20) + 8;
                    check(&record, &key, &value, if wide { 24 } else { 8 });
                    record.set_stamp(entry);
                    assert_eq!(record.header.stamp(), entry);
                    assert_eq!((record.key(), record.value()), (&key[..], &value[..]));
                    record.set_stamp(ptr::null_mut());
                    check(&record, &key, &value, if wide { 24 } else { 8 });
                }
            }
        }
    }

    #[test]
    fn a_long_key_and_a_long_value_come_back() {
        for (key_len, value_len) in [(100_000, 3), (3, 100_000), (100_000, 100_000)] {
            let (key, value) = (vec![7; key_len], vec![u64::MAX; value_len]);
            check(&RecordBox::new(&key, &value, false), &key, &value, 24);
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
    fn the_shape_that_means_wide_is_wide_itself() {
        let (key, value) = ([1; 127], [2; 255]);
        let record = RecordBox::<Plain>::new(&key, &value, true);
        assert!(record.header.shape().wide && record.owns());
        assert_eq!((record.key(), record.value()), (&key[..], &value[..]));
        let record = RecordBox::<Plain>::new(&key, &value, false);
        assert!(!record.header.shape().wide && !record.owns());
    }

    #[test]
    fn an_owning_record_releases_once() {
        drop(RecordBox::<Count>::new(b"k", &[7], true));
        drop(RecordBox::<Count>::new(b"k", &[1000], false));
        let raw = RecordBox::<Count>::new(b"k", &[5], true).into_raw();
        // SAFETY: `raw` was just given away here.
        drop(unsafe { RecordBox::from_raw(raw) });
        // A copy that has room for any stamp takes what the value owns with it.
        let far = ptr::without_provenance(usize::MAX);
        let wide = RecordBox::<Count>::new(b"k", &[30], true).with_room_for(far);
        assert!(wide.owns() && wide.header.shape().wide);
        assert_eq!(RELEASED.load(Ordering::Relaxed), 12);
        drop(wide);
        assert_eq!(RELEASED.load(Ordering::Relaxed), 42);
    }
}
