//! Comparing all heads of a node with another: with the instructions that the processor has.

use ats_sync::count::atomic::{AtomicI64, Ordering::Relaxed};

/// The comparison of the heads of a node: the choice of instructions, made when the program runs.
pub(super) trait Search {
    /// Number of heads below `head`, in ascending heads.
    fn below<const N: usize>(heads: &[AtomicI64; N], head: i64) -> usize;

    /// The heads that equal `head`, as bits: the lowest one for the first. The heads are in any
    /// order.
    fn equal<const N: usize>(heads: &[AtomicI64; N], head: i64) -> u64;
}

/// For any processor: binary search without branches.
pub(super) struct Baseline;

/// For processors with vectors of 256 bits (AVX2). Only to be used by functions compiled for them,
/// which are called only if the processor has them.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

impl Search for Baseline {
    #[inline(always)]
    fn below<const N: usize>(heads: &[AtomicI64; N], head: i64) -> usize {
        heads.partition_point(|other| other.load(Relaxed) < head)
    }

    #[inline(always)]
    fn equal<const N: usize>(heads: &[AtomicI64; N], head: i64) -> u64 {
        let places = heads.iter().enumerate();
        places.fold(0, |bits, (place, other)| {
            bits | u64::from(other.load(Relaxed) == head) << place
        })
    }
}

#[cfg(target_arch = "x86_64")]
impl Search for Avx2 {
    // Over all N places and without a branch: the lines of a node are fetched together, where a
    // binary search would fetch one after the other. The intrinsics are inlined into the function
    // that was compiled for them.
    #[inline(always)]
    fn below<const N: usize>(heads: &[AtomicI64; N], head: i64) -> usize {
        use std::arch::x86_64::*;
        const { assert!(matches!(N % 8, 0 | 2)) };
        ats_sync::count::read(heads);
        // SAFETY: code that uses this type has checked that the processor has these instructions
        // (contract of the type); what is read stays within the array.
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
        use std::arch::x86_64::*;
        const { assert!(matches!(N % 8, 0 | 2)) };
        ats_sync::count::read(heads);
        // SAFETY: code that uses this type has checked that the processor has AVX2 (contract of the
        // type), and what is read stays within the array.
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

/// The heads among the eight behind a pointer that equal the `needle`, loaded as by
/// [`count_eight`].
///
/// # Safety
/// The heads are there, and the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn equal_of_eight(heads: *const AtomicI64, needle: std::arch::x86_64::__m256i) -> u64 {
    use std::arch::x86_64::{_mm256_castsi256_pd, _mm256_movemask_pd};
    let (low, high);
    // SAFETY: the caller says that eight heads are there and that the processor has AVX2. The
    // instructions read these 64 bytes and do nothing else.
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

/// Does what [`equal_of_eight`] does, of two heads.
///
/// # Safety
/// Two heads follow the pointer, and the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
unsafe fn equal_of_two(heads: *const AtomicI64, needle: std::arch::x86_64::__m128i) -> u64 {
    use std::arch::x86_64::{_mm_castsi128_pd, _mm_movemask_pd};
    let two;
    // SAFETY: the caller says that two heads are there and that the processor has AVX. The
    // instruction reads these 16 bytes and does nothing else.
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

/// Adds for each of the eight heads that begin so many bytes behind a pointer one to a lane of
/// `sums` if it is below the `needle`.
///
/// The heads are loaded by the comparisons, as relaxed atomic loads: a writer may be storing a head
/// at the end of a leaf at the same time, which an ordinary load of a vector must not meet. The
/// processor loads each aligned word of a vector as a whole.
///
/// # Safety
/// The heads are there, and the processor has AVX2.
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
    // SAFETY: the caller says that eight heads are there and that the processor has AVX2. The
    // instructions read these 64 bytes and do nothing else.
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

/// Does what [`count_eight`] does, for two heads: -1 in the lane of each that is below the
/// `needle`.
///
/// # Safety
/// Two heads follow the pointer, and the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
unsafe fn below_two(
    heads: *const AtomicI64,
    needle: std::arch::x86_64::__m128i,
) -> std::arch::x86_64::__m128i {
    let two;
    // SAFETY: the caller says that two heads are there and that the processor has AVX. The
    // instruction reads these 16 bytes and does nothing else.
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

/// Returns `true` if the processor has vectors of 256 bits. The answer is kept, so asking costs a
/// load.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn has_avx2() -> bool {
    // Tools that watch memory accesses do not see what the vectors load.
    !cfg!(any(tsan, watched, loom))
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
}
