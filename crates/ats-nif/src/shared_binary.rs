//! Large binaries, shared with the processes that use them, on a VM whose terms have an unknown
//! layout.
//!
//! # Invariant
//! - SHARED_BINARY-1. The queue of a [`SharedBinary`] holds one binary, in one piece, and never
//!   changes.

use crate::env::{Env, VmWord};
use crate::sys;

/// A reference-counted binary of the VM, held outside of any process.
///
/// Only one object of the NIF interface holds a binary without copying it, outlives the call and
/// can be read by any thread: an I/O queue.
pub struct SharedBinary {
    queue: *mut sys::ErlNifIOQueue,
    bytes: *const u8,
    len: usize,
}

// SAFETY: the queue is bound to no thread and never changes (SHARED_BINARY-1); reading it only
// counts up the reference count of the binary, which is atomic. The bytes of a binary never change
// once it was passed to a native function.
unsafe impl Send for SharedBinary {}
// SAFETY: the queue never changes (SHARED_BINARY-1), so threads that share it only read, and each
// reading counts the references of the binary atomically.
unsafe impl Sync for SharedBinary {}

impl SharedBinary {
    /// Holds a binary of at least one byte. Fails if the VM keeps the binary in a form that a queue
    /// cannot hold in one piece.
    pub fn hold(env: Env<'_>, binary: VmWord<'_>) -> Option<SharedBinary> {
        let list = env.cons(binary, VmWord::NIL);
        let mut tail = VmWord::NIL.raw();
        let mut iov = std::ptr::null_mut();
        // SAFETY: the list is a valid term. Without an environment, the vector is ours to free and
        // counts the binary.
        let seen = unsafe {
            sys::enif_inspect_iovec(
                std::ptr::null_mut(),
                1,
                list.raw(),
                &raw mut tail,
                &raw mut iov,
            )
        };
        if seen == 0 {
            return None;
        }
        // SAFETY: the queue is new, the vector valid; the queue counts the binary for itself before
        // the vector gives its count back.
        let (queue, queued) = unsafe {
            let queue = sys::enif_ioq_create(sys::IOQ_NORMAL);
            let queued = sys::enif_ioq_enqv(queue, iov, 0);
            sys::enif_free_iovec(iov);
            (queue, queued)
        };
        let mut parts = 0;
        // SAFETY: the queue is ours; the first part is read only if there is exactly one.
        let held = unsafe {
            let first = sys::enif_ioq_peek(queue, &raw mut parts);
            (queued != 0 && parts == 1).then(|| *first)
        };
        let Some(part) = held else {
            // SAFETY: no other code has the pointer to the queue.
            unsafe { sys::enif_ioq_destroy(queue) };
            return None;
        };
        Some(SharedBinary {
            queue,
            bytes: part.base,
            len: part.len,
        })
    }

    /// Returns the bytes. Takes no lock and no count.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the queue keeps the binary, and with it these bytes, as long as `self`
        // (SHARED_BINARY-1).
        unsafe { std::slice::from_raw_parts(self.bytes, self.len) }
    }

    /// Builds a term that shares the binary. O(1).
    pub fn make<'e>(&self, env: Env<'e>) -> VmWord<'e> {
        let mut word = VmWord::NIL.raw();
        // SAFETY: peeking at the head reads the queue, which never changes (SHARED_BINARY-1), and
        // counts the binary for the new term.
        unsafe {
            let found =
                sys::enif_ioq_peek_head(env.raw(), self.queue, std::ptr::null_mut(), &raw mut word);
            assert!(found != 0, "the queue holds a binary");
            VmWord::new(word)
        }
    }
}

impl Drop for SharedBinary {
    fn drop(&mut self) {
        // SAFETY: `drop` has the last reference, so no thread reads the queue.
        unsafe { sys::enif_ioq_destroy(self.queue) }
    }
}
