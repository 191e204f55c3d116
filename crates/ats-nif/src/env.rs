//! Environments of the VM, and the words that are terms in them.
//!
//! # Invariants
//! - ENV-1. An [`Env<'e>`] is an environment that lives during `'e` and is used by this thread
//!   alone.
//! - ENV-2. A [`VmWord<'e>`] is a valid term whose heap does not move during `'e`. The VM moves
//!   terms only between calls of native functions, so any term of a call is valid until the call
//!   returns.

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

/// A term as the VM passes it: one word, valid during `'e`.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct VmWord<'e> {
    word: Word,
    life: PhantomData<&'e sys::ErlNifEnv>,
}

impl VmWord<'_> {
    /// The empty list.
    pub const NIL: VmWord<'static> = VmWord {
        word: NIL_WORD,
        life: PhantomData,
    };

    /// Wraps a word that came from the VM.
    ///
    /// # Safety
    /// `word` must be a valid term during `'e` (ENV-2).
    #[inline]
    pub const unsafe fn new(word: Word) -> Self {
        VmWord {
            word,
            life: PhantomData,
        }
    }

    /// Returns the raw word.
    #[inline]
    pub const fn raw(self) -> Word {
        self.word
    }

    /// Returns the raw words of some terms.
    #[inline]
    pub const fn raw_words<'a>(words: &'a [VmWord<'_>]) -> &'a [Word] {
        // SAFETY: `VmWord` is transparent.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
    }

    /// Returns `true` if both terms are the same (`=:=`). O(size), without yielding.
    #[inline]
    pub fn is_identical(self, other: VmWord<'_>) -> bool {
        // Immediates are the same term exactly if their words are equal, and every term is the same
        // as itself: the common case needs no call.
        self.word == other.word
            // SAFETY: both are valid terms (ENV-2).
            || unsafe { sys::enif_is_identical(self.word, other.word) } != 0
    }
}

impl<'e> Env<'e> {
    /// Wraps the environment of a call.
    ///
    /// # Safety
    /// `raw` must live during `'e`, and no other code may use it meanwhile (ENV-1).
    #[inline]
    pub const unsafe fn from_raw(raw: *mut sys::ErlNifEnv) -> Self {
        Env {
            raw,
            life: PhantomData,
        }
    }

    /// Returns the stand-in for an environment on a thread that the VM did not create. It has no
    /// terms, and no process.
    pub(crate) const fn of_own_thread() -> Self {
        Env {
            raw: std::ptr::null_mut(),
            life: PhantomData,
        }
    }

    /// Returns the raw environment, for calls that have no wrapper here.
    #[inline]
    pub const fn raw(self) -> *mut sys::ErlNifEnv {
        self.raw
    }

    /// Wraps a word that the VM has just returned for this environment.
    #[inline]
    const fn wrap(self, word: Word) -> VmWord<'e> {
        // SAFETY: callers pass only words that a building function of the VM returned for this
        // environment, which are valid terms in it (ENV-2).
        unsafe { VmWord::new(word) }
    }

    /// Returns the process that makes this call, or `None` in an environment without one.
    pub fn own_pid(self) -> Option<VmWord<'e>> {
        let mut pid = sys::ErlNifPid { pid: 0 };
        // SAFETY: the environment is valid (ENV-1) and `pid` can be written.
        let found = unsafe { sys::enif_self(self.raw, &raw mut pid) };
        (!found.is_null()).then(|| self.wrap(pid.pid))
    }

    /// Builds a tuple. O(elements).
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

    /// Builds a tuple of immediates given by their words. O(elements), one copy.
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

    /// Builds a list cell.
    #[inline]
    pub fn cons(self, head: VmWord<'_>, tail: VmWord<'_>) -> VmWord<'e> {
        // SAFETY: both are valid terms (ENV-2) and the environment is valid (ENV-1).
        self.wrap(unsafe { sys::enif_make_list_cell(self.raw, head.word, tail.word) })
    }

    /// Builds a list of these elements before a tail. O(elements).
    pub fn list_before(self, elements: &[VmWord<'_>], tail: VmWord<'_>) -> VmWord<'e> {
        let tail = self.wrap(tail.word);
        let cells = elements.iter().rev();
        cells.fold(tail, |tail, &element| self.cons(element, tail))
    }

    /// Builds a proper list. O(elements).
    pub fn list(self, elements: &[VmWord<'_>]) -> VmWord<'e> {
        /// Largest length of a list that the VM builds at once: it counts words in 32 bits.
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

    /// Builds an integer of 64 bits.
    #[inline]
    pub fn int(self, value: i64) -> VmWord<'e> {
        // SAFETY: the environment is valid (ENV-1).
        self.wrap(unsafe { sys::enif_make_long(self.raw, value) })
    }

    /// Builds an unsigned integer of 64 bits.
    #[inline]
    pub fn uint(self, value: u64) -> VmWord<'e> {
        // SAFETY: the environment is valid (ENV-1).
        self.wrap(unsafe { sys::enif_make_ulong(self.raw, value) })
    }

    /// Builds a float, which must be finite.
    #[inline]
    pub fn float(self, value: f64) -> VmWord<'e> {
        assert!(value.is_finite(), "floats of Erlang are finite");
        // SAFETY: the environment is valid (ENV-1).
        self.wrap(unsafe { sys::enif_make_double(self.raw, value) })
    }

    /// Builds a binary with a copy of `bytes`.
    pub fn binary(self, bytes: &[u8]) -> VmWord<'e> {
        let mut word = NIL_WORD;
        // SAFETY: the VM returns room for exactly that many bytes, which no other thread sees yet.
        unsafe {
            let data = sys::enif_make_new_binary(self.raw, bytes.len(), &raw mut word);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
        }
        self.wrap(word)
    }

    /// Builds a binary that refers to `len` bytes of another one.
    ///
    /// # Safety
    /// The other term must be a binary that has these bytes.
    pub unsafe fn part_of_binary(self, binary: VmWord<'_>, start: usize, len: usize) -> VmWord<'e> {
        // SAFETY: the term is valid (ENV-2), and the caller promises that it is a binary that has
        // these bytes.
        self.wrap(unsafe { sys::enif_make_sub_binary(self.raw, binary.word, start, len) })
    }

    /// Builds a map; returns `None` if a key occurs twice. O(n log n).
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
                &raw mut word,
            )
        };
        (made != 0).then(|| self.wrap(word))
    }

    /// Builds a new reference.
    pub fn make_ref(self) -> VmWord<'e> {
        // SAFETY: the environment is valid (ENV-1).
        self.wrap(unsafe { sys::enif_make_ref(self.raw) })
    }

    /// Copies a term of another environment. O(size).
    pub fn copy(self, term: VmWord<'_>) -> VmWord<'e> {
        // SAFETY: the term is valid (ENV-2); copying only reads it.
        self.wrap(unsafe { sys::enif_make_copy(self.raw, term.word) })
    }

    /// Decodes a term in the external term format; trailing bytes are ignored. Returns `None` if
    /// `bytes` encode no term. O(size).
    pub fn from_etf(self, bytes: &[u8]) -> Option<VmWord<'e>> {
        let mut word = NIL_WORD;
        // SAFETY: the bytes are readable and the environment is valid (ENV-1).
        let used = unsafe {
            sys::enif_binary_to_term(self.raw, bytes.as_ptr(), bytes.len(), &raw mut word, 0)
        };
        (used != 0).then(|| self.wrap(word))
    }

    /// Raises `error:reason` in the current call once the returned word is returned to the VM.
    pub fn raise(self, reason: VmWord<'_>) -> VmWord<'e> {
        // SAFETY: the reason is a valid term (ENV-2); the result is an exception marker, which is
        // only returned to the VM.
        unsafe { VmWord::new(sys::enif_raise_exception(self.raw, reason.word)) }
    }
}

/// An environment that belongs to no call: its terms may outlive the process they came from. Costs
/// about 2.5 KB.
pub struct OwnEnv {
    raw: *mut sys::ErlNifEnv,
}

// SAFETY: an environment without a process is bound to no thread; any thread can fill, read and
// free it, one at a time. Code that shares it must synchronize concurrent access.
unsafe impl Send for OwnEnv {}

impl OwnEnv {
    /// Creates an empty environment.
    pub fn new() -> Self {
        // SAFETY: any thread may allocate an environment at any time.
        let raw = unsafe { sys::enif_alloc_env() };
        assert!(!raw.is_null(), "out of memory");
        OwnEnv { raw }
    }

    /// Frees all its terms.
    pub fn clear(&mut self) {
        // SAFETY: `&mut` makes the access exclusive, and no term outlives a borrow of its
        // environment.
        unsafe { sys::enif_clear_env(self.raw) }
    }

    /// Returns the raw environment.
    pub const fn raw(&self) -> *mut sys::ErlNifEnv {
        self.raw
    }

    /// Lends the environment, to build terms in it.
    pub fn env(&mut self) -> Env<'_> {
        // SAFETY: the environment lives as long as `self`, and `&mut` makes the access exclusive
        // (ENV-1).
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
        // SAFETY: `drop` has the only reference to the environment, and any thread may free it.
        unsafe { sys::enif_free_env(self.raw) }
    }
}
