//! Environments of the VM, and the words that are terms in them.
//!
//! # Invariants
//! - ENV-1. An [`Env<'e>`] is an environment that exists during `'e` and is used by this thread
//!   alone.
//! - ENV-2. A [`VmWord<'e>`] is a valid term that stays where it is during `'e`. The VM moves terms
//!   only between calls of native functions, so any term of a call is good until the call returns.

use crate::sys::{self, Word};
use std::marker::PhantomData;

/// The word of the empty list.
const NIL_WORD: Word = 0x3B;

/// An environment, in which terms are built.
#[derive(Clone, Copy)]
pub struct Env<'e> {
    raw: *mut sys::ErlNifEnv,
    life: PhantomData<&'e sys::ErlNifEnv>,
}

/// A term as the VM passes it: one word, good during `'e`.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct VmWord<'e> {
    word: Word,
    life: PhantomData<&'e sys::ErlNifEnv>,
}

impl<'e> VmWord<'e> {
    /// The empty list.
    pub const NIL: VmWord<'static> = VmWord {
        word: NIL_WORD,
        life: PhantomData,
    };

    /// Wraps a word that came from the VM.
    ///
    /// # Safety
    /// `word` is a valid term during `'e` (ENV-2).
    #[inline]
    pub const unsafe fn new(word: Word) -> Self {
        VmWord {
            word,
            life: PhantomData,
        }
    }

    /// The word itself.
    #[inline]
    pub const fn raw(self) -> Word {
        self.word
    }

    /// Returns `true` if the two are `=:=`. O(size), without yielding.
    #[inline]
    pub fn is_identical(self, other: VmWord<'_>) -> bool {
        // Two immediates are the same term exactly if they are the same word, and so is any term
        // with itself: the common case needs no call.
        self.word == other.word
            // SAFETY: both are valid terms (ENV-2).
            || unsafe { sys::enif_is_identical(self.word, other.word) } != 0
    }
}

impl<'e> Env<'e> {
    /// Wraps the environment of a call.
    ///
    /// # Safety
    /// `raw` exists during `'e` and no other code uses it meanwhile (ENV-1).
    #[inline]
    pub const unsafe fn from_raw(raw: *mut sys::ErlNifEnv) -> Self {
        Env {
            raw,
            life: PhantomData,
        }
    }

    /// The stand-in for the environment in calls by a thread that is none of the VM. It has no
    /// terms, and no process.
    pub(crate) const fn of_own_thread() -> Self {
        Env {
            raw: std::ptr::null_mut(),
            life: PhantomData,
        }
    }

    /// The environment itself, for calls that have no wrapper here.
    #[inline]
    pub const fn raw(self) -> *mut sys::ErlNifEnv {
        self.raw
    }

    /// Wraps a term just built in this environment.
    #[inline]
    const fn wrap(self, word: Word) -> VmWord<'e> {
        // SAFETY: this is called only with what a building function of the VM returned for this
        // environment, which is a valid term in it (ENV-2).
        unsafe { VmWord::new(word) }
    }

    /// The process that makes this call, or `None` in an environment without one.
    pub fn own_pid(self) -> Option<VmWord<'e>> {
        let mut pid = sys::ErlNifPid { pid: 0 };
        // SAFETY: the environment is valid (ENV-1) and `pid` can be written.
        let found = unsafe { sys::enif_self(self.raw, &mut pid) };
        (!found.is_null()).then(|| self.wrap(pid.pid))
    }

    /// A tuple. O(elements).
    #[inline]
    pub fn tuple(self, elements: &[VmWord<'_>]) -> VmWord<'e> {
        // SAFETY: `VmWord` is transparent, so this is an array of that many valid terms (ENV-2).
        let word = unsafe {
            sys::enif_make_tuple_from_array(
                self.raw,
                elements.as_ptr().cast(),
                elements.len() as u32,
            )
        };
        self.wrap(word)
    }

    /// A tuple of immediates given by their words. O(elements), one copy.
    #[inline]
    pub fn tuple_of_immediates(self, words: &[Word]) -> VmWord<'e> {
        debug_assert!(words.iter().all(|word| word & 0b11 == 0b11));
        // SAFETY: the words come from an image that the VM's own immediates were written to, and an
        // immediate is a valid term in every environment.
        let word = unsafe {
            sys::enif_make_tuple_from_array(self.raw, words.as_ptr(), words.len() as u32)
        };
        self.wrap(word)
    }

    /// A list cell.
    #[inline]
    pub fn cons(self, head: VmWord<'_>, tail: VmWord<'_>) -> VmWord<'e> {
        // SAFETY: both are valid terms (ENV-2) and the environment is valid (ENV-1).
        self.wrap(unsafe { sys::enif_make_list_cell(self.raw, head.word, tail.word) })
    }

    /// A list of these elements before a tail. O(elements).
    pub fn list_before(self, elements: &[VmWord<'_>], tail: VmWord<'_>) -> VmWord<'e> {
        let tail = self.wrap(tail.word);
        let cells = elements.iter().rev();
        cells.fold(tail, |tail, &element| self.cons(element, tail))
    }

    /// A proper list. O(elements).
    pub fn list(self, elements: &[VmWord<'_>]) -> VmWord<'e> {
        /// The VM counts the words of the list in 32 bits.
        const MOST: usize = 1 << 30;
        if elements.len() > MOST {
            return self.list_before(elements, VmWord::NIL);
        }
        // SAFETY: the elements are valid terms (ENV-2), they fit the 32 bits of their number, and
        // the environment is valid (ENV-1).
        let word = unsafe {
            sys::enif_make_list_from_array(
                self.raw,
                elements.as_ptr().cast(),
                elements.len() as u32,
            )
        };
        self.wrap(word)
    }

    /// An integer of 64 bits.
    #[inline]
    pub fn int(self, value: i64) -> VmWord<'e> {
        // SAFETY: the environment is valid (ENV-1).
        self.wrap(unsafe { sys::enif_make_long(self.raw, value) })
    }

    /// An integer of 64 bits without sign.
    #[inline]
    pub fn uint(self, value: u64) -> VmWord<'e> {
        // SAFETY: the environment is valid (ENV-1).
        self.wrap(unsafe { sys::enif_make_ulong(self.raw, value) })
    }

    /// A float, which must be finite.
    #[inline]
    pub fn float(self, value: f64) -> VmWord<'e> {
        assert!(value.is_finite(), "floats of Erlang are finite");
        // SAFETY: the environment is valid (ENV-1).
        self.wrap(unsafe { sys::enif_make_double(self.raw, value) })
    }

    /// A binary with a copy of `bytes`.
    pub fn binary(self, bytes: &[u8]) -> VmWord<'e> {
        let mut word = NIL_WORD;
        // SAFETY: the VM returns room for exactly that many bytes, which no other thread sees yet.
        unsafe {
            let data = sys::enif_make_new_binary(self.raw, bytes.len(), &mut word);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
        }
        self.wrap(word)
    }

    /// A map, or `None` if a key occurs twice. O(n log n).
    pub fn map(self, keys: &[VmWord<'_>], values: &[VmWord<'_>]) -> Option<VmWord<'e>> {
        assert_eq!(keys.len(), values.len());
        let mut word = NIL_WORD;
        // SAFETY: `VmWord` is transparent, so both are arrays of that many valid terms (ENV-2).
        let made = unsafe {
            sys::enif_make_map_from_arrays(
                self.raw,
                keys.as_ptr().cast(),
                values.as_ptr().cast(),
                keys.len(),
                &mut word,
            )
        };
        (made != 0).then(|| self.wrap(word))
    }

    /// A new reference.
    pub fn make_ref(self) -> VmWord<'e> {
        // SAFETY: the environment is valid (ENV-1).
        self.wrap(unsafe { sys::enif_make_ref(self.raw) })
    }

    /// A copy of a term of another environment. O(size).
    pub fn copy(self, term: VmWord<'_>) -> VmWord<'e> {
        // SAFETY: the term is valid (ENV-2); copying only reads it.
        self.wrap(unsafe { sys::enif_make_copy(self.raw, term.word) })
    }

    /// The term that `bytes` encode in the external term format (trailing bytes are ignored), or
    /// `None` if they encode none. O(size).
    pub fn from_etf(self, bytes: &[u8]) -> Option<VmWord<'e>> {
        let mut word = NIL_WORD;
        // SAFETY: the bytes are readable and the environment is valid (ENV-1).
        let used = unsafe {
            sys::enif_binary_to_term(self.raw, bytes.as_ptr(), bytes.len(), &mut word, 0)
        };
        (used != 0).then(|| self.wrap(word))
    }

    /// Makes the current call end with `error:reason`, which happens when the returned word is
    /// returned.
    pub fn raise(self, reason: VmWord<'_>) -> VmWord<'e> {
        // SAFETY: the reason is a valid term (ENV-2); the result is the marker of an exception,
        // which is only returned to the VM.
        unsafe { VmWord::new(sys::enif_raise_exception(self.raw, reason.word)) }
    }
}

/// An environment that belongs to no call: a place where terms outlive the process they came from.
/// Costs about 2.5 KB.
pub struct OwnEnv {
    raw: *mut sys::ErlNifEnv,
}

// SAFETY: an environment without a process is bound to no thread; it can be filled, read and freed
// by any, one at a time. Code that shares it must synchronize concurrent access.
unsafe impl Send for OwnEnv {}

impl OwnEnv {
    /// A new, empty one.
    pub fn new() -> Self {
        // SAFETY: any thread may allocate an environment at any time.
        let raw = unsafe { sys::enif_alloc_env() };
        assert!(!raw.is_null(), "out of memory");
        OwnEnv { raw }
    }

    /// Frees all terms in it.
    pub fn clear(&mut self) {
        // SAFETY: `&mut` keeps others out, and no term in it outlives a borrow of it.
        unsafe { sys::enif_clear_env(self.raw) }
    }

    /// The environment itself.
    pub const fn raw(&self) -> *mut sys::ErlNifEnv {
        self.raw
    }

    /// The environment, for building terms in it.
    pub fn env(&mut self) -> Env<'_> {
        // SAFETY: it exists as long as `self`, and `&mut` keeps others out (ENV-1).
        unsafe { Env::from_raw(self.raw) }
    }
}

impl Default for OwnEnv {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for OwnEnv {
    fn drop(&mut self) {
        // SAFETY: no thread uses it any more. Freeing is allowed on every thread.
        unsafe { sys::enif_free_env(self.raw) }
    }
}
