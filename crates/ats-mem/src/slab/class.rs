//! Size classes of blocks.
//!
//! Sizes are multiples of 8 where records are many and small, then of 16, then they increase by
//! about an eighth to a quarter. Above 512 all are multiples of 64, so that a request for whole
//! cache lines gets whole cache lines and, because runs begin at a cache line, starts at one. Above
//! 2 KiB, each is the largest of which the same number fits in a run.
//!
//! One more class is for short-lived blocks: see [`PASSING`].

/// The smallest size.
pub(super) const SMALLEST: usize = 16;
/// The largest request served from slabs.
pub const LARGEST: usize = 16 << 10;
/// The number of classes.
pub(super) const CLASSES: usize = LASTING + 1;
/// Number of classes for long-lived blocks: one for each size.
const LASTING: usize = FINE + MIDDLE + COARSE.len();
/// Size of short-lived blocks.
pub(super) const PASSING_BYTES: usize = 40;
/// The class of short-lived blocks, which have chunks of their own.
pub(super) const PASSING: Class = Class::new(LASTING);

/// The unit of all sizes.
const UNIT: usize = 8;
/// Limit up to which all multiples of [`UNIT`] are sizes.
const FINE_MAX: usize = 128;
const FINE: usize = (FINE_MAX - SMALLEST) / UNIT + 1;
/// Limit up to which further sizes are multiples of 16.
const MIDDLE_MAX: usize = 512;
const MIDDLE: usize = (MIDDLE_MAX - FINE_MAX) / 16;
const COARSE: [u16; 27] = [
    576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048, 2304, 2560, 2880, 3264,
    3584, 4096, 4352, 4672, 5440, 6528, 8192, 9344, 10880, 13056, 16384,
];
const SIZES: [u16; CLASSES] = sizes();

/// Largest number of bytes of one size in the cache of a thread, but at least two blocks.
const CACHE_BYTES: usize = 16 << 10;
/// Largest number of blocks of one size in the cache of a thread. Half of them are taken at once:
/// enough that threads that fill tables concurrently seldom contend for a pool.
pub(super) const CACHE_BLOCKS: usize = 256;

/// The class of each number of units.
const CLASS_OF_UNITS: [u8; LARGEST / UNIT + 1] = class_of_units();

/// One of the sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class(u8);

impl Class {
    /// Returns the smallest class for `bytes` bytes, if there is one.
    #[inline]
    pub(super) fn of(bytes: usize) -> Option<Self> {
        if bytes > LARGEST {
            return None;
        }
        Some(Class(CLASS_OF_UNITS[bytes.div_ceil(UNIT)]))
    }

    pub(super) const fn new(index: usize) -> Self {
        assert!(index < CLASSES);
        Class(index as u8)
    }

    /// Returns `true` if this is [`PASSING`].
    pub(super) fn is_passing(self) -> bool {
        self == PASSING
    }

    /// Returns a number below [`CLASSES`].
    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    #[inline]
    pub(super) fn size(self) -> usize {
        SIZES[self.index()] as usize
    }

    /// Returns the largest number of blocks of this class in the cache of a thread; even, at most
    /// [`CACHE_BLOCKS`].
    #[inline]
    pub(super) fn cache_limit(self) -> usize {
        const LIMITS: [u16; CLASSES] = limits();
        LIMITS[self.index()] as usize
    }
}

const fn sizes() -> [u16; CLASSES] {
    let mut sizes = [0; CLASSES];
    let mut at = 0;
    while at < sizes.len() {
        sizes[at] = if at < FINE {
            (SMALLEST + at * UNIT) as u16
        } else if at < FINE + MIDDLE {
            (FINE_MAX + (at - FINE + 1) * 16) as u16
        } else if at < LASTING {
            COARSE[at - FINE - MIDDLE]
        } else {
            PASSING_BYTES as u16
        };
        at += 1;
    }
    sizes
}

const fn class_of_units() -> [u8; LARGEST / UNIT + 1] {
    let mut classes = [0; LARGEST / UNIT + 1];
    let mut class = 0;
    let mut units = 0;
    while units < classes.len() {
        if units * UNIT > SIZES[class] as usize {
            class += 1;
        }
        classes[units] = class as u8;
        units += 1;
    }
    classes
}

const fn limits() -> [u16; CLASSES] {
    let mut limits = [0; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        let blocks = (CACHE_BYTES / SIZES[class] as usize) & !1;
        limits[class] = match blocks {
            0 => 2,
            1..CACHE_BLOCKS => blocks as u16,
            _ => CACHE_BLOCKS as u16,
        };
        class += 1;
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_the_least_that_fits() {
        for bytes in 0..=LARGEST {
            let class = Class::of(bytes).unwrap();
            assert!(class.size() >= bytes);
            assert!(class.index() == 0 || (SIZES[class.index() - 1] as usize) < bytes);
            for align in [8, 16, 64] {
                let aligned = !bytes.is_multiple_of(align) || bytes == 0;
                assert!(aligned || class.size().is_multiple_of(align), "{bytes}");
            }
            let waste = class.size() - bytes.max(SMALLEST);
            assert!(
                waste
                    < if bytes <= FINE_MAX {
                        8
                    } else {
                        16.max(bytes / 3)
                    }
            );
            assert!(class.cache_limit() >= 2 && class.cache_limit() <= CACHE_BLOCKS);
        }
        assert_eq!(Class::of(LARGEST + 1), None);
        assert_eq!(Class::of(usize::MAX), None);
    }
}
