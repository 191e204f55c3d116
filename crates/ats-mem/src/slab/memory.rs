//! Memory of the system: aligned chunks of 2 MiB, backed by huge pages where there are any.

use std::ptr::NonNull;

pub(crate) use system::prefer_huge_pages;
pub(super) use system::{map_block, populate, purge, set_huge, unmap, unmap_block};

/// Blocks lie below this address, so that 48 bits tell where one is and the rest of a word is free
/// for other things.
pub const ADDRESS_LIMIT: usize = 1 << 48;

/// Bytes of a chunk: a huge page of the common processors.
pub(super) const CHUNK: usize = 2 << 20;

/// Returns `true` if the whole block lies below the limit.
pub(super) fn is_low(block: NonNull<u8>, bytes: usize) -> bool {
    let address = block.addr().get();
    address < ADDRESS_LIMIT && bytes <= ADDRESS_LIMIT - address
}

/// An aligned chunk of zeros, or nothing if the system has no memory, or none at addresses that
/// blocks may have.
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

    /// An aligned chunk of zeros, or nothing if the system has no memory.
    pub(super) fn map() -> Option<NonNull<u8>> {
        // The kernel places a mapping next to the last one, so after the first chunk a mapping of
        // the right size is often aligned by itself.
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

    /// Gives a chunk back.
    ///
    /// # Safety
    /// `chunk` comes from [`map`] and is not used afterwards.
    pub(in super::super) unsafe fn unmap(chunk: NonNull<u8>) {
        unmap_bytes(chunk, CHUNK);
    }

    /// Gives back the memory of a part of a chunk, which stays usable but loses its content. Says
    /// whether that was possible.
    ///
    /// # Safety
    /// The part lies within a chunk from [`map`], and its content is not needed.
    pub(in super::super) unsafe fn purge(start: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: the caller says that the range lies within a chunk of ours and that its content
        // is not needed.
        unsafe { madvise(start.as_ptr().cast(), bytes, MADV_DONTNEED) == 0 }
    }

    /// Has the system find the memory of a chunk now, where it can be asked to (Linux 5.14).
    pub(in super::super) fn populate(chunk: NonNull<u8>) {
        // SAFETY: the chunk is a mapping of our own, whose content this does not change.
        unsafe { madvise(chunk.as_ptr().cast(), CHUNK, MADV_POPULATE_WRITE) };
    }

    /// A mapping for one block, if there is memory at addresses that blocks may have.
    pub(in super::super) fn map_block(bytes: usize) -> Option<NonNull<u8>> {
        let block = map_bytes(bytes)?;
        if super::is_low(block, bytes) {
            return Some(block);
        }
        unmap_bytes(block, bytes);
        None
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// It comes from [`map_block`] with the same size and is not used afterwards.
    pub(in super::super) unsafe fn unmap_block(block: NonNull<u8>, bytes: usize) {
        unmap_bytes(block, bytes);
    }

    fn map_bytes(bytes: usize) -> Option<NonNull<u8>> {
        let protection = PROT_READ | PROT_WRITE;
        let flags = MAP_PRIVATE | MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping at a place of the kernel's choice touches nothing.
        let start = unsafe { mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == MAP_FAILED {
            return None;
        }
        NonNull::new(start.cast())
    }

    /// Only ever called with whole pages that were mapped here and are not in use.
    fn unmap_bytes(start: NonNull<u8>, bytes: usize) {
        if bytes > 0 {
            // SAFETY: these are whole pages that were mapped here and are not in use. Failure (the
            // kernel cannot split one more mapping) leaks the part.
            unsafe { munmap(start.as_ptr().cast(), bytes) };
        }
    }

    /// Asks the system to back a large allocation by huge pages where it has whole ones, for the
    /// same reason as chunks have them.
    pub(crate) fn prefer_huge_pages(start: *mut u8, bytes: usize) {
        let before = start.addr().next_multiple_of(CHUNK) - start.addr();
        let whole = bytes.saturating_sub(before) / CHUNK * CHUNK;
        if whole > 0 {
            // SAFETY: the range lies within an allocation of the caller; how its pages are backed
            // changes nothing for the code that uses it.
            unsafe { madvise(start.wrapping_add(before).cast(), whole, MADV_HUGEPAGE) };
        }
    }

    /// Says whether a chunk should be a huge page. If so, the system may make one of it at any
    /// time, also of a chunk of which parts were [purged](purge): these take memory again then.
    pub(in super::super) fn set_huge(chunk: NonNull<u8>, huge: bool) {
        let advice = if huge { MADV_HUGEPAGE } else { MADV_NOHUGEPAGE };
        // SAFETY: advice about a mapping of our own. A kernel without huge pages refuses, and the
        // chunk has small ones then.
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

    /// An aligned chunk of zeros, or nothing if the system has no memory.
    pub(super) fn map() -> Option<NonNull<u8>> {
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { alloc_zeroed(LAYOUT) })
    }

    /// Gives a chunk back.
    ///
    /// # Safety
    /// `chunk` comes from [`map`] and is not used afterwards.
    pub(in super::super) unsafe fn unmap(chunk: NonNull<u8>) {
        // SAFETY: the caller says that the chunk comes from `map`, which allocates with this
        // layout, and is not used afterwards.
        unsafe { dealloc(chunk.as_ptr(), LAYOUT) };
    }

    /// There is no portable way to ask for that.
    pub(in super::super) fn populate(_chunk: NonNull<u8>) {}

    /// There is no portable way to ask for memory at certain addresses.
    pub(in super::super) fn map_block(_bytes: usize) -> Option<NonNull<u8>> {
        None
    }

    /// Nothing comes from [`map_block`].
    ///
    /// # Safety
    /// None needed here; the other systems ask for a block of theirs.
    pub(in super::super) unsafe fn unmap_block(_block: NonNull<u8>, _bytes: usize) {}

    /// There is no portable way to ask for huge pages.
    pub(crate) fn prefer_huge_pages(_start: *mut u8, _bytes: usize) {}

    /// Does the same.
    pub(in super::super) fn set_huge(_chunk: NonNull<u8>, _huge: bool) {}

    /// There is no portable way to give back a part of an allocation.
    ///
    /// # Safety
    /// None needed here; for the other systems the content must not be needed.
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
