//! Counting the heads of a node that are below another: with the instructions that the processor has.

use ats_sync::count::atomic::{AtomicI64, Ordering::Relaxed};

/// How the heads of a node are counted: the choice of instructions, made when the program runs.
pub(super) trait Counting {
    /// Number of heads below `head`, in ascending heads.
    fn below<const N: usize>(heads: &[AtomicI64; N], head: i64) -> usize;
}

/// For any processor: binary search without branches.
pub(super) struct Portable;

/// For processors with vectors of 256 bits (AVX2). Only to be used by functions compiled for them,
/// which are called only if the processor has them.
#[cfg(target_arch = "x86_64")]
pub(super) struct Vectors;

impl Counting for Portable {
    #[inline(always)]
    fn below<const N: usize>(heads: &[AtomicI64; N], head: i64) -> usize {
        heads.partition_point(|other| other.load(Relaxed) < head)
    }
}

#[cfg(target_arch = "x86_64")]
impl Counting for Vectors {
    // Over all N places and without a branch: the lines of a node are fetched together, where a
    // binary search would fetch one after the other. The intrinsics are inlined into the function
    // that was compiled for them.
    #[inline(always)]
    fn below<const N: usize>(heads: &[AtomicI64; N], head: i64) -> usize {
        use std::arch::x86_64::*;
        const { assert!(matches!(N % 8, 0 | 2)) };
        ats_sync::count::read(heads);
        // SAFETY: code that uses this type has checked that the processor has these instructions
        // (contract of the type); loads need no alignment and stay within the array.
        unsafe {
            let needle = _mm256_set1_epi64x(head);
            let mut sums = [_mm256_setzero_si256(); 2];
            for eight in heads.chunks_exact(8) {
                let low = load_four(eight.as_ptr());
                let high = load_four(eight.as_ptr().add(4));
                // A lane is -1 where the head is below.
                sums[0] = _mm256_sub_epi64(sums[0], _mm256_cmpgt_epi64(needle, low));
                sums[1] = _mm256_sub_epi64(sums[1], _mm256_cmpgt_epi64(needle, high));
            }
            let sum = _mm256_add_epi64(sums[0], sums[1]);
            let mut sum = _mm_add_epi64(
                _mm256_castsi256_si128(sum),
                _mm256_extracti128_si256::<1>(sum),
            );
            if N % 8 == 2 {
                let last = load_two(heads.as_ptr().add(N - 2));
                let needle = _mm256_castsi256_si128(needle);
                sum = _mm_sub_epi64(sum, _mm_cmpgt_epi64(needle, last));
            }
            let sum = _mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum));
            _mm_cvtsi128_si64(sum) as usize
        }
    }
}

/// Four relaxed atomic loads, in the one instruction that does them. A writer may be storing a head at
/// the end of a leaf at the same time, which an ordinary load of a vector must not meet; the processor
/// loads each aligned word of a vector as a whole.
///
/// # Safety
/// Four heads follow the pointer, and the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
unsafe fn load_four(heads: *const AtomicI64) -> std::arch::x86_64::__m256i {
    let four;
    // SAFETY: the caller's promise; the instruction reads the 32 bytes and does nothing else.
    unsafe {
        std::arch::asm!(
            "vmovdqu {four}, [{heads}]",
            four = out(ymm_reg) four,
            heads = in(reg) heads,
            options(readonly, nostack, preserves_flags)
        );
    }
    four
}

/// As [`load_four`], for two.
///
/// # Safety
/// Two heads follow the pointer, and the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
unsafe fn load_two(heads: *const AtomicI64) -> std::arch::x86_64::__m128i {
    let two;
    // SAFETY: the caller's promise; the instruction reads the 16 bytes and does nothing else.
    unsafe {
        std::arch::asm!(
            "vmovdqu {two}, [{heads}]",
            two = out(xmm_reg) two,
            heads = in(reg) heads,
            options(readonly, nostack, preserves_flags)
        );
    }
    two
}

/// Whether the processor has vectors of 256 bits. The answer is kept, so asking costs a load.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn has_vectors() -> bool {
    // Tools that watch memory accesses do not see what the vectors load.
    !cfg!(any(tsan, watched, loom))
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
}
