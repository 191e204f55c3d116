//! A box whose value is in a block.

use super::block::{allocate, free};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A box like `Box`, with its value in a block of the slab.
pub struct SlabBox<T>(NonNull<T>);

// SAFETY: the box is the only way to its value.
unsafe impl<T: Send> Send for SlabBox<T> {}
// SAFETY: a shared box gives only shared access to its value.
unsafe impl<T: Sync> Sync for SlabBox<T> {}

impl<T> SlabBox<T> {
    const ALIGNED: () = assert!(
        size_of::<T>() > 0 && matches!(align_of::<T>(), 0..=16 | 64),
        "blocks of the slab are aligned to 8 bytes, to 16 or 64 if their size is a multiple of that"
    );

    /// Moves a value to a new block.
    #[inline]
    pub fn new(value: T) -> Self {
        let () = Self::ALIGNED;
        let pointer = allocate(size_of::<T>()).cast::<T>();
        ats_sync::count::note_bytes_written(size_of::<T>());
        // SAFETY: the block is new, large enough and aligned.
        unsafe { pointer.write(value) };
        SlabBox(pointer)
    }

    /// Releases the value.
    pub fn into_raw(this: Self) -> *mut T {
        let pointer = this.0.as_ptr();
        std::mem::forget(this);
        pointer
    }

    /// Takes back a value.
    ///
    /// # Safety
    /// `raw` must come from [`into_raw`](SlabBox::into_raw), and no other code may have it.
    pub unsafe fn from_raw(raw: *mut T) -> Self {
        // SAFETY: `into_raw` never returns null.
        SlabBox(unsafe { NonNull::new_unchecked(raw) })
    }
}

impl<T> Deref for SlabBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the box owns a live value.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for SlabBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the box owns a live value, and `&mut self` makes the access exclusive.
        unsafe { self.0.as_mut() }
    }
}

impl<T> Drop for SlabBox<T> {
    fn drop(&mut self) {
        // SAFETY: the value is alive and dropped only here; the block was allocated with this size.
        unsafe {
            self.0.drop_in_place();
            free(self.0.cast(), size_of::<T>());
        }
    }
}
