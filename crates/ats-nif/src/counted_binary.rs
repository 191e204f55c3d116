//! Large binaries, shared with the processes that use them.
//!
//! The VM counts the references to a binary of more than 64 bytes. The box of a [counted
//! binary](Counted) is one of these references. An I/O vector of the VM takes the count, and the VM
//! makes a term by copying one that is in memory of this library, as it copies the terms of a
//! message. Both rely on the layout of such terms, which [`heap`] compares at load; on a VM with
//! another layout, [`SharedBinary`](crate::shared_binary) holds binaries.
//!
//! # Invariant
//! - COUNTED_BINARY-1. A box of a counted binary owns one count of its binary, which has its bytes.

use crate::env::{Env, VmWord};
use crate::heap;
use crate::sys::{self, Word};
use crate::tags::{BOXED_TAG, CONS_TAG, NIL};
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// Number of words of a box.
const WORDS: usize = 3;

/// The words of a box: the addresses of the binary and of the bytes, and their number.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a>(&'a [u64; WORDS]);

/// Counts a binary of more than 64 bytes, and returns the words of a box that owns the count. Fails
/// if the layout of counted binaries is not known.
pub fn count(binary: VmWord<'_>) -> Option<[u64; WORDS]> {
    if !heap::counts_binaries() {
        return None;
    }
    let cell = [binary.raw(), NIL];
    let list = cell.as_ptr().expose_provenance() as Word + CONS_TAG;
    let mut tail = NIL;
    let mut vector = MaybeUninit::<sys::ErlNifIOVec>::uninit();
    let mut iov = vector.as_mut_ptr();
    // SAFETY: the list is a cell of a valid term, in memory that stays until the call returns, and
    // the vector has room for what the VM writes to it. Without an environment, the vector counts
    // the binary.
    let seen = unsafe {
        let null = std::ptr::null_mut();
        sys::enif_inspect_iovec(null, 1, list, &raw mut tail, &raw mut iov)
    };
    if seen == 0 {
        return None;
    }
    // SAFETY: the VM has filled the vector, which has one part and the binary of it if it says so.
    // Without a binary, nothing was counted.
    let (part, counted) = unsafe {
        if (*iov).iovcnt != 1 || (*(*iov).ref_bins).is_null() {
            sys::enif_free_iovec(iov);
            return None;
        }
        (*(*iov).iov, *(*iov).ref_bins)
    };
    let address = |pointer: *mut u8| pointer.expose_provenance() as u64;
    Some([address(counted.cast()), address(part.base), part.len as u64])
}

impl<'a> Counted<'a> {
    /// Wraps the words of a box.
    ///
    /// # Safety
    /// The words must come from [`count`], and the count must not be given up during `'a`
    /// (COUNTED_BINARY-1).
    pub unsafe fn new(words: &'a [u64]) -> Self {
        Counted(words.try_into().expect("the words of a counted binary"))
    }

    fn binary(self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.0[0] as usize)
    }

    /// Returns the bytes. Takes no lock and no count.
    pub fn bytes(self) -> &'a [u8] {
        let bytes = std::ptr::with_exposed_provenance(self.0[1] as usize);
        // SAFETY: the count keeps the binary, which has these bytes (COUNTED_BINARY-1), and the
        // bytes of a binary never change once it was passed to a native function.
        unsafe { std::slice::from_raw_parts(bytes, self.0[2] as usize) }
    }

    /// Lends a term that shares the binary, in memory of this library.
    #[inline]
    fn with_term<R>(self, f: impl FnOnce(VmWord<'_>) -> R) -> R {
        let bytes = self.bytes();
        let words = heap::counted_binary(self.binary(), bytes.as_ptr(), bytes.len());
        let word = words.as_ptr().expose_provenance() as Word + BOXED_TAG;
        // SAFETY: the words are a term that refers to a counted binary (COUNTED_BINARY-1), and stay
        // where they are until `f` returns, which cannot keep the term.
        f(unsafe { VmWord::new(word) })
    }

    /// Builds a term that shares the binary. O(1).
    #[inline]
    pub fn make(self, env: Env<'_>) -> VmWord<'_> {
        // The VM counts the copy.
        self.with_term(|term| env.copy(term))
    }

    /// Takes another count, for a copy of the box.
    pub fn retain(self) {
        let counted = self.with_term(count);
        assert!(counted.is_some(), "it was counted before");
    }

    /// Gives up the count.
    ///
    /// # Safety
    /// No code may use the box after the call.
    pub unsafe fn release(self) {
        let mut binary = sys::ErlNifBinary::empty();
        binary.ref_bin = self.binary();
        // SAFETY: this gives up the count that the box owns (COUNTED_BINARY-1), and the caller
        // promises that the box is not used any more.
        unsafe { sys::enif_release_binary(&raw mut binary) }
    }
}
