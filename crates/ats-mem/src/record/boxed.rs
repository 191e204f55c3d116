//! A record before it is published, and after it was retired.

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
// `Release` may give back on any thread (RECORD-3).
unsafe impl<R: Release> Send for RecordBox<R> {}

impl<R: Release> RecordBox<R> {
    /// A record of these contents. `owns` says that the value holds resources for which
    /// [`Release::release`] must be called in the end; they belong to the record from now on. One
    /// that is put into a store has a value of a word at least.
    ///
    /// # Panics
    /// If the key has 4 GiB or the value 2^31 words.
    #[inline]
    pub fn new(key: &[u8], value: &[u64], owns: bool) -> Self {
        Self::in_parts(key, [&[], value], owns)
    }

    /// Makes a record like [`new`](RecordBox::new), of a value that is given in two parts.
    ///
    /// # Panics
    /// As `new`.
    #[inline]
    pub fn in_parts(key: &[u8], value: [&[u64]; 2], owns: bool) -> Self {
        let [first, second] = value;
        let words = first.len() + second.len();
        Self::make(key, first, second, Shape::new(key.len(), words, owns))
    }

    /// A record of these contents, which have this shape.
    fn make(key: &[u8], first: &[u64], second: &[u64], shape: Shape) -> Self {
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
            let start = start.add(key_words);
            copy_words(first, start.as_ptr());
            copy_words(second, start.add(first.len()).as_ptr());
        }
        RecordBox(record)
    }

    /// This record, or if `entry` is at an address that does not fit into its header, a copy which
    /// has room for any.
    pub(crate) fn with_room_for(self, entry: *const Entry<Record<R>>) -> Self {
        if self.has_room_for(entry) {
            return self;
        }
        let shape = self.header.shape();
        let wide = Shape {
            wide: true,
            ..shape
        };
        let copy = Self::make(self.key(), &[], self.value(), wide);
        // The resources of the value belong to the copy now, so only the block goes.
        let block = ManuallyDrop::new(self).0.cast();
        // SAFETY: the block was allocated with this size, and no code refers to it: it was not
        // published.
        unsafe { slab::free(block, shape.bytes()) };
        copy
    }

    /// Gives the record away, to be published in a store.
    pub fn into_raw(self) -> *mut Record<R> {
        let raw = self.0.as_ptr();
        std::mem::forget(self);
        raw
    }

    /// Gives the record to a guard: it can be read as long as the guard lives, and is freed after
    /// that. For a record that is made to be read, and is never in a store.
    pub fn lend(self, guard: &Guard) -> &Record<R> {
        let raw = self.into_raw();
        // SAFETY: no other thread can reach the record, and what is retired lives as long as the
        // guard (RECORD-2).
        unsafe {
            retire(raw, guard);
            &*raw
        }
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
            // SAFETY: the record owns its resources (RECORD-3) and ends here.
            unsafe { R::release(self.value()) };
        }
        let bytes = self.header.shape().bytes();
        // SAFETY: `make` allocated the block with the same size, and it is not used any more.
        unsafe { slab::free(self.0.cast(), bytes) };
    }
}

/// Copies bytes; few of them, as most keys have, without a call.
///
/// # Safety
/// At `to` there is room for them, which is ours.
#[inline(always)]
unsafe fn copy_bytes(from: &[u8], to: *mut u8) {
    // SAFETY: the caller says that there is room for all bytes at `to`, which no other code uses;
    // each of these copies writes within that room.
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

/// Copies `N` to `2 * N` bytes as two halves, which may overlap; says whether there are so many.
///
/// # Safety
/// As for [`copy_bytes`].
#[inline(always)]
unsafe fn copy_halves<const N: usize>(from: &[u8], to: *mut u8) -> bool {
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else {
        return false;
    };
    let few = from.len() <= 2 * N;
    if few {
        // SAFETY: the caller says that there is room for `from.len()` bytes at `to`. These are at
        // least `N`, so both halves lie within.
        unsafe {
            to.cast::<[u8; N]>().write(*first);
            to.add(from.len() - N).cast::<[u8; N]>().write(*last);
        }
    }
    few
}

/// Copies words; few of them, as most values have, one by one: they have just been stored one by
/// one, and a processor hands a store on to a load of the same width only.
///
/// # Safety
/// At `to` there is room for them, which is ours.
#[inline(always)]
unsafe fn copy_words(from: &[u64], to: *mut u64) {
    if from.len() > 8 {
        // SAFETY: the caller says that there is room for the words at `to`, which no other code
        // uses, so it does not overlap with `from`.
        return unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    }
    for (place, word) in from.iter().enumerate() {
        // SAFETY: the caller says that there is room for the words at `to`, and `place` is below
        // their number. Volatile, so that the loop is not made a call that copies.
        unsafe { to.add(place).write(ptr::from_ref(word).read_volatile()) };
    }
}

/// Retires a record that was just taken out of a store.
///
/// # Safety
/// `record` was published and can no longer be reached by threads that pin from now on.
pub unsafe fn retire<R: Release>(record: *mut Record<R>, guard: &Guard) {
    // SAFETY: the caller says that threads that pin from now on cannot reach the record, which is
    // what `Guard::retire` asks for. It lives until then (RECORD-2).
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

/// Frees a record that was just taken out of a store that the caller has alone.
///
/// # Safety
/// `record` comes from [`into_raw`](RecordBox::into_raw), and no other code can reach it. The
/// [moments](crate::moments) of the store have not been dropped.
pub(crate) unsafe fn free_alone<R: Release>(record: *mut Record<R>) {
    // SAFETY: the caller says that the record is a box that no other code can reach. The version
    // that it is stamped with, if it has one, is in the list of the store, which the caller has
    // alone, so it is not freed meanwhile (MOMENTS-3).
    unsafe {
        if let Some(version) = (*record).version_alone() {
            version.detach(record);
        }
        drop(RecordBox::from_raw(record));
    }
}

/// Does what [`retire`] does, of a record that owns nothing and has so many bytes: it is not looked
/// at.
///
/// # Safety
/// As for `retire`.
#[inline]
pub(super) unsafe fn retire_block<R: Release>(record: *mut Record<R>, bytes: usize, guard: &Guard) {
    // A record that owns nothing is nothing but its block (RECORD-3).
    let free = slab::free_function(bytes).unwrap_or(free::<R>);
    // SAFETY: the caller says that threads that pin from now on cannot reach the record, which is
    // what `Guard::retire` asks for (RECORD-2).
    unsafe { guard.retire(record.cast(), bytes, free) };
}

/// Frees a record that was retired.
///
/// # Safety
/// It is the end of the grace period of this record (RECORD-2).
unsafe fn free<R: Release>(raw: *mut u8) {
    // SAFETY: the grace period of the record is over, so no thread can reach it. It came from
    // `RecordBox::into_raw` and is freed here only (RECORD-2).
    drop(unsafe { RecordBox::<R>::from_raw(raw.cast()) });
}
