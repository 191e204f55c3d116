//! Cells of the standard library with the interface of `loom`'s, which sees the begin and end of
//! each access.

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

/// Loads a part of the value that never changes. Every value has it, so there is nothing to
/// explore: under `shuttle` this is no scheduling point.
#[inline(always)]
pub fn peek(word: &AtomicU64) -> u64 {
    crate::count::read(word);
    // SAFETY: the atomics of the shim are those of the standard library in memory.
    let word = unsafe { &*std::ptr::from_ref(word).cast::<atomic::AtomicU64>() };
    word.load(Ordering::Relaxed)
}
