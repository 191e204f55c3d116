//! Atomics, cells and threads: from the standard library, from `loom` when a model is checked, made
//! for `shuttle` when interleavings are explored, or made to be counted under `--cfg counted`.
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
#[cfg(not(loom))]
mod plain;

/// The names of this module, in one kind of build: where the atomics are, the crate of threads, the
/// module of what `loom` needs otherwise, and what a loop calls that waits for another thread.
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

/// Statics that are made when they are first used, and values of threads that are constant at
/// first. Without destructors reading such a value is one instruction or two.
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

/// Those of the checkers, made anew for each run.
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
