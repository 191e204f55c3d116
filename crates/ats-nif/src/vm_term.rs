//! Terms of the VM as [`TermRef`], the form used by all generic code.
//!
//! The common kinds are told apart by the tag bits of their word, which [`load`](crate::load) has
//! checked; for the others the VM is asked. Terms that the NIF interface does not show
//! (bitstrings that do not end at a byte, identifiers of other nodes, funs, native records) are
//! read from the external term format, which costs an allocation and one pass over the term. The
//! same holds for unknown kinds of terms of later VM releases. Integers beyond 64 bits are read in
//! place (see [`big`]).

use crate::atoms;
use crate::big;
use crate::env::{Env, VmWord};
use crate::etf::{self, Etf};
use crate::heap;
use crate::map_layout;
use crate::sys::{self, Word};
use crate::tags::{CONS_TAG, IMMEDIATE_TAG, NIL, OTHER_TAG, PID_TAG, PORT_TAG, SMALL_TAG};
use crate::{ident, opaque, reference};
use ats_term::term_ref::{FunIdent, Ident, Kind, Opaque, TermRef};
use std::ffi::c_int;

/// A term, and the environment to read it in.
#[derive(Clone, Copy)]
pub struct VmTerm<'e> {
    env: Env<'e>,
    word: VmWord<'e>,
}

impl<'e> VmTerm<'e> {
    /// Wraps a word that came from the VM.
    ///
    /// # Safety
    /// `word` must be a valid term during `'e`.
    #[inline]
    pub const unsafe fn new(env: Env<'e>, word: Word) -> Self {
        VmTerm {
            env,
            // SAFETY: the caller promises that `word` is a valid term during `'e` (ENV-2).
            word: unsafe { VmWord::new(word) },
        }
    }

    /// Wraps a term that was built or passed in this environment.
    #[inline]
    pub const fn of(env: Env<'e>, word: VmWord<'e>) -> Self {
        VmTerm { env, word }
    }

    /// Returns the word of the term.
    #[inline]
    pub const fn word(self) -> VmWord<'e> {
        self.word
    }

    /// Returns the environment of the term.
    #[inline]
    pub const fn env(self) -> Env<'e> {
        self.env
    }

    /// Wraps another term of the same environment.
    #[inline]
    const fn with(self, word: Word) -> Self {
        // SAFETY: callers pass only words that the VM returned as parts of `self`, which are valid
        // as long as `self` (ENV-2).
        unsafe { VmTerm::new(self.env, word) }
    }

    /// Returns the value of a small integer.
    #[inline]
    pub const fn as_small(self) -> Option<i64> {
        let word = self.word.raw();
        if word & 0xF == SMALL_TAG {
            Some(word as i64 >> 4)
        } else {
            None
        }
    }

    /// Returns the value of an integer that fits an unsigned word.
    #[inline]
    pub fn as_unsigned(self) -> Option<u64> {
        match self.as_small() {
            Some(value) => u64::try_from(value).ok(),
            None if self.is_immediate() => None,
            None => self.ulong(),
        }
    }

    /// Returns `true` if this is an atom.
    #[inline]
    pub const fn is_atom(self) -> bool {
        self.word.raw() & 0x3F == atoms::ATOM_TAG
    }

    /// Returns `true` if this is the empty list.
    #[inline]
    pub const fn is_nil(self) -> bool {
        self.word.raw() == NIL
    }

    /// Returns `true` if this is a pid of this node.
    #[inline]
    pub const fn is_local_pid(self) -> bool {
        self.word.raw() & 0xF == PID_TAG
    }

    /// Returns `true` if the term is an immediate.
    #[inline]
    pub const fn is_immediate(self) -> bool {
        self.word.raw() & IMMEDIATE_TAG == IMMEDIATE_TAG
    }

    /// Returns the words of a tuple's elements; `None` for other terms. O(1).
    #[inline]
    pub fn tuple_words(self) -> Option<&'e [VmWord<'e>]> {
        heap::tuple(self.word).or_else(|| self.tuple_words_by_vm())
    }

    fn tuple_words_by_vm(self) -> Option<&'e [VmWord<'e>]> {
        let mut arity = 0;
        let mut elements = std::ptr::null();
        // SAFETY: the term is valid; the VM fills both on success.
        let found = unsafe {
            sys::enif_get_tuple(
                self.env.raw(),
                self.word.raw(),
                &raw mut arity,
                &raw mut elements,
            )
        };
        if found == 0 {
            return None;
        }
        if arity == 0 {
            // The VM may return no pointer for an empty tuple.
            return Some(&[]);
        }
        // SAFETY: a tuple has that many elements, each a valid term that lives as long as the
        // tuple; `VmWord` is transparent.
        Some(unsafe { std::slice::from_raw_parts(elements.cast(), arity as usize) })
    }

    /// Returns head and tail of a list cell; `None` for other terms.
    #[inline]
    pub fn as_cons(self) -> Option<(Self, Self)> {
        match heap::cell(self.word) {
            Some((head, tail)) => Some((VmTerm::of(self.env, head), VmTerm::of(self.env, tail))),
            None => self.as_cons_by_vm(),
        }
    }

    fn as_cons_by_vm(self) -> Option<(Self, Self)> {
        let (mut head, mut tail) = (0, 0);
        // SAFETY: the term is valid; the VM fills both on success.
        let found = unsafe {
            sys::enif_get_list_cell(
                self.env.raw(),
                self.word.raw(),
                &raw mut head,
                &raw mut tail,
            )
        };
        (found != 0).then(|| (self.with(head), self.with(tail)))
    }

    /// Returns the bytes of a binary; `None` for other terms and for bitstrings that do not end at
    /// a byte. They are copied if the binary does not start at a byte of memory.
    #[inline]
    pub fn as_bytes(self) -> Option<&'e [u8]> {
        heap::binary(self.word).or_else(|| self.as_bytes_by_vm())
    }

    fn as_bytes_by_vm(self) -> Option<&'e [u8]> {
        let mut bin = sys::ErlNifBinary::empty();
        // SAFETY: the term is valid; the VM fills `bin` on success.
        let found =
            unsafe { sys::enif_inspect_binary(self.env.raw(), self.word.raw(), &raw mut bin) };
        if found == 0 {
            return None;
        }
        if bin.size == 0 {
            return Some(&[]);
        }
        // SAFETY: the bytes of a binary never change, and live as long as the binary or, if they
        // were copied, as long as the environment's call.
        Some(unsafe { std::slice::from_raw_parts(bin.data, bin.size) })
    }

    /// Returns the external term format of this term.
    pub fn etf(self) -> Etf {
        Etf::of(self.word)
    }

    fn long(self) -> Option<i64> {
        let mut value = 0;
        // SAFETY: the term is valid; the VM fills `value` on success.
        let found = unsafe { sys::enif_get_long(self.env.raw(), self.word.raw(), &raw mut value) };
        (found != 0).then_some(value)
    }

    fn ulong(self) -> Option<u64> {
        let mut value = 0;
        // SAFETY: the term is valid; the VM fills `value` on success.
        let found = unsafe { sys::enif_get_ulong(self.env.raw(), self.word.raw(), &raw mut value) };
        (found != 0).then_some(value)
    }

    fn double(self) -> Option<f64> {
        let mut value = 0.0;
        // SAFETY: the term is valid; the VM fills `value` on success.
        let found =
            unsafe { sys::enif_get_double(self.env.raw(), self.word.raw(), &raw mut value) };
        (found != 0).then_some(value)
    }

    fn map_len(self) -> Option<usize> {
        let mut len = 0;
        // SAFETY: the term is valid; the VM fills `len` on success.
        let found =
            unsafe { sys::enif_get_map_size(self.env.raw(), self.word.raw(), &raw mut len) };
        (found != 0).then_some(len)
    }

    /// Returns the value of a key, if this is a map that has it.
    pub fn map_value(self, key: VmWord<'_>) -> Option<Self> {
        let (env, mut value) = (self.env.raw(), 0);
        // SAFETY: both terms are valid; the VM fills `value` on success.
        let found =
            unsafe { sys::enif_get_map_value(env, self.word.raw(), key.raw(), &raw mut value) };
        (found != 0).then(|| self.with(value))
    }

    /// Asks one of the VM's type tests.
    fn passes(self, test: unsafe extern "C" fn(*mut sys::ErlNifEnv, Word) -> c_int) -> bool {
        // SAFETY: the term is valid, and these functions take any term.
        unsafe { test(self.env.raw(), self.word.raw()) != 0 }
    }

    /// Returns the kind of an immediate, by its tag.
    #[inline]
    fn immediate_kind(self) -> Kind<Self> {
        let word = self.word.raw();
        match word & 0xF {
            SMALL_TAG => Kind::Int(word as i64 >> 4),
            PID_TAG => Kind::Pid,
            PORT_TAG => Kind::Port,
            _ if word == NIL => Kind::Nil,
            tag => {
                debug_assert_eq!(tag, OTHER_TAG);
                Kind::Atom
            }
        }
    }

    /// Returns the kind of a boxed term, by its header if the layout is known.
    fn boxed_kind(self) -> Kind<Self> {
        if let Some(elements) = heap::tuple(self.word) {
            return Kind::Tuple(elements.len());
        }
        if big::digits(self.word).is_some() {
            return self.integer_kind();
        }
        if opaque::is_made(self.env, self.word) {
            return Kind::Opaque;
        }
        if let Some((keys, _)) = heap::map(self.word) {
            return Kind::Map(keys.len());
        }
        if let Some(value) = heap::float(self.word) {
            return Kind::Float(value);
        }
        if let Some(bytes) = heap::binary(self.word) {
            return Kind::Bits(bytes.len() * 8);
        }
        if reference::has_known_header(self.word) {
            return Kind::Ref;
        }
        self.boxed_kind_by_vm()
    }

    /// Returns the kind of a boxed term. Functions of the VM that also return the contents are
    /// tried first.
    fn boxed_kind_by_vm(self) -> Kind<Self> {
        if let Some(bytes) = self.as_bytes_by_vm() {
            return Kind::Bits(bytes.len() * 8);
        }
        if let Some(elements) = self.tuple_words_by_vm() {
            return Kind::Tuple(elements.len());
        }
        if let Some(value) = self.double() {
            return Kind::Float(value);
        }
        if let Some(len) = self.map_len() {
            return Kind::Map(len);
        }
        if self.passes(sys::enif_is_number) {
            return self.integer_kind();
        }
        self.rare_kind()
    }

    fn integer_kind(self) -> Kind<Self> {
        self.long().map_or(Kind::Big, Kind::Int)
    }

    fn rare_kind(self) -> Kind<Self> {
        if self.passes(sys::enif_is_ref) {
            return Kind::Ref;
        }
        if self.passes(sys::enif_is_pid) {
            return Kind::Pid;
        }
        if self.passes(sys::enif_is_port) {
            return Kind::Port;
        }
        let etf = self.etf();
        if self.passes(sys::enif_is_fun) {
            return if etf::is_external_fun(etf.bytes()) {
                Kind::ExternalFun
            } else {
                Kind::LocalFun
            };
        }
        match etf::bitstring(etf.bytes()) {
            Some((bytes, last_bits)) => Kind::Bits(bytes.len() * 8 - 8 + last_bits),
            None => Kind::Opaque,
        }
    }
}

impl TermRef for VmTerm<'_> {
    #[inline]
    fn kind(self) -> Kind<Self> {
        match self.word.raw() & 0b11 {
            IMMEDIATE_TAG => self.immediate_kind(),
            CONS_TAG => {
                let (head, tail) = self.as_cons().expect("tagged as a list cell");
                Kind::Cons(head, tail)
            }
            _ => self.boxed_kind(),
        }
    }

    #[inline]
    fn immediate(self) -> Option<u64> {
        self.is_immediate().then_some(self.word.raw())
    }

    fn with_big<R>(self, f: impl FnOnce(bool, &[u8]) -> R) -> R {
        if let Some((negative, magnitude)) = big::digits(self.word) {
            return f(negative, magnitude);
        }
        match self.ulong() {
            Some(value) => f(false, etf::trim(&value.to_le_bytes())),
            None => {
                let etf = self.etf();
                let (negative, magnitude) = etf::integer(etf.bytes());
                f(negative, magnitude)
            }
        }
    }

    fn with_atom<R>(self, f: impl FnOnce(&str) -> R) -> R {
        f(atoms::text(self.word))
    }

    #[inline]
    fn element(self, i: usize) -> Self {
        let elements = self.tuple_words().expect("a tuple");
        VmTerm::of(self.env, elements[i])
    }

    #[inline]
    fn elements(self, arity: usize) -> impl Iterator<Item = Self> {
        let words = self.tuple_words().expect("a tuple");
        debug_assert_eq!(words.len(), arity);
        words.iter().map(move |&word| VmTerm::of(self.env, word))
    }

    #[inline]
    fn with_flat_tuple<R>(self, f: impl FnOnce(&[u64]) -> R) -> Option<R> {
        let words = VmWord::raw_words(heap::tuple(self.word)?);
        let are_immediates = words
            .iter()
            .all(|word| word & IMMEDIATE_TAG == IMMEDIATE_TAG);
        are_immediates.then(|| f(words))
    }

    fn map_pairs(self, out: &mut Vec<(Self, Self)>) {
        let start = out.len();
        let pair = |key, value| out.push((self.with(key), self.with(value)));
        if map_layout::read(self.word, pair) {
            return;
        }
        out.truncate(start);
        let mut pairs = MapIter::new(self);
        while let Some(pair) = pairs.next() {
            out.push(pair);
        }
    }

    fn with_bits<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self.as_bytes() {
            Some(bytes) => f(bytes),
            None => {
                let etf = self.etf();
                let (bytes, _) = etf::bitstring(etf.bytes()).expect("a bitstring");
                f(bytes)
            }
        }
    }

    fn with_ident<R>(self, f: impl FnOnce(Ident<'_>) -> R) -> R {
        match self.word.raw() & 0xF {
            PID_TAG | PORT_TAG => ident::with_local_immediate(self.word, f),
            _ if reference::has_known_header(self.word) || self.passes(sys::enif_is_ref) => {
                reference::with_ident(self.word, f)
            }
            _ => ident::with_vm_ident(self.word, false, f),
        }
    }

    fn with_fun<R>(self, f: impl FnOnce(FunIdent<'_>) -> R) -> R {
        opaque::with_etf_fun(self.etf().bytes(), f)
    }

    fn with_opaque<R>(self, f: impl FnOnce(Opaque<'_>) -> R) -> R {
        opaque::with_etf_opaque(self.etf().bytes(), f)
    }
}

/// Iterator over the pairs of a map. The VM allocates for large maps, so it must be destroyed.
struct MapIter<'e> {
    map: VmTerm<'e>,
    raw: sys::ErlNifMapIterator,
}

impl<'e> MapIter<'e> {
    fn new(map: VmTerm<'e>) -> Self {
        let mut raw = std::mem::MaybeUninit::uninit();
        // SAFETY: the term is valid; the VM fills the iterator if it is a map.
        let made = unsafe {
            sys::enif_map_iterator_create(
                map.env.raw(),
                map.word.raw(),
                raw.as_mut_ptr(),
                sys::MAP_ITERATOR_FIRST,
            )
        };
        assert!(made != 0, "pairs of something that is no map");
        MapIter {
            map,
            // SAFETY: the VM has filled the iterator and keeps no pointer into it.
            raw: unsafe { raw.assume_init() },
        }
    }

    fn next(&mut self) -> Option<(VmTerm<'e>, VmTerm<'e>)> {
        let (mut key, mut value) = (0, 0);
        let env = self.map.env.raw();
        // SAFETY: the iterator is valid; the VM fills key and value unless it is at the end.
        unsafe {
            if sys::enif_map_iterator_get_pair(env, &raw mut self.raw, &raw mut key, &raw mut value)
                == 0
            {
                return None;
            }
            sys::enif_map_iterator_next(env, &raw mut self.raw);
        }
        Some((self.map.with(key), self.map.with(value)))
    }
}

impl Drop for MapIter<'_> {
    fn drop(&mut self) {
        // SAFETY: the iterator is valid and not used again.
        unsafe { sys::enif_map_iterator_destroy(self.map.env.raw(), &raw mut self.raw) }
    }
}
