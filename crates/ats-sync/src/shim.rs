//! Atomics, cells and threads: from the standard library, from `loom` when models are checked,
//! wrapped for `shuttle` when interleavings are explored, or wrapped for instrumentation under
//! `--cfg counted`.
//!
//! The modules of this crate, and the explored ones of the crates above, take these names from here
//! and never from `std` directly.

#[cfg(any(loom, shuttle, counted))]
#[macro_use]
mod wrapped;

#[cfg(loom)]
pub mod checked;
#[cfg(counted)]
pub mod counted;
#[cfg(shuttle)]
pub mod explored;
#[cfg(not(loom))]
mod plain;

/// Defines the names of this module for one kind of build: the path of the atomics, the crate of
/// threads, the module of other `loom` replacements, and the function that a wait loop calls.
macro_rules! kind {
    ($($atomic:ident)::+, $system:ident, $rest:ident, $($pause:ident)::+) => {
        pub use $($atomic)::+ as atomic;
        pub use $rest::{UnsafeCell, peek};
        pub use $system::{thread, thread_local};
        pub use $($pause)::+ as pause;
    };
}

#[cfg(loom)]
kind!(checked, loom, checked, loom::thread::yield_now);
#[cfg(shuttle)]
kind!(explored, shuttle, plain, shuttle::thread::yield_now);
#[cfg(counted)]
kind!(counted, std, plain, std::hint::spin_loop);
#[cfg(not(any(loom, shuttle, counted)))]
kind!(std::sync::atomic, std, plain, std::hint::spin_loop);

/// Statics initialized on first use, and thread-locals with a constant initial value. Without
/// destructor, reading such a thread-local takes one or two instructions.
#[cfg(not(any(loom, shuttle)))]
mod statics {
    macro_rules! lazy_static {
        ($visible:vis static ref $name:ident: $type:ty = $value:expr;) => {
            $visible static $name: std::sync::LazyLock<$type> =
                std::sync::LazyLock::new(|| $value);
        };
    }
    pub(crate) use lazy_static;

    #[doc(hidden)]
    #[macro_export]
    macro_rules! constants_of_threads {
        ($($(#[$about:meta])* static $name:ident: $type:ty = $value:expr;)*) => {
            $crate::shim::thread_local! {
                $($(#[$about])* static $name: $type = const { $value };)*
            }
        };
    }
}

/// The statics of the checkers, created anew for each run.
#[cfg(any(loom, shuttle))]
mod statics {
    #[cfg(loom)]
    pub(crate) use loom::lazy_static;
    #[cfg(shuttle)]
    pub(crate) use shuttle::lazy_static;

    #[doc(hidden)]
    #[macro_export]
    macro_rules! constants_of_threads {
        ($($tokens:tt)*) => { $crate::shim::thread_local! { $($tokens)* } };
    }
}

pub use crate::constants_of_threads;
pub(crate) use statics::lazy_static;
