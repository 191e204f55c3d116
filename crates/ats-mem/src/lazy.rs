//! Lazily made data, which a store needs only when it is large or contended.
//!
//! Good for: parts that most stores never need, so that small ones do not pay their memory. Bad
//! for: parts that every operation reads, because each access follows a pointer.
//!
//! # Invariant
//! - LAZY-1. The pointer is null, or it leads to a value from a box. It changes once, and the value
//!   does not move until this is dropped.

use crate::slab::{self, SlabBox};
use ats_sync::shim::atomic::{AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::ptr;

/// A `T` that is made on first use.
pub(crate) struct Lazy<T>(AtomicPtr<T>, PhantomData<SlabBox<T>>);

impl<T: Default> Lazy<T> {
    pub(crate) fn new() -> Self {
        Lazy(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }

    /// Returns the value, if it was made before.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: the pointer is null or that of a value that lives as long as this (LAZY-1).
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the value, and makes it on first use.
    #[inline]
    pub(crate) fn get_or_make(&self) -> &T {
        match self.get() {
            Some(made) => made,
            None => self.make(),
        }
    }

    #[cold]
    fn make(&self) -> &T {
        let new = SlabBox::into_raw(SlabBox::new(T::default()));
        let (null, order) = (ptr::null_mut(), Ordering::Acquire);
        match self.0.compare_exchange(null, new, Ordering::AcqRel, order) {
            // SAFETY: the value lives as long as this from now on (LAZY-1).
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: the value has just been made, and no other thread has seen it.
                drop(unsafe { SlabBox::from_raw(new) });
                // SAFETY: the pointer is not null, so it is that of a value that lives as long as
                // this (LAZY-1).
                unsafe { &*other }
            }
        }
    }

    /// Returns the bytes of memory that it takes beside the store.
    pub(crate) fn bytes(&self) -> usize {
        self.get().map_or(0, |_| slab::block_size(size_of::<T>()))
    }
}

impl<T> Drop for Lazy<T> {
    fn drop(&mut self) {
        let made = self.0.load(Ordering::Relaxed);
        if !made.is_null() {
            // SAFETY: the pointer is that of a box (LAZY-1), and `drop` has the only reference to
            // it.
            drop(unsafe { SlabBox::from_raw(made) });
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn all_threads_get_the_one_that_is_made() {
        for _ in 0..200 {
            let lazy = Lazy::<AtomicUsize>::new();
            assert!(lazy.get().is_none());
            assert_eq!(lazy.bytes(), 0);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| lazy.get_or_make().fetch_add(1, Ordering::Relaxed));
                }
            });
            let made = lazy.get().map(|made| made.load(Ordering::Relaxed));
            assert_eq!(made, Some(4));
            assert!(lazy.bytes() > 0);
        }
    }
}
