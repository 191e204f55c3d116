//! Records before their publication, and after their retirement.

use super::entry::Entry;
use super::header::{Header, Shape};
use super::published::Record;
use super::release::Release;
use crate::slab;
use ats_sync::Guard;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

/// A record that no other code can reach yet.
pub struct RecordBox<R: Release>(NonNull<Record<R>>);

// SAFETY: the box is the only way to its record, whose words are plain data or resources that
// `Release` may release on any thread (RECORD-3).
unsafe impl<R: Release> Send for RecordBox<R> {}

impl<R: Release> RecordBox<R> {
    /// Creates a record. With `owns`, the value holds resources for which [`Release::release`] must
    /// be called in the end; they belong to the record from now on. A record in a store has a value
    /// of at least one word.
    ///
    /// # Panics
    /// Panics if the key has 4 GiB or more, or the value 2^31 words or more.
    #[inline]
    pub fn new(key: &[u8], value: &[u64], owns: bool) -> Self {
        Self::in_parts(key, [value], owns)
    }

    /// Creates a record like [`new`](RecordBox::new), from a value in parts.
    ///
    /// # Panics
    /// Panics like `new`.
    #[inline]
    pub fn in_parts<const N: usize>(key: &[u8], value: [&[u64]; N], owns: bool) -> Self {
        let words = value.iter().map(|part| part.len()).sum();
        Self::make(key, value, Shape::new(key.len(), words, owns))
    }

    /// Creates a record of this shape.
    fn make<const N: usize>(key: &[u8], value: [&[u64]; N], shape: Shape) -> Self {
        let record = slab::allocate(shape.bytes()).cast::<Record<R>>();
        ats_sync::count::note_bytes_written(shape.bytes());
        let key_words = shape.key_words();
        // SAFETY: the block, which no other code has, holds the header, the padded key and the
        // value. The last word of the key is zeroed first so that its padding is defined.
        unsafe {
            Header::<Entry<Record<R>>>::write(record.cast().as_ptr(), shape);
            let start = record.cast::<u64>().add(shape.header_words());
            if key_words > 0 {
                start.add(key_words - 1).write(0);
            }
            copy_bytes(key, start.cast().as_ptr());
            let mut at = start.add(key_words);
            for part in value {
                copy_words(part, at.as_ptr());
                at = at.add(part.len());
            }
        }
        RecordBox(record)
    }

    /// Returns this record with a word more at the beginning of its value.
    #[must_use]
    pub fn behind(self, word: u64) -> Self {
        let shape = self.header.shape();
        let longer = Shape::new(
            shape.key_len as usize,
            shape.value_words as usize + 1,
            self.owns(),
        );
        let copy = Self::make(self.key(), [&[word], self.value()], longer);
        self.free_block();
        copy
    }

    /// Frees the memory of the record. The resources of the value belong to a copy.
    fn free_block(self) {
        let bytes = self.header.shape().bytes();
        let block = ManuallyDrop::new(self).0.cast();
        // SAFETY: the block was allocated with this size, and no code refers to the block, which
        // was not published.
        unsafe { slab::free(block, bytes) };
    }

    /// Returns this record, or if the address of `entry` does not fit its header, a copy with room
    /// for any address.
    pub(crate) fn with_room_for(self, entry: *const Entry<Record<R>>) -> Self {
        if self.has_room_for(entry) {
            return self;
        }
        let shape = self.header.shape();
        let wide = Shape {
            wide: true,
            ..shape
        };
        let copy = Self::make(self.key(), [self.value()], wide);
        self.free_block();
        copy
    }

    /// Releases the record, to be published in a store.
    pub fn into_raw(self) -> *mut Record<R> {
        let raw = self.0.as_ptr();
        std::mem::forget(self);
        raw
    }

    /// Lends the record to a guard: it can be read as long as the guard lives, and is freed
    /// afterwards. For a record that is never in a store.
    pub fn lend(self, guard: &Guard) -> &Record<R> {
        let raw = self.into_raw();
        // SAFETY: no other thread can reach the record, and a retired record lives as long as the
        // guard (RECORD-2).
        unsafe {
            retire(raw, guard);
            &*raw
        }
    }

    /// Takes a record back.
    ///
    /// # Safety
    /// `raw` must come from [`into_raw`](RecordBox::into_raw), and no other code may be able to
    /// reach it.
    pub unsafe fn from_raw(raw: *mut Record<R>) -> Self {
        // SAFETY: `into_raw` never returns null.
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
            // SAFETY: the record owns its resources (RECORD-3) and ends here.
            unsafe { R::release(self.value()) };
        }
        let bytes = self.header.shape().bytes();
        // SAFETY: `make` allocated the block with the same size, and it is not used any more.
        unsafe { slab::free(self.0.cast(), bytes) };
    }
}

/// Copies bytes; a few, like most keys, without a call.
///
/// # Safety
/// `to` must be valid for writes of as many bytes.
#[inline(always)]
unsafe fn copy_bytes(from: &[u8], to: *mut u8) {
    // SAFETY: the caller promises that `to` is valid for writes of all bytes; each of these copies
    // stays within them.
    unsafe {
        let copied = from.is_empty()
            || copy_halves::<8>(from, to)
            || copy_halves::<4>(from, to)
            || copy_halves::<2>(from, to)
            || copy_halves::<1>(from, to);
        if !copied {
            ptr::copy_nonoverlapping(from.as_ptr(), to, from.len());
        }
    }
}

/// Copies `N` to `2 * N` bytes as two halves, which may overlap. Returns `false` for other lengths.
///
/// # Safety
/// The same as for [`copy_bytes`].
#[inline(always)]
unsafe fn copy_halves<const N: usize>(from: &[u8], to: *mut u8) -> bool {
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else {
        return false;
    };
    let few = from.len() <= 2 * N;
    if few {
        // SAFETY: the caller promises that `to` is valid for writes of `from.len()` bytes. These
        // are at least `N`, so both halves lie within.
        unsafe {
            to.cast::<[u8; N]>().write(*first);
            to.add(from.len() - N).cast::<[u8; N]>().write(*last);
        }
    }
    few
}

/// Copies words; a few, like most values, one by one: they have just been stored one by one, and a
/// processor forwards a store only to a load of the same width.
///
/// # Safety
/// `to` must be valid for writes of as many words.
#[inline(always)]
unsafe fn copy_words(from: &[u64], to: *mut u64) {
    if from.len() > 8 {
        // SAFETY: the caller promises that `to` is valid for writes of the words, so it does not
        // overlap with `from`.
        return unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    }
    for (index, word) in from.iter().enumerate() {
        // SAFETY: the caller promises that `to` is valid for writes of the words, and `index` is
        // below their number. Volatile, so that the compiler does not turn the loop into a call.
        unsafe { to.add(index).write(ptr::from_ref(word).read_volatile()) };
    }
}

/// Retires a record that was just taken out of a store.
///
/// # Safety
/// `record` must have been published, and threads that pin from now on must not be able to reach
/// it.
pub unsafe fn retire<R: Release>(record: *mut Record<R>, guard: &Guard) {
    // SAFETY: the caller promises that threads that pin from now on cannot reach the record, as
    // `Guard::retire` demands. The record lives until then (RECORD-2).
    unsafe {
        if let Some(version) = (*record).version(guard) {
            version.detach(record);
        }
        let bytes = (*record).header.shape().bytes();
        if (*record).owns() {
            let (value, words) = (*record).value_words();
            let kept = bytes.saturating_add(R::kept_bytes(value, words));
            guard.retire(record.cast(), kept, free::<R>);
        } else {
            retire_block(record, bytes, guard);
        }
    }
}

/// Frees a record just taken out of a store that only the caller uses.
///
/// # Safety
/// `record` must come from [`into_raw`](RecordBox::into_raw), and no other code may be able to
/// reach it. The [read points](crate::read_points) of the store must not have been dropped.
pub(crate) unsafe fn free_alone<R: Release>(record: *mut Record<R>) {
    // SAFETY: the caller promises that the record is a box that no other code can reach. The
    // version in its stamp, if it has one, is in the list of the store, which only the caller uses,
    // so it is not freed meanwhile (READ_POINTS-3).
    unsafe {
        if let Some(version) = (*record).version_alone() {
            version.detach(record);
        }
        drop(RecordBox::from_raw(record));
    }
}

/// Retires like [`retire`], for a record that owns nothing and has `bytes` bytes, without reading
/// it.
///
/// # Safety
/// The same as for `retire`.
#[inline]
pub(super) unsafe fn retire_block<R: Release>(record: *mut Record<R>, bytes: usize, guard: &Guard) {
    // A record that owns nothing consists of its block alone (RECORD-3).
    let free = slab::free_function(bytes).unwrap_or(free::<R>);
    // SAFETY: the caller promises that threads that pin from now on cannot reach the record, as
    // `Guard::retire` demands (RECORD-2).
    unsafe { guard.retire(record.cast(), bytes, free) };
}

/// Frees a record that was retired.
///
/// # Safety
/// The grace period of this record must be over (RECORD-2).
unsafe fn free<R: Release>(raw: *mut u8) {
    // SAFETY: the grace period of the record is over, so no thread can reach it. It came from
    // `RecordBox::into_raw`, and only this function frees it (RECORD-2).
    drop(unsafe { RecordBox::<R>::from_raw(raw.cast()) });
}
