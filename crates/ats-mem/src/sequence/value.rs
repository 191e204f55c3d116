//! Values: words that may own resources.

use super::block::{BlockHeader, HEAD, Link};
use crate::record::Release;
use crate::slab;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// Flag in the shape of a value that owns resources.
const OWNS: u32 = 1;
const WORD: usize = size_of::<u64>();

impl Link {
    /// Returns the value behind the link.
    ///
    /// # Safety
    /// The block must be a value, and live during `'a` (SEQUENCE-1).
    #[inline(always)]
    pub(super) unsafe fn value<'a>(self) -> Value<'a> {
        Value {
            block: self.block(),
            live: PhantomData,
        }
    }
}

/// A live value.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    block: NonNull<u8>,
    live: PhantomData<&'a [u64]>,
}

impl<'a> Value<'a> {
    /// Creates a value with one reference.
    ///
    /// # Panics
    /// Panics if the value has 2^31 words or more.
    pub(super) fn make(words: &[u64], owns: bool) -> Link {
        let len = u32::try_from(words.len()).ok();
        let len = len
            .filter(|len| *len < 1 << 31)
            .expect("a value is shorter than 2^31 words");
        let block = slab::allocate(HEAD + words.len() * WORD);
        // SAFETY: the block is new, and has room for the head and the words.
        unsafe {
            block
                .cast()
                .write(BlockHeader::new(len << 1 | u32::from(owns)));
            let start = block.add(HEAD).cast();
            ptr::copy_nonoverlapping(words.as_ptr(), start.as_ptr(), words.len());
        }
        Link::draft(block)
    }

    #[inline(always)]
    fn shape(self) -> u32 {
        // SAFETY: every block begins with a head, and this one lives (SEQUENCE-1).
        unsafe { self.block.cast::<BlockHeader>().as_ref() }.shape()
    }

    /// Returns `true` if the words own resources.
    pub(super) fn owns(self) -> bool {
        self.shape() & OWNS != 0
    }

    #[inline(always)]
    pub(super) fn words(self) -> &'a [u64] {
        let len = (self.shape() >> 1) as usize;
        // SAFETY: the head is followed by `len` words, which never change (SEQUENCE-2).
        unsafe { std::slice::from_raw_parts(self.block.add(HEAD).cast().as_ptr(), len) }
    }

    /// Returns the bytes of memory of this value.
    pub(super) fn bytes(self) -> usize {
        slab::block_size(self.block_bytes())
    }

    /// Returns the approximate number of bytes that the owned resources keep allocated.
    pub(super) fn owned_bytes<R: Release>(self) -> usize {
        if !self.owns() {
            return 0;
        }
        let words = self.words();
        // SAFETY: the words are those of an owning value, and values of sequences do not change
        // (SEQUENCE-2).
        unsafe { R::kept_bytes(words.as_ptr(), words.len()) }
    }

    fn block_bytes(self) -> usize {
        HEAD + (self.shape() >> 1) as usize * WORD
    }

    /// Frees the block without the resources of its words.
    ///
    /// # Safety
    /// The value must not be used afterwards.
    pub(super) unsafe fn free(self) {
        // SAFETY: the block was allocated in `make` for this many words.
        unsafe { slab::free(self.block, self.block_bytes()) };
    }
}
