//! Atomics, cells and threads: from the standard library, from `loom` when a model is checked, made for
//! `shuttle` when interleavings are explored, or made to be counted under `--cfg counted`.
//!
//! The modules of this crate, and those of crates above that are to be explored, take these names
//! from here and never from `std` directly.

#[cfg(any(loom, shuttle, counted))]
#[macro_use]
mod wrapped;

#[cfg(loom)]
pub mod checked;
#[cfg(counted)]
pub mod counted;
#[cfg(shuttle)]
pub mod explored;

#[cfg(loom)]
mod imp {
    pub use super::checked as atomic;
    pub use loom::cell::UnsafeCell;
    pub(crate) use loom::lazy_static;
    pub use loom::thread;
    pub use loom::thread_local;

    /// The model checker has to be told that a loop waits for another thread.
    pub fn pause() {
        loom::thread::yield_now();
    }
}

#[cfg(shuttle)]
mod imp {
    pub use super::StdCell as UnsafeCell;
    pub use super::explored as atomic;
    pub(crate) use shuttle::lazy_static;
    pub use shuttle::thread;
    pub use shuttle::thread_local;

    /// The scheduler has to be told that a loop waits for another thread.
    pub fn pause() {
        shuttle::thread::yield_now();
    }
}

#[cfg(not(any(loom, shuttle)))]
mod imp {
    pub use super::StdCell as UnsafeCell;
    #[cfg(counted)]
    pub use super::counted as atomic;
    pub use std::hint::spin_loop as pause;
    #[cfg(not(counted))]
    pub use std::sync::atomic;
    pub use std::thread;
}

/// The standard cell under the interface of `loom`'s, which sees when an access begins and ends.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub struct StdCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> StdCell<T> {
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline]
    pub fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
        access(self.0.get())
    }
}

#[cfg(any(loom, shuttle))]
pub(crate) use imp::lazy_static;
#[cfg(any(loom, shuttle))]
pub use imp::thread_local;
pub use imp::{UnsafeCell, atomic, pause, thread};
