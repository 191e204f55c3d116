//! Atomics for `loom`: its own, with marks by which it explores more relevant interleavings.
//!
//! `loom` skips equivalent interleavings (dynamic partial-order reduction). It finds the others by
//! the *last* access to each atomic, by any thread: if that conflicts with the current access, the
//! other order is tried as well. So a thread that loads a word and then stores to it hides an
//! earlier load of another thread from the search. Every writer that searches for a slot under a
//! lock does that. A model with one reader and such a writer may be explored in a single order, the
//! reader first.
//!
//! So each thread has its own mark, which it stores to before each load, and which other threads
//! access before each store. Then a store conflicts with the last load of every other thread,
//! whichever word was loaded, and step by step it is tried before each of them. Marks are relaxed,
//! so they add no order that fences do not give anyway.
#![allow(missing_docs, reason = "the interface is that of the standard library")]

pub use loom::cell::UnsafeCell;
use loom::sync::atomic as inner;
pub use loom::sync::atomic::{Ordering, fence};
use std::sync::Arc;

/// One mark for each thread. The first thread creates all of them, because the creation of an
/// atomic is an access that must be ordered before all others.
struct Marks {
    marks: [inner::AtomicUsize; loom::MAX_THREADS],
    threads: std::sync::atomic::AtomicUsize,
    quiet: std::sync::atomic::AtomicBool,
}

/// A thread's reference to the marks. It keeps them alive, because they are used until the last
/// thread has dropped it.
struct Own {
    all: Arc<Marks>,
    index: usize,
}

impl Own {
    fn new() -> Self {
        let all = Arc::clone(&MARKS);
        let index = all.threads.fetch_add(1, Ordering::Relaxed);
        Own { all, index }
    }
}

loom::lazy_static! {
    static ref MARKS: Arc<Marks> = Arc::new(Marks {
        marks: std::array::from_fn(|_| inner::AtomicUsize::new(0)),
        threads: std::sync::atomic::AtomicUsize::new(0),
        quiet: std::sync::atomic::AtomicBool::new(false),
    });
}

loom::thread_local! {
    static OWN: Own = Own::new();
}

/// Runs the preparation of a model without marks, while there is one thread.
pub fn quietly<R>(prepare: impl FnOnce() -> R) -> R {
    let all = OWN.with(|own| Arc::clone(&own.all));
    all.quiet.store(true, Ordering::Relaxed);
    let result = prepare();
    all.quiet.store(false, Ordering::Relaxed);
    result
}

/// Marks a load that is about to come.
fn will_load(_: usize) {
    let _ = OWN.try_with(|own| {
        if !own.all.quiet.load(Ordering::Relaxed) {
            own.all.marks[own.index].store(0, Ordering::Relaxed);
        }
    });
}

/// Marks a store that is about to come.
fn will_store(_: usize) {
    let _ = OWN.try_with(|own| {
        let threads = own.all.threads.load(Ordering::Relaxed);
        for index in (0..threads).filter(|index| *index != own.index) {
            own.all.marks[index].fetch_add(0, Ordering::Relaxed);
        }
    });
}

/// Marks a read-modify-write that is about to come.
fn will_change(address: usize) {
    will_load(address);
    will_store(address);
}

wrapped_atomics!();

/// Loads a part of the value that never changes, so any visible value will do.
pub fn peek(word: &AtomicU64) -> u64 {
    word.0.load(Ordering::Relaxed)
}
