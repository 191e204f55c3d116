//! Futexes: sleep until a word in memory changes, by the Linux system call. Other systems, and
//! explored models, only yield the time slice, so no thread has to be woken.

use crate::shim::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` holds `expected`, at most for `limit` if given. May return early without
/// reason.
pub fn wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) {
    system::wait(word, expected, limit);
}

/// Wakes one thread that sleeps on the word at this address, if there is one.
///
/// Takes an address and not a reference: the word may already have been freed by the thread that
/// got the lock. The kernel uses a private address only as a name, so at worst an unrelated
/// sleeping thread wakes early, which it must expect.
#[cold]
pub fn wake_one(word: *const AtomicU32) {
    system::wake(word, 1);
}

/// Wakes all threads that sleep on the word at this address. The word may have been freed: see
/// [`wake_one`].
pub fn wake_all(word: *const AtomicU32) {
    system::wake(word, i32::MAX);
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
mod system {
    use crate::count;
    use crate::shim::atomic::AtomicU32;
    use std::time::Duration;

    pub(super) fn wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) {
        let limit = limit.map(|limit| libc::timespec {
            tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
            // Below a billion, which any type of this field holds.
            tv_nsec: limit.subsec_nanos().into(),
        });
        let limit = limit
            .as_ref()
            .map_or(std::ptr::null(), std::ptr::from_ref::<libc::timespec>);
        count::note_futex();
        // SAFETY: the kernel only reads the four aligned bytes behind the reference, and the time
        // if it is not null, which stay valid for the whole call; null means to wait without limit.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                std::ptr::from_ref(word),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                expected,
                limit,
            );
        }
    }

    pub(super) fn wake(word: *const AtomicU32, threads: libc::c_int) {
        count::note_futex();
        // SAFETY: `FUTEX_WAKE` on a private futex does not access the memory at the address.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word,
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                threads,
            );
        }
    }
}

#[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
mod system {
    use crate::shim::atomic::AtomicU32;
    use std::time::Duration;

    pub(super) fn wait(_: &AtomicU32, _: u32, _: Option<Duration>) {
        crate::shim::thread::yield_now();
    }

    pub(super) fn wake(_: *const AtomicU32, _: i32) {}
}
