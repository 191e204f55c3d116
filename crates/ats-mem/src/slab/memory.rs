//! Memory of the system: aligned chunks of 2 MiB, backed by huge pages if possible.

use std::ptr::NonNull;

pub(crate) use system::prefer_huge_pages;
pub(super) use system::{map_block, populate, purge, set_huge, unmap, unmap_block};

/// Limit of the addresses of blocks, so that 48 bits hold an address and the rest of a word is free
/// for other data.
pub const ADDRESS_LIMIT: usize = 1 << 48;

/// Size of a chunk in bytes: that of a huge page of common processors.
pub(super) const CHUNK: usize = 2 << 20;

/// Returns `true` if the whole block is below the limit.
pub(super) fn is_low(block: NonNull<u8>, bytes: usize) -> bool {
    let address = block.addr().get();
    address < ADDRESS_LIMIT && bytes <= ADDRESS_LIMIT - address
}

/// Maps an aligned chunk of zeros. Returns `None` if the system has no memory, or none below the
/// limit.
pub(super) fn map() -> Option<NonNull<u8>> {
    let chunk = system::map()?;
    if is_low(chunk, CHUNK) {
        return Some(chunk);
    }
    // SAFETY: the chunk has just been mapped, and no other code has it.
    unsafe { unmap(chunk) };
    None
}

#[cfg(target_os = "linux")]
mod system {
    use super::{CHUNK, NonNull};
    use libc::{MADV_DONTNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_POPULATE_WRITE};
    use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE};
    use libc::{PROT_READ, PROT_WRITE, madvise, mmap, munmap};
    use std::ptr;

    /// Maps an aligned chunk of zeros. Returns `None` if the system has no memory.
    pub(super) fn map() -> Option<NonNull<u8>> {
        // The kernel puts a mapping next to the last one, so after the first chunk a mapping of
        // the right size is often already aligned.
        let exact = map_bytes(CHUNK)?;
        if exact.addr().get().is_multiple_of(CHUNK) {
            set_huge(exact, true);
            return Some(exact);
        }
        unmap_bytes(exact, CHUNK);
        let wide = map_bytes(2 * CHUNK)?;
        let before = wide.addr().get().next_multiple_of(CHUNK) - wide.addr().get();
        // SAFETY: `before` is less than `CHUNK`, so chunk and rest are inside the mapping.
        let (chunk, after) = unsafe { (wide.add(before), wide.add(before + CHUNK)) };
        unmap_bytes(wide, before);
        unmap_bytes(after, CHUNK - before);
        set_huge(chunk, true);
        Some(chunk)
    }

    /// Unmaps a chunk.
    ///
    /// # Safety
    /// `chunk` must come from [`map`] and must not be used afterwards.
    pub(in super::super) unsafe fn unmap(chunk: NonNull<u8>) {
        unmap_bytes(chunk, CHUNK);
    }

    /// Returns the memory of a part of a chunk to the system; the part stays usable but loses its
    /// content. Returns `true` on success.
    ///
    /// # Safety
    /// The part must be within a chunk from [`map`], and its content must not be needed.
    pub(in super::super) unsafe fn purge(start: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: the caller promises that the range is within a chunk of ours and that its content
        // is not needed.
        unsafe { madvise(start.as_ptr().cast(), bytes, MADV_DONTNEED) == 0 }
    }

    /// Has the system back a chunk with memory now, if it supports that (Linux 5.14).
    pub(in super::super) fn populate(chunk: NonNull<u8>) {
        // SAFETY: the chunk is a mapping of our own, whose content this does not change.
        unsafe { madvise(chunk.as_ptr().cast(), CHUNK, MADV_POPULATE_WRITE) };
    }

    /// Maps memory for one block, if there is memory below the limit.
    pub(in super::super) fn map_block(bytes: usize) -> Option<NonNull<u8>> {
        let block = map_bytes(bytes)?;
        if super::is_low(block, bytes) {
            return Some(block);
        }
        unmap_bytes(block, bytes);
        None
    }

    /// Unmaps a block.
    ///
    /// # Safety
    /// The block must come from [`map_block`] with the same size and must not be used afterwards.
    pub(in super::super) unsafe fn unmap_block(block: NonNull<u8>, bytes: usize) {
        unmap_bytes(block, bytes);
    }

    fn map_bytes(bytes: usize) -> Option<NonNull<u8>> {
        let protection = PROT_READ | PROT_WRITE;
        let flags = MAP_PRIVATE | MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping at an address chosen by the kernel affects no other
        // memory.
        let start = unsafe { mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == MAP_FAILED {
            return None;
        }
        NonNull::new(start.cast())
    }

    /// Unmaps whole pages that were mapped here and are not in use.
    fn unmap_bytes(start: NonNull<u8>, bytes: usize) {
        if bytes > 0 {
            // SAFETY: callers pass whole pages that were mapped here and are not in use. A failure
            // (the kernel cannot split another mapping) leaks the part.
            unsafe { munmap(start.as_ptr().cast(), bytes) };
        }
    }

    /// Asks the system to back the whole huge pages of a large allocation by huge pages, as for
    /// chunks.
    pub(crate) fn prefer_huge_pages(start: *mut u8, bytes: usize) {
        let before = start.addr().next_multiple_of(CHUNK) - start.addr();
        let whole = bytes.saturating_sub(before) / CHUNK * CHUNK;
        if whole > 0 {
            // SAFETY: the range is within an allocation of the caller, and the kind of its pages
            // makes no difference to the code that uses it.
            unsafe { madvise(start.wrapping_add(before).cast(), whole, MADV_HUGEPAGE) };
        }
    }

    /// Sets whether a chunk should be a huge page. If so, the system may make it one at any time,
    /// even if parts were [purged](purge): these take memory again then.
    pub(in super::super) fn set_huge(chunk: NonNull<u8>, huge: bool) {
        let advice = if huge { MADV_HUGEPAGE } else { MADV_NOHUGEPAGE };
        // SAFETY: advice about a mapping of our own. A kernel without huge pages refuses, and the
        // chunk has small pages then.
        unsafe { madvise(chunk.as_ptr().cast(), CHUNK, advice) };
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{CHUNK, NonNull};
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    const LAYOUT: Layout = match Layout::from_size_align(CHUNK, CHUNK) {
        Ok(layout) => layout,
        Err(_) => panic!("the size of a chunk is a power of two"),
    };

    /// Allocates an aligned chunk of zeros. Returns `None` if the system has no memory.
    pub(super) fn map() -> Option<NonNull<u8>> {
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { alloc_zeroed(LAYOUT) })
    }

    /// Frees a chunk.
    ///
    /// # Safety
    /// `chunk` must come from [`map`] and must not be used afterwards.
    pub(in super::super) unsafe fn unmap(chunk: NonNull<u8>) {
        // SAFETY: the caller promises that the chunk comes from `map`, which allocates with this
        // layout, and that it is not used afterwards.
        unsafe { dealloc(chunk.as_ptr(), LAYOUT) };
    }

    /// Does nothing: no portable function does this.
    pub(in super::super) fn populate(_chunk: NonNull<u8>) {}

    /// Returns `None`: no portable function maps memory at certain addresses.
    pub(in super::super) fn map_block(_bytes: usize) -> Option<NonNull<u8>> {
        None
    }

    /// Does nothing, because [`map_block`] returns no block.
    ///
    /// # Safety
    /// No requirement here; on Linux the block must come from `map_block`.
    pub(in super::super) unsafe fn unmap_block(_block: NonNull<u8>, _bytes: usize) {}

    /// Does nothing: no portable function requests huge pages.
    pub(crate) fn prefer_huge_pages(_start: *mut u8, _bytes: usize) {}

    /// Does nothing, like [`prefer_huge_pages`].
    pub(in super::super) fn set_huge(_chunk: NonNull<u8>, _huge: bool) {}

    /// Returns `false`: no portable function returns a part of an allocation.
    ///
    /// # Safety
    /// No requirement here; on Linux the content must not be needed.
    pub(in super::super) unsafe fn purge(_start: NonNull<u8>, _bytes: usize) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_means_the_whole_block() {
        let at = |address| NonNull::new(std::ptr::without_provenance_mut(address)).unwrap();
        assert!(is_low(at(ADDRESS_LIMIT - 16), 16));
        assert!(!is_low(at(ADDRESS_LIMIT - 16), 17));
        assert!(!is_low(at(1 << 60 | 1 << 20), 16));
        assert!(!is_low(at(usize::MAX - 15), 16));
    }
}
