//! The background thread: it frees retired objects that their own threads have left, and data
//! structures too large for the thread that drops them.
//!
//! A table of ten million objects takes seconds to free, and the thread that deletes or clears it
//! must not be held that long (a scheduler of the Erlang VM least of all). So large stores are
//! handed to one background thread, which frees them in slices. The same thread is the
//! [collector](ats_sync::Collector): it frees objects that a thread has retired and does not free
//! itself, because it retires no more. It is started with the first table, and sleeps while it has
//! no work.
//!
//! # Giving memory back to the system
//! Free memory in chunks that hold other blocks goes back to the system only when the slabs are
//! trimmed. That happens two seconds after the last large structure was freed. It does not happen
//! at once, because a program that drops one large table often fills another, and fresh memory from
//! the system costs more than filling it. A table that is written to continuously thus keeps its
//! freed memory as long as that goes on. The slabs are also trimmed two seconds after the last
//! garbage of all threads is gone, if they have more than 4 MiB of unused memory; and after 20 ms,
//! if much garbage was kept for a query.

use ats_sync::epoch::{self, Collector, Next};
use ats_sync::thread;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Something that can be freed in slices.
pub trait FreeInSlices: Send {
    /// Frees a part, in well under a millisecond. Returns `true` when everything is freed.
    fn free_slice(&mut self) -> bool;
}

/// Time from the last large release until memory is given back.
const KEEP_FOR: Duration = Duration::from_secs(2);
/// The same time after the end of a query that has kept much garbage.
const KEEP_AFTER_QUERY: Duration = Duration::from_millis(20);
/// Bytes of garbage that count as a large release.
const LARGE: usize = 8 << 20;
/// Unused bytes of slabs that do not cause a trim after all garbage is gone.
const SLACK: usize = 4 << 20;
/// Number of objects that are freed between two checks of the queue.
const SLICE: usize = 1_000;

type Queue = VecDeque<Box<dyn FreeInSlices>>;

static QUEUE: Mutex<Queue> = Mutex::new(VecDeque::new());
/// `true` if memory is to be given back as soon as all garbage is gone.
static IS_TRIMMED_SOON: AtomicBool = AtomicBool::new(false);
/// `true` if the thread runs.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Frees an item in the background. If the thread cannot be started, frees it before the call
/// returns.
pub fn free(mut item: Box<dyn FreeInSlices>) {
    if !start() {
        while !item.free_slice() {}
        return;
    }
    lock().push_back(item);
    epoch::wake();
}

/// Requests a trim soon after all garbage is gone. Called when queries end that have kept much
/// garbage.
pub(crate) fn trim_soon() {
    IS_TRIMMED_SOON.store(true, Ordering::Relaxed);
    epoch::wake();
}

fn lock() -> MutexGuard<'static, Queue> {
    // The queue is valid at every moment, so a panic elsewhere does not spoil it.
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread, unless it runs. Returns `true` if it runs. If the system has no room for a
/// thread now, the next table tries again.
pub(crate) fn start() -> bool {
    STARTED.load(Ordering::Relaxed) || start_first()
}

#[cold]
fn start_first() -> bool {
    // The lock ensures that only one thread is started.
    let _queue = lock();
    if !STARTED.load(Ordering::Relaxed) {
        // The thread lives as long as the process, so nobody joins it.
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
                // The item goes to the end of the queue, so that small items do not wait for large
                // ones.
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
        // Resting takes a system call, so the thread does not rest between slices.
        if lock().is_empty() {
            collector.rest(next, at_most, || !lock().is_empty());
        }
    }
}

/// The decision when memory is given back to the system.
#[derive(Default)]
struct Trimming {
    /// Bytes of garbage that were freed since the last large release.
    freed: usize,
    /// The time of the next trim after a large release.
    after_large: Option<Instant>,
    /// `true` if garbage was seen since the last time all was freed.
    is_active: bool,
    /// The time of the next trim after all garbage is gone, and the unused bytes up to which it is
    /// skipped.
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

    /// Trims if the time has come. Returns the time until the next trim.
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
