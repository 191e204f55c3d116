//! Atomics, cells and threads: from the standard library, or from `loom` when a model is checked.
//!
//! The modules of this crate take these names from here and never from `std` directly.

#[cfg(loom)]
mod imp {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic;
    pub(crate) use loom::thread;

    /// The model checker has to be told that a loop waits for another thread.
    pub(crate) fn pause() {
        loom::thread::yield_now();
    }
}

#[cfg(not(loom))]
mod imp {
    pub(crate) use std::hint::spin_loop as pause;
    pub(crate) use std::sync::atomic;
    pub(crate) use std::thread;

    /// The standard cell under the interface of `loom`'s, which sees when an access begins and ends.
    #[derive(Debug, Default)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
            access(self.0.get())
        }
    }
}

pub(crate) use imp::*;
