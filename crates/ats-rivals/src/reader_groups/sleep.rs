//! Sleeping until a word changes: in the kernel (Linux), in a model of the kernel (`loom`), or by
//! yielding the time slice (elsewhere).
//!
//! A thread that sleeps must be prepared to wake early.

use ats_sync::model::READER_GROUP_SPINS;
pub(super) use imp::{sleep, wake_all, wake_one};

#[cfg(not(loom))]
mod imp {
    pub(in super::super) use ats_sync::futex::{wake_all, wake_one};
    use ats_sync::shim::atomic::AtomicU32;

    /// Sleeps while `word` holds `expected`.
    pub(in super::super) fn sleep(word: &AtomicU32, expected: u32) {
        ats_sync::futex::wait(word, expected, None);
    }
}

#[cfg(loom)]
mod imp {
    use ats_sync::shim::atomic::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};

    /// A kernel that compares and enqueues, or dequeues, under one lock. Here no thread wakes
    /// early, so that `loom` finds a lost wake-up as a deadlock.
    struct Kernel {
        /// The addresses on which threads sleep, each with the number of the thread's sleep.
        asleep: Mutex<(Vec<(usize, u64)>, u64)>,
        changed: Condvar,
    }

    loom::lazy_static! {
        static ref KERNEL: Kernel = Kernel {
            asleep: Mutex::new((Vec::new(), 0)),
            changed: Condvar::new(),
        };
    }

    pub(in super::super) fn sleep(word: &AtomicU32, expected: u32) {
        let mut asleep = KERNEL.asleep.lock().expect("no panic under the lock");
        if word.load(Ordering::SeqCst) != expected {
            return;
        }
        asleep.1 += 1;
        let own = asleep.1;
        asleep.0.push((std::ptr::from_ref(word).addr(), own));
        while asleep.0.iter().any(|(_, number)| *number == own) {
            asleep = KERNEL
                .changed
                .wait(asleep)
                .expect("no panic under the lock");
        }
    }

    pub(in super::super) fn wake_one(word: *const AtomicU32) {
        let mut asleep = KERNEL.asleep.lock().expect("no panic under the lock");
        let first = asleep.0.iter().position(|(at, _)| *at == word.addr());
        if let Some(first) = first {
            asleep.0.remove(first);
            KERNEL.changed.notify_all();
        }
    }

    pub(in super::super) fn wake_all(word: *const AtomicU32) {
        let mut asleep = KERNEL.asleep.lock().expect("no panic under the lock");
        asleep.0.retain(|(at, _)| *at != word.addr());
        KERNEL.changed.notify_all();
    }
}

/// Spins for a short while, in which most waits end. Returns `true` if `done` did.
pub(super) fn spin(done: impl Fn() -> bool) -> bool {
    (0..READER_GROUP_SPINS).any(|_| {
        let done = done();
        if !done {
            ats_sync::shim::pause();
        }
        done
    })
}
