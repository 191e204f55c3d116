//! Cells of the standard library under the interface of `loom`'s, which sees when an access begins
//! and ends.

use super::atomic::AtomicU64;
use std::sync::atomic::{self, Ordering};

#[derive(Debug, Default)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline]
    pub fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
        access(self.0.get())
    }
}

/// A load of a part of the value that never changes. Any value has it, so there is nothing to
/// explore: under `shuttle` this is not one more point at which threads may take turns.
#[inline(always)]
pub fn peek(word: &AtomicU64) -> u64 {
    crate::count::read(word);
    // SAFETY: the atomics of the shim are those of the standard library in memory.
    let word = unsafe { &*std::ptr::from_ref(word).cast::<atomic::AtomicU64>() };
    word.load(Ordering::Relaxed)
}
