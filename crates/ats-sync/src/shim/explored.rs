//! Atomics for `shuttle`: those of the standard library, with a point before each operation at
//! which the scheduler may run another thread.
//!
//! The atomics that `shuttle` brings would explore the same interleavings. But they are larger, and
//! zeroed memory is not a valid one of them, while the structures to be explored count on both: on
//! slots that fill a cache line exactly, and on segments that the system delivers as zeros.
#![allow(missing_docs, reason = "the interface is that of the standard library")]

use std::cell::Cell;
use std::sync::atomic as inner;
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
/// An access to an atomic of `shuttle` is such a point. To yield would be another thing: it tells
/// the scheduler that this thread is waiting.
fn point(_: usize) {
    if !QUIET.get() {
        shuttle::sync::atomic::AtomicBool::new(false).load(Ordering::SeqCst);
    }
}

use point as will_load;
use point as will_store;
use point as will_change;

wrapped_atomics!(const);
