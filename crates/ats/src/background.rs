//! A thread that frees what threads leave, and what is too large to be freed by the thread that let
//! go of it.
//!
//! A table of ten million objects takes seconds to free, and the thread that deletes or clears it
//! must not be held that long (a scheduler of the Erlang VM least of all). So stores above a size
//! are handed to one background thread, which frees them in slices. The same thread is the
//! [collector](ats_sync::Collector): it frees the objects that threads have retired and do not free
//! themselves, since they retire no more. It is started with the first table, and sleeps while
//! there is nothing to do.
//!
//! # Giving memory back to the system
//! Free memory in chunks that hold other blocks goes back to the system only when the slabs are
//! trimmed. That happens two seconds after something large was freed, and nothing large since: not
//! at once, because a program that lets go of one large table often fills another, and memory fresh
//! from the system costs more than to fill it. A table that is written to over and over thus keeps
//! what it frees as long as that goes on. It also happens two seconds after the last garbage of all
//! threads is gone, if the slabs have more than 4 MiB that no block uses; and 20 ms after it, if
//! that was much that was kept for a query.

use ats_sync::epoch::{self, Collector, Next};
use ats_sync::thread;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Something that can be freed in slices.
pub trait FreeInSlices: Send {
    /// Frees a part that takes well under a millisecond; true when nothing is left.
    fn free_slice(&mut self) -> bool;
}

/// The time for which memory is kept after something large was freed, and nothing since.
const KEEP_FOR: Duration = Duration::from_secs(2);
/// The same after a query has ended for which much was kept.
const KEEP_AFTER_QUERY: Duration = Duration::from_millis(20);
/// The number of bytes of garbage that is something large.
const LARGE: usize = 8 << 20;
/// Slabs with less than so many bytes that no block uses are left as they are.
const SLACK: usize = 4 << 20;
/// The number of objects that are freed between two looks at the queue.
const SLICE: usize = 1_000;

type Queue = VecDeque<Box<dyn FreeInSlices>>;

static QUEUE: Mutex<Queue> = Mutex::new(VecDeque::new());
/// `true` if memory is to be given back as soon as all garbage is gone.
static IS_TRIMMED_SOON: AtomicBool = AtomicBool::new(false);
/// `true` if the thread runs.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Hands something over to be freed in the background. If the thread cannot be started, frees it
/// here and now.
pub fn free(mut item: Box<dyn FreeInSlices>) {
    if !start() {
        while !item.free_slice() {}
        return;
    }
    lock().push_back(item);
    epoch::wake();
}

/// Asks for memory to be given back to the system soon after all garbage is gone: much was kept for
/// queries that have ended.
pub(crate) fn trim_soon() {
    IS_TRIMMED_SOON.store(true, Ordering::Relaxed);
    epoch::wake();
}

fn lock() -> MutexGuard<'static, Queue> {
    // The queue is valid at every moment, so a panic elsewhere does not spoil it.
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread, unless it runs. Returns `true` if it runs then: it is tried again with the
/// next table if the system has no room for a thread now.
pub(crate) fn start() -> bool {
    STARTED.load(Ordering::Relaxed) || start_first()
}

#[cold]
fn start_first() -> bool {
    // Under the lock, so that it is started once.
    let _queue = lock();
    if !STARTED.load(Ordering::Relaxed) {
        // Not joined: it lives as long as the process.
        let thread = thread::spawn("ats_background", run);
        STARTED.store(thread.is_ok(), Ordering::Relaxed);
    }
    STARTED.load(Ordering::Relaxed)
}

fn run() {
    let mut collector = Collector::claim().expect("one thread of the process is started here");
    let mut trimming = Trimming::default();
    loop {
        let item = lock().pop_front();
        if let Some(mut item) = item {
            if item.free_slice() {
                trimming.note_freed_much();
            } else {
                // To the end of the queue, so that small items do not wait for large ones.
                lock().push_back(item);
            }
        }
        let (bytes, next) = collector.work(SLICE);
        trimming.note_freed(bytes);
        if next == Next::Sleep {
            trimming.note_all_freed();
        } else {
            trimming.note_garbage();
        }
        let at_most = trimming.trim_if_due();
        // Not between slices: to go to rest takes a system call.
        if lock().is_empty() {
            collector.rest(next, at_most, || !lock().is_empty());
        }
    }
}

/// The state of giving memory back to the system.
#[derive(Default)]
struct Trimming {
    /// Bytes of garbage that were freed since something large was.
    freed: usize,
    /// After this time, because something large was freed.
    after_large: Option<Instant>,
    /// There was garbage since all was freed the last time.
    is_active: bool,
    /// After this time, because all garbage is gone, if more than so many bytes are not used.
    after_all: Option<(Instant, usize)>,
}

impl Trimming {
    fn note_freed(&mut self, bytes: usize) {
        self.freed = self.freed.saturating_add(bytes);
        if self.freed >= LARGE {
            self.note_freed_much();
        }
    }

    fn note_freed_much(&mut self) {
        self.freed = 0;
        self.after_large = Some(Instant::now() + KEEP_FOR);
    }

    fn note_garbage(&mut self) {
        self.is_active = true;
        self.after_all = None;
    }

    fn note_all_freed(&mut self) {
        let was_active = std::mem::take(&mut self.is_active);
        if IS_TRIMMED_SOON.swap(false, Ordering::Relaxed) {
            self.after_all = Some((Instant::now() + KEEP_AFTER_QUERY, 0));
        } else if was_active {
            self.after_all = Some((Instant::now() + KEEP_FOR, SLACK));
        }
    }

    /// Trims if it is time. Returns how long it is until it may be.
    fn trim_if_due(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.after_large.is_some_and(|time| time <= now) {
            ats_mem::slab::trim();
            (self.after_large, self.after_all) = (None, None);
        } else if let Some((_, slack)) = self.after_all.take_if(|(time, _)| *time <= now) {
            let statistics = ats_mem::slab::statistics();
            if statistics.reserved > statistics.used + slack {
                ats_mem::slab::trim();
            }
        }
        let after_all = self.after_all.map(|(time, _)| time);
        let times = self.after_large.into_iter().chain(after_all);
        times.min().map(|time| time.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    struct Slices(u32, Sender<u32>);

    impl FreeInSlices for Slices {
        fn free_slice(&mut self) -> bool {
            self.0 -= 1;
            self.1.send(self.0).expect("the test is listening");
            self.0 == 0
        }
    }

    #[test]
    fn frees_everything_in_turns() {
        let (sender, freed) = channel();
        for _ in 0..3 {
            free(Box::new(Slices(4, sender.clone())));
        }
        drop(sender);
        let slices: Vec<u32> = freed.iter().collect();
        assert_eq!(slices.len(), 12);
        assert_eq!(slices.iter().filter(|left| **left == 0).count(), 3);
    }
}
