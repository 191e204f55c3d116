//! Instrumented atomics: those of the standard library, which report each access to
//! [`count`](crate::count) before they make it.
//!
//! They have the size and the representation of the atomics that they wrap, so that data lies in
//! the same cache lines as in an ordinary build.
#![allow(missing_docs, reason = "the interface is that of the standard library")]

use crate::count::{change_at as will_change, load_at as will_load, store_at as will_store};
use std::sync::atomic as inner;
pub use std::sync::atomic::{Ordering, compiler_fence, fence};

wrapped_atomics!(const);

/// Items for modules that have no models.
macro_rules! access_for_owners {
    ($($name:ident: $value:ty),*) => {
        $(
            impl Default for $name {
                fn default() -> Self {
                    Self::new(0)
                }
            }

            impl $name {
                pub fn get_mut(&mut self) -> &mut $value {
                    self.0.get_mut()
                }

                /// # Safety
                /// As for the function of the standard library.
                pub const unsafe fn from_ptr<'a>(pointer: *mut $value) -> &'a Self {
                    // SAFETY: the representation is that of the value, and the caller promises that
                    // the pointer is valid for `'a` and that the value is only accessed atomically.
                    unsafe { &*pointer.cast::<Self>() }
                }
            }
        )*
    };
}

access_for_owners!(AtomicU64: u64, AtomicI64: i64);

impl<T> AtomicPtr<T> {
    pub fn get_mut(&mut self) -> &mut *mut T {
        self.0.get_mut()
    }
}
