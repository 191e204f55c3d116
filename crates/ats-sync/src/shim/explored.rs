//! Atomics for `shuttle`: those of the standard library, with a scheduling point before each
//! operation.
//!
//! The atomics of `shuttle` itself would explore the same interleavings. But they are larger, and
//! zeroed memory is not a valid atomic, while the explored structures rely on both: on slots that
//! fill a cache line exactly, and on segments that the system delivers as zeros.
#![allow(missing_docs, reason = "the interface is that of the standard library")]

use std::cell::Cell;
use std::sync::atomic as inner;
pub use std::sync::atomic::{Ordering, compiler_fence, fence};

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs the preparation of a model without scheduling points, so that it neither takes time nor
/// dilutes the choices of the scheduler. Must be called while there is one thread.
pub fn quietly<R>(prepare: impl FnOnce() -> R) -> R {
    // All threads of `shuttle` are one system thread, but no other runs before the next scheduling
    // point.
    QUIET.set(true);
    let result = prepare();
    QUIET.set(false);
    result
}

/// Lets the scheduler choose the next thread.
///
/// An access to an atomic of `shuttle` is such a point. A yield would be different: it tells the
/// scheduler that this thread is waiting.
fn point(_: usize) {
    if !QUIET.get() {
        shuttle::sync::atomic::AtomicBool::new(false).load(Ordering::SeqCst);
    }
}

use point as will_load;
use point as will_store;
use point as will_change;

wrapped_atomics!(const);
