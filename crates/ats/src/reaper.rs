//! A thread that frees what is too large to be freed by whoever let go of it.
//!
//! A table of ten million objects takes seconds to free, and whoever deletes or clears it must not
//! be held that long (a scheduler of the Erlang VM least of all). So stores above a size are handed to
//! one background thread, which frees them in slices, and which also keeps deferred reclamation
//! going when no thread works on any table. A while after the last large store is gone, it gives the memory
//! back to the system: not at once, because who lets go of one large table often fills another, and
//! memory fresh from the system costs more than to fill it. The thread is started when it is first needed and sleeps while there is
//! nothing to do.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

/// Something that can be freed in slices.
pub trait Reap: Send {
    /// Frees a part that takes well under a millisecond; true when nothing is left.
    fn free_slice(&mut self) -> bool;
}

/// How long the thread rests between two looks at deferred garbage.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long memory is kept after something large was freed, and nothing since.
const KEEP_FOR: Duration = Duration::from_secs(2);

struct Reaper {
    work: Mutex<VecDeque<Box<dyn Reap>>>,
    arrived: Condvar,
    start: Once,
}

static REAPER: Reaper = Reaper {
    work: Mutex::new(VecDeque::new()),
    arrived: Condvar::new(),
    start: Once::new(),
};

/// Hands something over to be freed in the background. If the thread cannot be started, frees it
/// here and now.
pub fn reap(mut item: Box<dyn Reap>) {
    if !start() {
        while !item.free_slice() {}
        return;
    }
    lock().push_back(item);
    REAPER.arrived.notify_one();
}

/// Wakes the thread if deferred garbage is waiting that nobody else may come to free. To be called
/// after that garbage was retired.
pub fn wake() {
    if start() {
        // Under the lock, or the call could fall between the thread's look at the garbage and its
        // going to sleep.
        let _queue = lock();
        REAPER.arrived.notify_one();
    }
}

fn lock() -> MutexGuard<'static, VecDeque<Box<dyn Reap>>> {
    // The queue is valid at every moment, so a panic elsewhere does not spoil it.
    REAPER.work.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the thread runs.
fn start() -> bool {
    REAPER.start.call_once(|| {
        let thread = std::thread::Builder::new().name("ats_reaper".into());
        // Not joined: it lives as long as the process.
        STARTED.store(
            thread.spawn(run).is_ok(),
            std::sync::atomic::Ordering::Relaxed,
        );
    });
    STARTED.load(std::sync::atomic::Ordering::Relaxed)
}

static STARTED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

fn run() {
    // When something large was freed, unless memory was given back since.
    let mut reaped = None;
    loop {
        let item = lock().pop_front();
        match item {
            Some(mut item) => {
                if item.free_slice() {
                    reaped = Some(Instant::now());
                } else {
                    // To the end of the queue, so that small items do not wait for large ones.
                    lock().push_back(item);
                }
            }
            None => rest(&mut reaped),
        }
    }
}

/// Waits for work; looks at deferred garbage now and then while there is some, and gives memory back when
/// it is time.
fn rest(reaped: &mut Option<Instant>) {
    ats_sync::collect();
    if reaped.is_some_and(|when| when.elapsed() >= KEEP_FOR) {
        ats_mem::slab::trim();
        *reaped = None;
    }
    let queue = lock();
    if !queue.is_empty() {
        return;
    }
    // The queue is looked at anew by the caller, whatever woke the thread.
    let look = (ats_sync::pending().0 > 0).then_some(LOOK_EVERY);
    let trim = reaped.map(|when| KEEP_FOR.saturating_sub(when.elapsed()));
    match look.into_iter().chain(trim).min() {
        Some(at_most) => drop(REAPER.arrived.wait_timeout(queue, at_most)),
        None => drop(REAPER.arrived.wait(queue)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    struct Slices(u32, Sender<u32>);

    impl Reap for Slices {
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
            reap(Box::new(Slices(4, sender.clone())));
        }
        drop(sender);
        let slices: Vec<u32> = freed.iter().collect();
        assert_eq!(slices.len(), 12);
        assert_eq!(slices.iter().filter(|left| **left == 0).count(), 3);
    }
}
