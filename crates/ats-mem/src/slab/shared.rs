//! Shared slices, in blocks of the slab.
//!
//! Like `Arc<[T]>`, for uses with much turnover, such as a cache: in the memory of the system such
//! slices would be mixed with others of other lengths, and leave unusable gaps.
//!
//! # Invariants
//! - SHARED-1. The count at the start of the block is the number of owners. The last one frees the
//!   block.
//! - SHARED-2. The elements are written before there is an owner, and never afterwards.

use super::block::{allocate, block_size, free};
use ats_sync::count::atomic::{AtomicUsize, Ordering, fence};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::process::abort;
use std::ptr::{self, NonNull};
use std::slice;

/// A slice of values without destructors, shared by its owners. A clone is another owner.
///
/// The length is in the owner, so reading it does not access the block.
pub struct SharedSlice<T: Copy> {
    owners: NonNull<AtomicUsize>,
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: owners on several threads read the same elements (SHARED-2), and the last of them, on any
// thread, frees them.
unsafe impl<T: Copy + Send + Sync> Send for SharedSlice<T> {}
// SAFETY: a shared owner gives only shared access to the elements, and further owners.
unsafe impl<T: Copy + Send + Sync> Sync for SharedSlice<T> {}

impl<T: Copy> SharedSlice<T> {
    /// Offset of the elements in the block.
    const START: usize = size_of::<AtomicUsize>().next_multiple_of(align_of::<T>());
    /// The multiple to which block sizes are rounded: a block whose size is a multiple of it is
    /// aligned to it, up to 64, and always to the count.
    const ALIGN: usize = {
        assert!(
            align_of::<T>() <= 64,
            "blocks are aligned to 64 bytes at most"
        );
        match align_of::<T>() {
            0..=8 => 8,
            9..=16 => 16,
            _ => 64,
        }
    };

    /// Returns the size of a block for `len` elements.
    fn block_bytes(len: usize) -> usize {
        let bytes = len.checked_mul(size_of::<T>());
        let bytes = bytes.and_then(|bytes| bytes.checked_add(Self::START));
        bytes
            .and_then(|bytes| bytes.checked_next_multiple_of(Self::ALIGN))
            .expect("what is in memory is not longer than memory")
    }

    /// Returns the bytes of memory. O(1).
    #[must_use]
    pub fn bytes(&self) -> usize {
        block_size(Self::block_bytes(self.len))
    }
}

impl<T: Copy> From<&[T]> for SharedSlice<T> {
    /// Copies the elements, and returns the first owner. O(n).
    fn from(elements: &[T]) -> Self {
        let owners = allocate(Self::block_bytes(elements.len())).cast::<AtomicUsize>();
        // SAFETY: the block is new, has room for the count and the elements, and is aligned for
        // both.
        unsafe {
            owners.write(AtomicUsize::new(1));
            let start = owners.cast::<u8>().add(Self::START).cast::<T>();
            ptr::copy_nonoverlapping(elements.as_ptr(), start.as_ptr(), elements.len());
        }
        SharedSlice {
            owners,
            len: elements.len(),
            elements: PhantomData,
        }
    }
}

impl<T: Copy> FromIterator<T> for SharedSlice<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let elements: Vec<T> = elements.into_iter().collect();
        elements.as_slice().into()
    }
}

impl<T: Copy> Default for SharedSlice<T> {
    fn default() -> Self {
        [].as_slice().into()
    }
}

impl<T: Copy> Clone for SharedSlice<T> {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: `self` is an owner, so the block is alive (SHARED-1).
        let owners = unsafe { self.owners.as_ref() };
        // Relaxed: the new owner comes from this one, which sees the elements.
        if owners.fetch_add(1, Ordering::Relaxed) > isize::MAX as usize {
            // More leaked owners could make the count wrap, and the block would be freed too early.
            abort();
        }
        SharedSlice {
            owners: self.owners,
            len: self.len,
            elements: PhantomData,
        }
    }
}

impl<T: Copy> Drop for SharedSlice<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `self` is an owner, so the block is alive (SHARED-1).
        let owners = unsafe { self.owners.as_ref() };
        // Release, and acquire by the last owner: all reads of the others come before the freeing.
        if owners.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: this was the last owner (SHARED-1), and the block was allocated with this
            // many bytes.
            unsafe { free(self.owners.cast(), Self::block_bytes(self.len)) };
        }
    }
}

impl<T: Copy> Deref for SharedSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `self` is an owner, so the block is alive (SHARED-1), and its elements are
        // written and do not change (SHARED-2). The length is that of `from`.
        unsafe {
            let start = self.owners.cast::<u8>().add(Self::START).cast::<T>();
            slice::from_raw_parts(start.as_ptr(), self.len)
        }
    }
}

impl<T: Copy + PartialEq> PartialEq for SharedSlice<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Copy + Eq> Eq for SharedSlice<T> {}

impl<T: Copy + fmt::Debug> fmt::Debug for SharedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
