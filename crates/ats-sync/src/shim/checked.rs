//! Atomics for `loom`: its own, with marks by which it finds more of the interleavings that matter.
//!
//! `loom` leaves out interleavings that make no difference (dynamic partial-order reduction). Those
//! that do make one it finds by the *last* access to each atomic, whichever thread it was: if that
//! conflicts with the access at hand, the other order is tried as well. So a thread that loads a
//! word and then stores to it hides from the search what another thread loaded before. Every writer
//! that looks for a place under a lock does that. A model in which one thread reads and the other
//! writes so may be explored in a single order, the reader first.
//!
//! Therefore each thread has a mark of its own, which it stores to before it loads anything, and
//! which others touch before they store anything. Then a store conflicts with the last load of
//! every other thread, whatever was loaded, and by and by it is tried before each of them. Marks
//! are relaxed, so they order nothing but what fences order anyway.
#![allow(missing_docs, reason = "the interface is that of the standard library")]

pub use loom::cell::UnsafeCell;
use loom::sync::atomic as inner;
pub use loom::sync::atomic::{Ordering, fence};
use std::sync::Arc;

/// One mark for each thread. All are made by the first one, since to make an atomic is an access
/// that must be ordered before all others.
struct Marks {
    marks: [inner::AtomicUsize; loom::MAX_THREADS],
    threads: std::sync::atomic::AtomicUsize,
    quiet: std::sync::atomic::AtomicBool,
}

/// The marks, as one thread sees them. It keeps them alive: what the statics hold is used until the
/// last of them has been dropped.
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

/// Does something without marks: the preparation of a model, while there is one thread.
pub fn quietly<R>(prepare: impl FnOnce() -> R) -> R {
    let all = OWN.with(|own| Arc::clone(&own.all));
    all.quiet.store(true, Ordering::Relaxed);
    let result = prepare();
    all.quiet.store(false, Ordering::Relaxed);
    result
}

/// Before a load.
fn will_load(_: usize) {
    let _ = OWN.try_with(|own| {
        if !own.all.quiet.load(Ordering::Relaxed) {
            own.all.marks[own.index].store(0, Ordering::Relaxed);
        }
    });
}

/// Before a store.
fn will_store(_: usize) {
    let _ = OWN.try_with(|own| {
        let threads = own.all.threads.load(Ordering::Relaxed);
        for index in (0..threads).filter(|index| *index != own.index) {
            own.all.marks[index].fetch_add(0, Ordering::Relaxed);
        }
    });
}

/// Before an operation that does both.
fn will_change(address: usize) {
    will_load(address);
    will_store(address);
}

wrapped_atomics!();

/// A load of a part of the value that never changes: which value it is makes no difference.
pub fn peek(word: &AtomicU64) -> u64 {
    word.0.load(Ordering::Relaxed)
}
