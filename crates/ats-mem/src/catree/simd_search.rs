//! SIMD search: all heads of a node are compared with one, by the vector instructions of the
//! processor.

use ats_sync::count::atomic::{AtomicI64, Ordering::Relaxed};

/// The comparison of a node's heads, for instructions chosen at run time.
pub(super) trait Search {
    /// Returns the number of heads below `head`, in ascending heads.
    fn below<const N: usize>(heads: &[AtomicI64; N], head: i64) -> usize;

    /// Returns the heads equal to `head`, as bits: the lowest bit is that of the first. The heads
    /// are in any order.
    fn equal<const N: usize>(heads: &[AtomicI64; N], head: i64) -> u64;
}

/// The baseline for any processor: binary search without branches.
pub(super) struct Baseline;

/// The version for processors with vectors of 256 bits (AVX2). Only functions compiled for them may
/// use it, which are called only if the processor has them.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

impl Search for Baseline {
    #[inline(always)]
    fn below<const N: usize>(heads: &[AtomicI64; N], head: i64) -> usize {
        heads.partition_point(|other| other.load(Relaxed) < head)
    }

    #[inline(always)]
    fn equal<const N: usize>(heads: &[AtomicI64; N], head: i64) -> u64 {
        let indexed = heads.iter().enumerate();
        indexed.fold(0, |bits, (index, other)| {
            bits | u64::from(other.load(Relaxed) == head) << index
        })
    }
}

#[cfg(target_arch = "x86_64")]
impl Search for Avx2 {
    // All N heads are compared without a branch: the lines of a node are fetched together, while a
    // binary search would fetch one after the other. The intrinsics are inlined into the function
    // that was compiled for them.
    #[inline(always)]
    fn below<const N: usize>(heads: &[AtomicI64; N], head: i64) -> usize {
        use std::arch::x86_64::{
            _mm_add_epi64, _mm_cvtsi128_si64, _mm_sub_epi64, _mm_unpackhi_epi64, _mm256_add_epi64,
            _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_set1_epi64x,
            _mm256_setzero_si256,
        };
        const { assert!(matches!(N % 8, 0 | 2)) };
        ats_sync::count::read(heads);
        // SAFETY: code that uses this type has checked that the processor has these instructions
        // (contract of the type); all reads stay within the array.
        unsafe {
            let needle = _mm256_set1_epi64x(head);
            let mut sums = [_mm256_setzero_si256(); 2];
            let (blocks, rest) = heads.as_chunks::<32>();
            for block in blocks {
                count_eight::<0>(block.as_ptr(), needle, &mut sums);
                count_eight::<64>(block.as_ptr(), needle, &mut sums);
                count_eight::<128>(block.as_ptr(), needle, &mut sums);
                count_eight::<192>(block.as_ptr(), needle, &mut sums);
            }
            for eight in rest.chunks_exact(8) {
                count_eight::<0>(eight.as_ptr(), needle, &mut sums);
            }
            let sum = _mm256_add_epi64(sums[0], sums[1]);
            let mut sum = _mm_add_epi64(
                _mm256_castsi256_si128(sum),
                _mm256_extracti128_si256::<1>(sum),
            );
            if N % 8 == 2 {
                let last = below_two(heads.as_ptr().add(N - 2), _mm256_castsi256_si128(needle));
                sum = _mm_sub_epi64(sum, last);
            }
            let sum = _mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum));
            _mm_cvtsi128_si64(sum) as usize
        }
    }

    #[inline(always)]
    fn equal<const N: usize>(heads: &[AtomicI64; N], head: i64) -> u64 {
        use std::arch::x86_64::{_mm256_castsi256_si128, _mm256_set1_epi64x};
        const { assert!(matches!(N % 8, 0 | 2)) };
        ats_sync::count::read(heads);
        // SAFETY: code that uses this type has checked that the processor has AVX2 (contract of the
        // type), and all reads stay within the array.
        unsafe {
            let needle = _mm256_set1_epi64x(head);
            let mut bits = 0;
            let (eights, rest) = heads.as_chunks::<8>();
            for (at, eight) in eights.iter().enumerate() {
                bits |= equal_of_eight(eight.as_ptr(), needle) << (8 * at);
            }
            if let Some(two) = rest.first() {
                bits |= equal_of_two(two, _mm256_castsi256_si128(needle)) << (N - 2);
            }
            bits
        }
    }
}

/// Returns the heads equal to `needle` among the eight at a pointer, loaded as in [`count_eight`].
///
/// # Safety
/// The pointer must be valid for reads of eight heads, and the processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn equal_of_eight(heads: *const AtomicI64, needle: std::arch::x86_64::__m256i) -> u64 {
    use std::arch::x86_64::{_mm256_castsi256_pd, _mm256_movemask_pd};
    let (low, high);
    // SAFETY: the caller promises that the pointer is valid for eight heads and that the processor
    // has AVX2. The instructions only read these 64 bytes.
    unsafe {
        std::arch::asm!(
            "vpcmpeqq {low}, {needle}, [{heads}]",
            "vpcmpeqq {high}, {needle}, [{heads} + 32]",
            low = out(ymm_reg) low,
            high = lateout(ymm_reg) high,
            needle = in(ymm_reg) needle,
            heads = in(reg) heads,
            options(readonly, nostack, preserves_flags)
        );
    }
    let low = _mm256_movemask_pd(_mm256_castsi256_pd(low)) as u64;
    let high = _mm256_movemask_pd(_mm256_castsi256_pd(high)) as u64;
    low | high << 4
}

/// Compares like [`equal_of_eight`], for two heads.
///
/// # Safety
/// The pointer must be valid for reads of two heads, and the processor must have AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
unsafe fn equal_of_two(heads: *const AtomicI64, needle: std::arch::x86_64::__m128i) -> u64 {
    use std::arch::x86_64::{_mm_castsi128_pd, _mm_movemask_pd};
    let two;
    // SAFETY: the caller promises that the pointer is valid for two heads and that the processor
    // has AVX. The instruction only reads these 16 bytes.
    unsafe {
        std::arch::asm!(
            "vpcmpeqq {two}, {needle}, [{heads}]",
            two = out(xmm_reg) two,
            needle = in(xmm_reg) needle,
            heads = in(reg) heads,
            options(readonly, nostack, preserves_flags)
        );
    }
    _mm_movemask_pd(_mm_castsi128_pd(two)) as u64
}

/// Adds one to a lane of `sums` for each of the eight heads at `OFFSET` bytes after a pointer that
/// is below the `needle`.
///
/// The heads are loaded by the comparisons, as relaxed atomic loads: a writer may be storing a head
/// at the end of a leaf at the same time, which would race with an ordinary vector load. The
/// processor loads each aligned word of a vector as a whole.
///
/// # Safety
/// The heads must be valid for reads, and the processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn count_eight<const OFFSET: usize>(
    heads: *const AtomicI64,
    needle: std::arch::x86_64::__m256i,
    sums: &mut [std::arch::x86_64::__m256i; 2],
) {
    use std::arch::x86_64::_mm256_sub_epi64;
    let (low, high);
    // SAFETY: the caller promises that eight heads are valid for reads and that the processor has
    // AVX2. The instructions only read these 64 bytes.
    unsafe {
        std::arch::asm!(
            "vpcmpgtq {low}, {needle}, [{heads} + {offset}]",
            "vpcmpgtq {high}, {needle}, [{heads} + {offset} + 32]",
            low = out(ymm_reg) low,
            high = lateout(ymm_reg) high,
            needle = in(ymm_reg) needle,
            heads = in(reg) heads,
            offset = const OFFSET,
            options(readonly, nostack, preserves_flags)
        );
    }
    // A lane is -1 where the head is below.
    sums[0] = _mm256_sub_epi64(sums[0], low);
    sums[1] = _mm256_sub_epi64(sums[1], high);
}

/// Compares heads like [`count_eight`], for two heads: the lane of each head below the `needle` is
/// -1.
///
/// # Safety
/// The pointer must be valid for reads of two heads, and the processor must have AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
unsafe fn below_two(
    heads: *const AtomicI64,
    needle: std::arch::x86_64::__m128i,
) -> std::arch::x86_64::__m128i {
    let two;
    // SAFETY: the caller promises that the pointer is valid for two heads and that the processor
    // has AVX. The instruction only reads these 16 bytes.
    unsafe {
        std::arch::asm!(
            "vpcmpgtq {two}, {needle}, [{heads}]",
            two = out(xmm_reg) two,
            needle = in(xmm_reg) needle,
            heads = in(reg) heads,
            options(readonly, nostack, preserves_flags)
        );
    }
    two
}

/// Returns `true` if the processor has vectors of 256 bits. The answer is cached, so a call costs a
/// load.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn has_avx2() -> bool {
    // Tools that watch memory accesses do not see vector loads in inline assembly.
    !cfg!(any(tsan, watched, loom))
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
}
