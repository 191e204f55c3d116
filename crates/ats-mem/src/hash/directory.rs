//! The directory of buckets: linear hashing over segments of doubling size.
//!
//! With `n` buckets active and `2^k <= n < 2^(k+1)`, a hash belongs to the bucket with the number
//! in its low `k + 1` bits if there is one, else to that in its low `k` bits. Bucket `n`, when it
//! becomes active, takes records only from bucket `n - 2^k`. Segment 0 holds the first eight
//! buckets, each further segment as many as all before it, so a bucket never moves and finding it
//! takes two loads.

use super::bucket::Bucket;
use super::fingerprints::FingerprintsCell;
use super::line::Line;
use crate::prefetch::prefetch;
use crate::record::Release;
use crate::slab;
use ats_sync::Guard;
use ats_sync::model::{
    FAR_SEGMENTS as FAR, FIRST_BUCKETS_BITS as FIRST_BITS, LEAST_APPROACHED_BUCKETS,
    NEAR_SEGMENTS as NEAR,
};
use ats_sync::shim::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::mem::size_of;
use std::ptr::{self, NonNull};

/// Number of permanent buckets.
pub(super) const MIN_BUCKETS: usize = 1 << FIRST_BITS;

type Segments<R, const N: usize> = [AtomicPtr<Line<R>>; N];

/// Returns the bucket of a hash when `active` buckets are active.
#[inline]
pub(super) fn bucket_of(hash: u64, active: usize) -> usize {
    let high = high_bit(active);
    let bucket = hash as usize & (2 * high - 1);
    if bucket < active {
        bucket
    } else {
        bucket & (high - 1)
    }
}

/// Returns the number of low bits of a hash that select `bucket` when `active` buckets are active.
pub(super) fn depth_of(bucket: usize, active: usize) -> u32 {
    let high = high_bit(active);
    let split = bucket >= high || bucket + high < active;
    high.ilog2() + u32::from(split)
}

/// Returns the bucket from which bucket `partner` takes its records when it becomes active.
pub(super) fn parent_of(partner: usize) -> usize {
    partner - high_bit(partner)
}

#[inline]
fn high_bit(number: usize) -> usize {
    1 << number.ilog2()
}

/// The layout of the table at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct View {
    active: usize,
    moves: usize,
}

impl View {
    /// The view of no table: none is without buckets.
    pub(super) const NONE: Self = View {
        active: 0,
        moves: 0,
    };

    #[inline]
    pub(super) fn bucket(self, hash: u64) -> usize {
        bucket_of(hash, self.active)
    }

    /// Returns `true` if the whole table is likely in the cache of a core.
    #[inline]
    pub(super) fn is_cached(self) -> bool {
        self.active < LEAST_APPROACHED_BUCKETS
    }

    pub(super) fn depth(self, bucket: usize) -> u32 {
        depth_of(bucket, self.active)
    }
}

/// The segments and the number of active buckets.
///
/// Readers load this on every access, and it changes only when the table grows or shrinks: it must
/// not share a cache line with data that change more often.
pub(super) struct Directory<R: Release> {
    active: AtomicUsize,
    /// Number of times that records were moved to a slot that a reader may have passed already.
    moves: AtomicUsize,
    near: Segments<R, NEAR>,
    /// The addresses of further segments, allocated with the first of them and freed with the
    /// directory.
    far: AtomicPtr<Segments<R, FAR>>,
}

fn no_segments<R: Release, const N: usize>() -> Segments<R, N> {
    std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()))
}

impl<R: Release> Directory<R> {
    pub(super) fn new() -> Self {
        let directory = Self {
            active: AtomicUsize::new(MIN_BUCKETS),
            moves: AtomicUsize::new(0),
            near: no_segments(),
            far: AtomicPtr::new(ptr::null_mut()),
        };
        directory.near[0].store(allocate(0), Ordering::Relaxed);
        directory
    }

    /// Returns the cell with the address of a segment, if the segment number is valid and the cell
    /// exists.
    #[inline]
    fn segment(&self, segment: usize) -> Option<&AtomicPtr<Line<R>>> {
        match self.near.get(segment) {
            Some(near) => Some(near),
            None => self.far_segments()?.get(segment - NEAR),
        }
    }

    #[inline]
    fn far_segments(&self) -> Option<&Segments<R, FAR>> {
        // SAFETY: `provide` made the box, which is only freed with the directory.
        unsafe { self.far.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the number of active buckets. Exact for the holder of the resize lock.
    #[inline]
    pub(super) fn active(&self) -> usize {
        self.active.load(Ordering::Acquire)
    }

    /// Returns the view that a reader takes before it searches.
    #[inline]
    pub(super) fn view(&self) -> View {
        let moves = self.moves.load(Ordering::Acquire);
        View {
            moves,
            active: self.active(),
        }
    }

    /// Returns `true` if a reader that searched bucket `bucket` of `view` for `hash` in vain has
    /// searched the only bucket where the record could have been.
    #[inline]
    pub(super) fn confirms(&self, view: View, hash: u64, bucket: usize) -> bool {
        bucket_of(hash, self.active()) == bucket && self.is_unmoved(view)
    }

    /// Returns `true` if the layout has not changed for `bucket` and the records in it.
    pub(super) fn confirms_bucket(&self, view: View, bucket: usize) -> bool {
        let active = self.active();
        bucket < active && depth_of(bucket, active) == view.depth(bucket) && self.is_unmoved(view)
    }

    /// Returns `true` if there are as many buckets as in `view`, and there were not fewer in
    /// between, so that no record has moved.
    #[inline]
    pub(super) fn is_as(&self, view: View) -> bool {
        // A join is counted before it changes the number of buckets, which is read first.
        self.active() == view.active && self.is_unmoved(view)
    }

    #[inline]
    fn is_unmoved(&self, view: View) -> bool {
        self.moves.load(Ordering::Acquire) == view.moves
    }

    /// Returns a bucket; `None` if its segment was freed, which means that the view it was computed
    /// from is outdated.
    #[inline]
    pub(super) fn bucket<'g>(&'g self, bucket: usize, _guard: &'g Guard) -> Option<Bucket<'g, R>> {
        let (fingerprints, line) = self.addresses(bucket)?;
        // SAFETY: a segment is retired only after its removal from the directory, so one found
        // there under a guard lives as long as the guard (HASH-5).
        unsafe { Some(Bucket::new(&*fingerprints, &*line)) }
    }

    /// Prefetches the fingerprints and the first line of a bucket. A hint, for any thread.
    #[inline]
    pub(super) fn prefetch(&self, bucket: usize) {
        if let Some((fingerprints, line)) = self.addresses(bucket) {
            prefetch::<1, _>(fingerprints);
            prefetch::<1, _>(line);
        }
    }

    /// Returns the addresses of a bucket's fingerprints and of its first line, unless its segment
    /// was freed: a segment holds lines for all its buckets, and before them as many words of
    /// fingerprints.
    #[inline]
    fn addresses(&self, bucket: usize) -> Option<(*const FingerprintsCell, *const Line<R>)> {
        let (segment, offset) = locate(bucket);
        let lines = self.segment(segment)?.load(Ordering::Acquire).cast_const();
        let fingerprints = lines.cast::<FingerprintsCell>().wrapping_sub(offset + 1);
        (!lines.is_null()).then_some((fingerprints, lines.wrapping_add(offset)))
    }

    /// Announces that records are being moved. Must be called before the originals are cleared.
    pub(super) fn announce_move(&self) {
        self.moves.fetch_add(1, Ordering::Release);
    }

    /// Changes the number of active buckets. The caller holds the resize lock.
    pub(super) fn set_active(&self, active: usize) {
        self.active.store(active, Ordering::Release);
    }

    /// Makes sure that `bucket` has memory. The caller holds the resize lock.
    pub(super) fn provide(&self, bucket: usize) {
        let (segment, _) = locate(bucket);
        if segment >= NEAR && self.far_segments().is_none() {
            let far = Box::into_raw(Box::new(no_segments()));
            self.far.store(far, Ordering::Release);
        }
        let pointer = self.segment(segment).expect("there is room now");
        if pointer.load(Ordering::Relaxed).is_null() {
            pointer.store(allocate(segment), Ordering::Release);
        }
    }

    /// Frees the last segment if it has become useless by some margin, so that a table whose size
    /// oscillates around a power of two does not allocate all the time. The caller holds the resize
    /// lock.
    pub(super) fn trim(&self, guard: &Guard) {
        let active = self.active();
        let (last, _) = locate(active - 1);
        let unused = last + 1;
        if active > segment_start(unused) / 4 * 3 {
            return;
        }
        let Some(pointer) = self.segment(unused) else {
            return;
        };
        let lines = pointer.swap(ptr::null_mut(), Ordering::AcqRel);
        if lines.is_null() {
            return;
        }
        let bytes = segment_bytes(unused);
        let garbage = Box::new(Segment(unused, lines));
        // SAFETY: the segment was just taken out of the directory, and none of its buckets is
        // active (HASH-5).
        unsafe { guard.retire(Box::into_raw(garbage).cast(), bytes, free_segment::<R>) };
    }

    /// Returns the bytes of the active buckets. Segments have room for more, which the system backs
    /// with memory on first access.
    pub(super) fn bytes(&self) -> usize {
        let far = self.far_segments().map_or(0, size_of_val);
        self.active() * (size_of::<Line<R>>() + size_of::<FingerprintsCell>()) + far
    }
}

impl<R: Release> Drop for Directory<R> {
    fn drop(&mut self) {
        let far = self.far_segments().into_iter().flatten();
        for (segment, lines) in self.near.iter().chain(far).enumerate() {
            let lines = lines.load(Ordering::Relaxed);
            if !lines.is_null() {
                // SAFETY: `allocate` made the segment, and no other thread has the directory.
                unsafe { free(segment, lines) };
            }
        }
        let far = self.far.load(Ordering::Relaxed);
        if !far.is_null() {
            // SAFETY: the pointer is that of a box, and no other thread has the directory.
            drop(unsafe { Box::from_raw(far) });
        }
    }
}

/// A retired segment.
struct Segment<R: Release>(usize, *mut Line<R>);

unsafe fn free_segment<R: Release>(garbage: *mut u8) {
    // SAFETY: `trim` retired this box (HASH-5).
    let segment = unsafe { Box::from_raw(garbage.cast::<Segment<R>>()) };
    // SAFETY: `trim` took the segment out of the directory, and the grace period is over (HASH-5).
    unsafe { free(segment.0, segment.1) };
}

/// Returns the segment of a bucket, and the index of the bucket in it.
#[inline]
fn locate(bucket: usize) -> (usize, usize) {
    let log = (bucket | (MIN_BUCKETS - 1)).ilog2();
    let segment = (log + 1 - FIRST_BITS) as usize;
    (segment, bucket - segment_start(segment))
}

#[inline]
fn segment_start(segment: usize) -> usize {
    (MIN_BUCKETS << segment >> 1) & !(MIN_BUCKETS - 1)
}

fn segment_len(segment: usize) -> usize {
    segment_start(segment).max(MIN_BUCKETS)
}

/// ```text
/// address | ... | fingerprints, those of the first bucket last | lines, those of the first bucket first
/// ```
///
/// One line is added so that lines can be aligned: the allocator zeroes memory with a large
/// alignment by hand, which would touch all of a large segment at once; with the usual alignment,
/// the operating system delivers zeroed pages when they are first used.
fn segment_layout(segment: usize) -> Layout {
    let lines = (segment_len(segment) + 1) * LINE;
    Layout::from_size_align(lines + prints_bytes(segment), size_of::<usize>())
        .expect("a segment fits the address space")
}

const LINE: usize = size_of::<Line<crate::record::Plain>>();

fn prints_bytes(segment: usize) -> usize {
    segment_len(segment) * size_of::<FingerprintsCell>()
}

/// Returns `true` if a segment is a block of the slab: only the first one is, which suffices for
/// most tables. Under the model checker, whose atomics are larger, none is.
fn is_in_slab(segment: usize) -> bool {
    segment == 0 && !cfg!(loom)
}

/// Size in bytes of the first segment's block: whole lines for its fingerprints, then its lines.
const SLAB_BYTES: usize =
    (MIN_BUCKETS * size_of::<FingerprintsCell>()).next_multiple_of(LINE) + MIN_BUCKETS * LINE;

fn segment_bytes(segment: usize) -> usize {
    segment_layout(segment).size()
}

/// Allocates a segment of empty buckets. The word before it holds the address of the allocation.
fn allocate<R: Release>(segment: usize) -> *mut Line<R> {
    if is_in_slab(segment) {
        let block = slab::allocate(SLAB_BYTES).as_ptr();
        // SAFETY: the block has this many bytes; like the block itself, the lines begin at a
        // multiple of a line.
        return unsafe {
            block.write_bytes(0, SLAB_BYTES);
            block.add(SLAB_BYTES - MIN_BUCKETS * LINE).cast()
        };
    }
    let layout = segment_layout(segment);
    // SAFETY: the layout is not empty.
    let raw = unsafe { alloc_zeroed(layout) };
    if raw.is_null() {
        handle_alloc_error(layout);
    }
    crate::slab::prefer_huge_pages(raw, layout.size());
    // The allocation is aligned to a word, so before the fingerprints there is room for at least
    // one word, and at most for a whole line.
    let unaligned = raw.addr() + size_of::<usize>() + prints_bytes(segment);
    let before = unaligned.next_multiple_of(align_of::<Line<R>>()) - raw.addr();
    // SAFETY: before the lines are at most the fingerprints and the additional line, and at least
    // the fingerprints and one aligned word.
    unsafe {
        let lines = raw.add(before);
        address_of(segment, lines).write(raw);
        #[cfg(loom)]
        fill(segment, lines.cast::<Line<R>>());
        lines.cast()
    }
}

/// Returns the cell with the address of the allocation.
///
/// # Safety
/// `lines` must come from [`allocate`] for this segment.
unsafe fn address_of(segment: usize, lines: *mut u8) -> *mut *mut u8 {
    // SAFETY: `allocate` left room for it.
    unsafe { lines.sub(prints_bytes(segment)).cast::<*mut u8>().sub(1) }
}

/// Initializes the atomics of the model checker one by one.
///
/// # Safety
/// `lines` must come from [`allocate`] for this segment, and no other thread may have it yet.
#[cfg(loom)]
unsafe fn fill<R: Release>(segment: usize, lines: *mut Line<R>) {
    for offset in 0..segment_len(segment) {
        // SAFETY: there is room for a line and for fingerprints for each bucket.
        unsafe {
            lines.add(offset).write(Line::new());
            let fingerprints = lines.cast::<FingerprintsCell>().sub(offset + 1);
            fingerprints.write(FingerprintsCell::new());
        }
    }
}

/// # Safety
/// `lines` must come from [`allocate`] for the same segment and must not be used any more.
unsafe fn free<R: Release>(segment: usize, lines: *mut Line<R>) {
    if is_in_slab(segment) {
        // SAFETY: `allocate` took a block of this size, whose last bytes are the lines.
        return unsafe {
            let block = lines.cast::<u8>().sub(SLAB_BYTES - MIN_BUCKETS * LINE);
            slab::free(NonNull::new_unchecked(block), SLAB_BYTES);
        };
    }
    // SAFETY: `allocate` wrote the address there, and used this layout.
    unsafe {
        dealloc(
            address_of(segment, lines.cast()).read(),
            segment_layout(segment),
        );
    };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Plain;

    #[test]
    fn each_bucket_has_its_own_index_in_a_segment() {
        let mut expected = (0, 0);
        for bucket in 0..5000 {
            if expected.1 == segment_len(expected.0) {
                expected = (expected.0 + 1, 0);
            }
            assert_eq!(locate(bucket), expected);
            expected.1 += 1;
        }
    }

    #[test]
    fn growing_moves_records_from_the_parent_only() {
        for active in MIN_BUCKETS..300 {
            for hash in 0..1024 {
                let before = bucket_of(hash, active);
                let after = bucket_of(hash, active + 1);
                assert!(before < active);
                if before != after {
                    assert_eq!((before, after), (parent_of(active), active));
                }
                let depth = depth_of(before, active);
                assert_eq!(hash as usize & ((1 << depth) - 1), before);
            }
        }
    }

    #[test]
    fn depth_counts_exactly_the_hashes_of_a_bucket() {
        for active in MIN_BUCKETS..300 {
            for bucket in 0..active {
                let hashes = (0..1024).filter(|hash| bucket_of(*hash, active) == bucket);
                assert_eq!(hashes.count(), 1024 >> depth_of(bucket, active));
            }
        }
    }

    #[test]
    fn buckets_are_aligned_and_empty() {
        for segment in 0..8 {
            let lines = allocate::<Plain>(segment);
            assert_eq!(lines.addr() % 64, 0);
            for index in 0..segment_len(segment) {
                // SAFETY: the index is below the length of the segment, which `allocate` made.
                unsafe {
                    assert!((*lines.add(index)).is_empty());
                    let fingerprints = lines.cast::<FingerprintsCell>().sub(index + 1);
                    assert_eq!((*fingerprints).load().occupied_slots().count(), 0);
                }
            }
            // SAFETY: the test has just allocated the segment, and no other code has it.
            unsafe { free(segment, lines) };
        }
    }
}
