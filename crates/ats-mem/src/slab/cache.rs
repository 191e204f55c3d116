//! Caches of free blocks, one per thread.

use super::class::{CACHE_BLOCKS, CLASSES, Class};
use super::pool::SLAB;
use crate::prefetch::prefetch_to_write;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::{Cell, OnceCell};
use std::ptr::NonNull;

thread_local! {
    /// The cache of this thread, if it has one. Constant and without destructor, so that reading it
    /// takes one or two instructions.
    static CACHE: Cell<Option<NonNull<Cache>>> = const { Cell::new(None) };

    /// Empties the cache when the thread exits. Accessed only when a cache is made.
    static LEAVING: OnceCell<Leaving> = const { OnceCell::new() };
}

/// A stack of free blocks of each class. All zeros are empty stacks.
struct Cache {
    lens: [Cell<u16>; CLASSES],
    blocks: [[Cell<*mut u8>; CACHE_BLOCKS]; CLASSES],
}

struct Leaving(NonNull<Cache>);

impl Drop for Leaving {
    fn drop(&mut self) {
        // Blocks that destructors of other thread-locals free later go to the pools directly.
        CACHE.set(None);
        // SAFETY: `own_cache` allocated the cache with this layout, and no code can find it any
        // more (SLAB-3).
        unsafe {
            self.0.as_ref().flush_all();
            dealloc(self.0.as_ptr().cast(), Layout::new::<Cache>());
        }
    }
}

/// Allocates a block of `class`.
#[inline]
pub(super) fn take(class: Class) -> NonNull<u8> {
    let block = match own().and_then(|cache| cache.pop(class)) {
        Some(block) => block,
        None => take_from_pool(class),
    };
    #[cfg(debug_assertions)]
    // SAFETY: the block is ours, so its chunk is live (SLAB-5).
    unsafe {
        super::chunk::Chunk::mark(block, true);
    }
    block
}

/// Takes back a block.
///
/// # Safety
/// The block must come from [`take`] with the same class and must not be used afterwards.
#[inline]
pub(super) unsafe fn put(class: Class, block: NonNull<u8>) {
    #[cfg(debug_assertions)]
    // SAFETY: the caller gives the block up, so it is ours and its chunk is live (SLAB-5). It is
    // overwritten so that code that still uses it fails early.
    unsafe {
        super::chunk::Chunk::mark(block, false);
        block.write_bytes(0xdf, class.size());
    }
    if !own().is_some_and(|cache| cache.push(class, block)) {
        // SAFETY: the caller promises that the block comes from `take` with the same class and is
        // not used afterwards (SLAB-1); no cache has it, since the push has failed.
        unsafe { put_to_pool(class, block) };
    }
}

/// Empties the cache of the calling thread.
pub(super) fn flush() {
    if let Some(cache) = own() {
        cache.flush_all();
    }
}

#[inline]
fn own<'a>() -> Option<&'a Cache> {
    // SAFETY: the cache lives until the thread exits, which first resets this pointer. No caller
    // keeps the reference beyond a call of this module, and no other thread has one (SLAB-3).
    CACHE.get().map(|cache| unsafe { cache.as_ref() })
}

#[cold]
#[inline(never)]
fn take_from_pool(class: Class) -> NonNull<u8> {
    let block = match own_cache() {
        Some(cache) => cache.refill(class),
        None => {
            let mut block = [std::ptr::null_mut()];
            SLAB.take(class, &mut block);
            block[0]
        }
    };
    // SAFETY: blocks of a slab are not at address 0.
    unsafe { NonNull::new_unchecked(block) }
}

/// # Safety
/// The same as for [`put`].
#[cold]
#[inline(never)]
unsafe fn put_to_pool(class: Class, block: NonNull<u8>) {
    match own_cache() {
        Some(cache) => {
            cache.spill(class);
            let pushed = cache.push(class, block);
            debug_assert!(pushed, "a spilled stack has room");
        }
        // SAFETY: the caller promises that the block comes from `take` with the same class and is
        // not used afterwards (SLAB-1).
        None => unsafe { SLAB.put(class, &[block.as_ptr()]) },
    }
}

/// Returns the cache of this thread, and makes it on first use; `None` if the thread is exiting and
/// has given it up.
fn own_cache<'a>() -> Option<&'a Cache> {
    if let Some(cache) = own() {
        return Some(cache);
    }
    LEAVING
        .try_with(|leaving| {
            let leaving = leaving.get_or_init(|| Leaving(Cache::make()));
            CACHE.set(Some(leaving.0));
        })
        .ok()?;
    own()
}

impl Cache {
    fn make() -> NonNull<Cache> {
        let layout = Layout::new::<Cache>();
        // SAFETY: the layout is not empty; zeros are a valid cache.
        let cache = unsafe { alloc_zeroed(layout) }.cast();
        NonNull::new(cache).unwrap_or_else(|| handle_alloc_error(layout))
    }

    #[inline]
    fn pop(&self, class: Class) -> Option<NonNull<u8>> {
        let len = &self.lens[class.index()];
        let top = len.get().checked_sub(1)?;
        len.set(top);
        let blocks = &self.blocks[class.index()];
        if let Some(next) = top.checked_sub(1) {
            // The block was used long ago, and its next user will write to it, maybe shortly before
            // an instruction that waits for all stores.
            prefetch_to_write(blocks[usize::from(next)].get());
        }
        NonNull::new(blocks[usize::from(top)].get())
    }

    /// Pushes a block. Returns `false` if the stack is full.
    #[inline]
    fn push(&self, class: Class, block: NonNull<u8>) -> bool {
        let len = &self.lens[class.index()];
        let top = usize::from(len.get());
        let room = top < class.cache_limit();
        if room {
            self.blocks[class.index()][top].set(block.as_ptr());
            len.set(top as u16 + 1);
        }
        room
    }

    /// Half fills the empty stack, and takes one more block.
    fn refill(&self, class: Class) -> *mut u8 {
        let mut batch = [std::ptr::null_mut(); CACHE_BLOCKS / 2 + 1];
        let batch = &mut batch[..class.cache_limit() / 2 + 1];
        SLAB.take(class, batch);
        // The lowest address is on top, so that blocks are allocated in address order.
        for (slot, block) in self.blocks[class.index()]
            .iter()
            .zip(batch[1..].iter().rev())
        {
            slot.set(*block);
        }
        self.lens[class.index()].set(batch.len() as u16 - 1);
        batch[0]
    }

    /// Half empties the full stack. The blocks freed last stay, because they are cached.
    fn spill(&self, class: Class) {
        let half = class.cache_limit() / 2;
        if usize::from(self.lens[class.index()].get()) < class.cache_limit() {
            return;
        }
        self.give_back(class, half);
        let stack = &self.blocks[class.index()];
        for (to, from) in stack.iter().zip(&stack[half..class.cache_limit()]) {
            to.set(from.get());
        }
        self.lens[class.index()].set((class.cache_limit() - half) as u16);
    }

    fn flush_all(&self) {
        for class in (0..CLASSES).map(Class::new) {
            let len = self.lens[class.index()].replace(0);
            if len > 0 {
                self.give_back(class, usize::from(len));
            }
        }
    }

    /// Gives the lowest `count` blocks of a stack to the pool; the caller removes them from the
    /// stack.
    fn give_back(&self, class: Class, count: usize) {
        let mut batch = [std::ptr::null_mut(); CACHE_BLOCKS];
        for (block, slot) in batch.iter_mut().zip(&self.blocks[class.index()][..count]) {
            *block = slot.get();
        }
        // SAFETY: by SLAB-1 the blocks in the cache are blocks of this class that are not in use.
        unsafe { SLAB.put(class, &batch[..count]) };
    }
}
