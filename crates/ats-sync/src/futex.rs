//! Sleeping until a word in memory changes, by the Linux system call `futex`.

use std::sync::atomic::AtomicU32;

/// Sleeps while `word` holds `expected`. May return early for no reason.
pub(crate) fn wait(word: &AtomicU32, expected: u32) {
    // SAFETY: the kernel only reads the four aligned bytes behind the reference, which stay valid
    // for the whole call; a null timeout means to wait without limit.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            std::ptr::null::<libc::timespec>(),
        );
    }
}

/// Wakes one thread that sleeps on the word at this address, if there is one.
///
/// Takes an address and not a reference: the word may already have been freed by the thread that
/// got the lock. The kernel uses a private address only as a name, so the worst that can happen is
/// that an unrelated sleeper, who has to expect it, wakes early.
pub(crate) fn wake_one(word: *const AtomicU32) {
    // SAFETY: `FUTEX_WAKE` on a private futex does not access the memory at the address.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word,
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        );
    }
}
