//! A value in a block.

use super::block::{allocate, free};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Owns a value in a block of the slab, as `Box` owns one in the memory of the system.
pub struct SlabBox<T>(NonNull<T>);

// SAFETY: the box is the only way to its value.
unsafe impl<T: Send> Send for SlabBox<T> {}
// SAFETY: a shared box only gives shared access to its value.
unsafe impl<T: Sync> Sync for SlabBox<T> {}

impl<T> SlabBox<T> {
    const ALIGNED: () = assert!(
        size_of::<T>() > 0 && matches!(align_of::<T>(), 0..=16 | 64),
        "blocks of the slab are aligned to 8 bytes, to 16 or 64 if their size is a multiple of that"
    );

    /// Puts a value into a new block.
    #[inline]
    pub fn new(value: T) -> Self {
        let () = Self::ALIGNED;
        let pointer = allocate(size_of::<T>()).cast::<T>();
        ats_sync::count::note_bytes_written(size_of::<T>());
        // SAFETY: the block is new, large enough and aligned.
        unsafe { pointer.write(value) };
        SlabBox(pointer)
    }

    /// Gives the value away.
    pub fn into_raw(this: Self) -> *mut T {
        let pointer = this.0.as_ptr();
        std::mem::forget(this);
        pointer
    }

    /// Takes a value back.
    ///
    /// # Safety
    /// `raw` comes from [`into_raw`](SlabBox::into_raw), and no other code has it.
    pub unsafe fn from_raw(raw: *mut T) -> Self {
        // SAFETY: `into_raw` never gives null.
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
        // SAFETY: the box owns a live value, and we have the box exclusively.
        unsafe { self.0.as_mut() }
    }
}

impl<T> Drop for SlabBox<T> {
    fn drop(&mut self) {
        // SAFETY: the value lives and ends here; the block was allocated with this size.
        unsafe {
            self.0.drop_in_place();
            free(self.0.cast(), size_of::<T>());
        }
    }
}
