//! Atomics for `shuttle`: those of the standard library, with a point before each operation at which
//! the scheduler may run another thread.
//!
//! The atomics that `shuttle` brings would explore the same interleavings. But they are larger, and
//! zeroed memory is not a valid one of them, while the structures to be explored count on both: on
//! slots that fill a cache line exactly, and on segments that the system delivers as zeros.
#![allow(missing_docs, reason = "the interface is that of the standard library")]

use std::cell::Cell;
pub use std::sync::atomic::{Ordering, compiler_fence, fence};

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Does something without any point, so that the preparation of what is to be explored neither
/// takes the time of the scheduler nor dilutes its choices. To be called while there is one thread.
pub fn quietly<R>(prepare: impl FnOnce() -> R) -> R {
    // All threads of `shuttle` are one for the system, but no other runs before the next point.
    QUIET.set(true);
    let result = prepare();
    QUIET.set(false);
    result
}

/// Lets the scheduler choose which thread goes on.
///
/// An access to an atomic of `shuttle` is such a point. To yield would be another thing: it tells the
/// scheduler that this thread is waiting.
fn point() {
    if !QUIET.get() {
        shuttle::sync::atomic::AtomicBool::new(false).load(Ordering::SeqCst);
    }
}

macro_rules! operations {
    ($name:ident, $value:ty) => {
        pub const fn new(value: $value) -> Self {
            Self(std::sync::atomic::$name::new(value))
        }

        pub fn load(&self, order: Ordering) -> $value {
            point();
            self.0.load(order)
        }

        pub fn store(&self, value: $value, order: Ordering) {
            point();
            self.0.store(value, order);
        }

        pub fn swap(&self, value: $value, order: Ordering) -> $value {
            point();
            self.0.swap(value, order)
        }

        pub fn compare_exchange(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            point();
            self.0.compare_exchange(current, new, success, failure)
        }

        pub fn compare_exchange_weak(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            self.compare_exchange(current, new, success, failure)
        }

        pub fn get_mut(&mut self) -> &mut $value {
            self.0.get_mut()
        }
    };
}

macro_rules! atomics {
    ($($name:ident: $value:ty),*) => {$(
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name(std::sync::atomic::$name);

        impl $name {
            operations!($name, $value);
        }
    )*};
}

macro_rules! numbers {
    ($($name:ident: $value:ty),*) => {$(
        atomics!($name: $value);

        impl $name {
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                point();
                self.0.fetch_add(value, order)
            }

            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                point();
                self.0.fetch_sub(value, order)
            }
        }
    )*};
}

atomics!(AtomicBool: bool);
numbers!(
    AtomicU8: u8, AtomicU32: u32, AtomicI32: i32,
    AtomicU64: u64, AtomicI64: i64, AtomicUsize: usize
);

#[derive(Debug)]
#[repr(transparent)]
pub struct AtomicPtr<T>(std::sync::atomic::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    operations!(AtomicPtr, *mut T);
}
