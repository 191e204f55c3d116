//! Leaves: up to 64 records in the order of their keys, in a block of exactly the size they need.
//!
//! The invariants (TREAP-1 and so on) are those of [`treap`](super::treap).

#[cfg(test)]
use super::live;
use ats_mem::record::{Record, Release};
use ats_mem::slab;
pub(super) use ats_sync::model::TREAP_LEAF_RECORDS as MOST;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// A record in a leaf.
pub(super) type Kept<R> = NonNull<Record<R>>;

/// The block of a leaf: the number of its records, and their addresses.
#[repr(C)]
pub(super) struct Block<R: Release> {
    len: usize,
    records: [Kept<R>; 0],
}

/// A leaf that lives as long as `'g`.
pub(super) struct Leaf<'g, R: Release> {
    block: NonNull<Block<R>>,
    lives: PhantomData<&'g Record<R>>,
}

impl<R: Release> Clone for Leaf<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Release> Copy for Leaf<'_, R> {}

fn block_bytes(len: usize) -> usize {
    (1 + len) * size_of::<usize>()
}

/// Makes a leaf of these records, in this order. There is at least one.
pub(super) fn make<R: Release>(parts: &[&[Kept<R>]]) -> NonNull<Block<R>> {
    let len = parts.iter().map(|part| part.len()).sum();
    debug_assert!((1..=MOST).contains(&len));
    let block = slab::allocate(block_bytes(len)).cast::<Block<R>>();
    ats_sync::count::note_bytes_written(block_bytes(len));
    // SAFETY: the block, which no other code has, is aligned, and has room for the number and for
    // `len` addresses.
    unsafe {
        block.write(Block { len, records: [] });
        let mut start = block.add(1).cast::<Kept<R>>();
        for part in parts {
            ptr::copy_nonoverlapping(part.as_ptr(), start.as_ptr(), part.len());
            start = start.add(part.len());
        }
    }
    #[cfg(test)]
    live::count::<R>(1);
    block
}

/// Frees a leaf, but not its records.
///
/// # Safety
/// The block comes from [`make`], and no other code has it.
pub(super) unsafe fn free<R: Release>(block: NonNull<Block<R>>) {
    #[cfg(test)]
    live::count::<R>(-1);
    // SAFETY: the caller says that the block comes from `make` and that no other code has it. It
    // begins with the number by which its size was computed (TREAP-1).
    unsafe { slab::free(block.cast(), block_bytes(block.as_ref().len)) };
}

impl<'g, R: Release> Leaf<'g, R> {
    /// # Safety
    /// The block comes from [`make`] and is not freed as long as `'g`.
    pub(super) unsafe fn of(block: NonNull<Block<R>>) -> Self {
        Leaf {
            block,
            lives: PhantomData,
        }
    }

    pub(super) fn block(self) -> NonNull<Block<R>> {
        self.block
    }

    pub(super) fn bytes(self) -> usize {
        block_bytes(self.len())
    }

    pub(super) fn records(self) -> &'g [Kept<R>] {
        // SAFETY: the block lives, and holds `len` addresses, which do not change (TREAP-1).
        unsafe {
            let start = self.block.add(1).cast::<Kept<R>>();
            std::slice::from_raw_parts(start.as_ptr(), self.len())
        }
    }

    pub(super) fn record(self, at: usize) -> &'g Record<R> {
        // SAFETY: the leaf was found under a guard, so its records live as long (TREAP-3).
        unsafe { self.records()[at].as_ref() }
    }

    pub(super) fn len(self) -> usize {
        // SAFETY: the block lives (promised to `of`), and does not change (TREAP-1).
        unsafe { self.block.as_ref() }.len
    }

    /// Returns the position of a key, or the position at which it would be inserted.
    pub(super) fn find(self, key: &[u8]) -> Result<usize, usize> {
        // SAFETY: the leaf was found under a guard, so its records live as long (TREAP-3).
        let key_of = |kept: &Kept<R>| unsafe { kept.as_ref() }.key();
        self.records()
            .binary_search_by(|kept| key_of(kept).cmp(key))
    }

    /// Returns the number of keys below this one.
    pub(super) fn below(self, key: &[u8]) -> usize {
        self.find(key).unwrap_or_else(|at| at)
    }
}
