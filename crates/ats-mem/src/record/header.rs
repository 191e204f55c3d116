//! The first word of a record: its stamp and, as a rule, its lengths.
//!
//! ```text
//!  63                                         16 15       9 8         1    0
//! +---------------------------------------------+----------+-----------+------+
//! | address of the batch entry / 8, 0: none     | key      | value     | owns |
//! |                                             | in bytes | in words  |      |
//! +---------------------------------------------+----------+-----------+------+
//! ```
//!
//! The uppermost bit distinguishes two kinds of stamps: it is 0 in the stamp of a batch, and 1 in
//! that of a [version](crate::read_points), whose address is in the bits below.
//!
//! The lower 16 bits, the *shape*, never change. All ones in them mark a *wide* header with two
//! more words:
//!
//! ```text
//! word 1    key length in bytes (32 bits) | value length in words (31 bits) | owns (1 bit)
//! word 2    the whole address of the batch entry, if the stamp in word 0 is not 0
//! ```
//!
//! # Addresses that do not fit
//! 47 bits hold any address that is a multiple of 8 and below 2^50. No system we know of gives a
//! process memory beyond that by default: with four levels of page tables there is none, and with
//! five levels (x86-64), or 52 bits (AArch64), a program has to request it from `mmap`. But
//! pointers may have tags in their upper bits (AArch64), and other systems may differ, so we do not
//! rely on it: a record to be stamped with an address that does not fit is first copied behind a
//! wide header ([`RecordBox::with_room_for`](super::RecordBox::with_room_for)), which takes any
//! address. The address itself decides that for each record, so other records pay nothing.

use crate::slab;
use ats_sync::shim::atomic::{
    AtomicPtr, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use ats_sync::shim::peek;
use std::marker::PhantomData;
use std::ptr;

const WORD: usize = size_of::<u64>();

const OWNS: u64 = 1;
const VALUE_SHIFT: u32 = 1;
const VALUE_MAX: u64 = (1 << (KEY_SHIFT - VALUE_SHIFT)) - 1;
const KEY_SHIFT: u32 = 9;
const KEY_MAX: u64 = (1 << (STAMP_SHIFT - KEY_SHIFT)) - 1;
const STAMP_SHIFT: u32 = 16;
/// The smallest word with a stamp.
const STAMPED: u64 = 1 << STAMP_SHIFT;
const SHAPE: u64 = STAMPED - 1;
/// The shape that marks a wide header.
const WIDE: u64 = SHAPE;

/// Alignment of entries: the stamp omits the lower bits of their addresses.
const ENTRY_ALIGN: u64 = 8;
/// The first address that does not fit.
const ADDRESS_LIMIT: u64 = ENTRY_ALIGN << (u64::BITS - STAMP_SHIFT - 1);
/// Flag of the stamp of a version.
const VERSION: u64 = 1 << (u64::BITS - 1);
// A version is a block of the slab, so its address fits.
const _: () = assert!(slab::ADDRESS_LIMIT as u64 <= ADDRESS_LIMIT);

/// The sizes of the parts of a record, from its header; never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub key_len: u32,
    /// Length of the value in words, below 2^31.
    pub value_words: u32,
    /// `true` if the value owns resources.
    pub owns: bool,
    /// `true` if the header is wide.
    pub wide: bool,
}

impl Shape {
    /// Returns the shape with the shortest possible header.
    ///
    /// # Panics
    /// Panics if the key has 4 GiB or more, or the value 2^31 words or more.
    pub(super) fn new(key_len: usize, value_words: usize, owns: bool) -> Self {
        let value_words = u32::try_from(value_words).ok();
        let shape = Shape {
            key_len: u32::try_from(key_len).expect("a key is shorter than 4 GiB"),
            value_words: value_words
                .filter(|words| *words < 1 << 31)
                .expect("a value is shorter than 2^31 words"),
            owns,
            wide: false,
        };
        Shape {
            wide: shape.narrow() >= WIDE,
            ..shape
        }
    }

    /// Returns the bits of a narrow header, if they are less than [`WIDE`].
    fn narrow(self) -> u64 {
        let (key_len, value_words) = (u64::from(self.key_len), u64::from(self.value_words));
        if key_len > KEY_MAX || value_words > VALUE_MAX {
            return WIDE;
        }
        key_len << KEY_SHIFT | value_words << VALUE_SHIFT | u64::from(self.owns)
    }

    fn of_narrow(bits: u64) -> Self {
        Shape {
            key_len: (bits >> KEY_SHIFT & KEY_MAX) as u32,
            value_words: (bits >> VALUE_SHIFT & VALUE_MAX) as u32,
            owns: bits & OWNS != 0,
            wide: false,
        }
    }

    /// Returns the number of words before the key.
    #[inline(always)]
    pub(super) fn header_words(self) -> usize {
        if self.wide {
            size_of::<Wide<()>>() / WORD
        } else {
            1
        }
    }

    /// Returns the number of words of the padded key.
    #[inline(always)]
    pub(super) fn key_words(self) -> usize {
        (self.key_len as usize).div_ceil(WORD)
    }

    /// Returns the size of the record in bytes. Cannot overflow, because lengths are below 4 GiB
    /// and 16 GiB.
    pub(super) fn bytes(self) -> usize {
        (self.header_words() + self.key_words() + self.value_words as usize) * WORD
    }
}

/// The header of a record whose stamps point to `E`.
///
/// A reference to it is a reference to its first word; if that is marked as wide, it is the start
/// of a [`Wide`].
#[repr(transparent)]
pub(super) struct Header<E> {
    word: AtomicU64,
    entry: PhantomData<*mut E>,
}

#[repr(C)]
struct Wide<E> {
    first: Header<E>,
    lengths: u64,
    stamp: AtomicPtr<E>,
}

impl<E> Header<E> {
    /// Writes a header without stamp.
    ///
    /// # Safety
    /// `header` must be aligned to 8 bytes, and valid for writes of the
    /// [words](Shape::header_words) of a header of this shape.
    pub(super) unsafe fn write(header: *mut Self, shape: Shape) {
        let first = |bits| Header {
            word: AtomicU64::new(bits),
            entry: PhantomData,
        };
        if !shape.wide {
            // SAFETY: the caller promises room for a header of this shape, which has one word.
            unsafe { header.write(first(shape.narrow())) };
            return;
        }
        let upper = shape.value_words << 1 | u32::from(shape.owns);
        // SAFETY: the caller promises room for a header of this shape, which is wide.
        unsafe {
            header.cast::<Wide<E>>().write(Wide {
                first: first(WIDE),
                lengths: u64::from(upper) << u32::BITS | u64::from(shape.key_len),
                stamp: AtomicPtr::new(ptr::null_mut()),
            });
        }
    }

    /// Returns the lower bits of the first word.
    #[inline(always)]
    fn bits(&self) -> u64 {
        peek(&self.word) & SHAPE
    }

    #[inline(always)]
    pub(super) fn shape(&self) -> Shape {
        let bits = self.bits();
        if bits == WIDE {
            return self.wide_shape();
        }
        Shape::of_narrow(bits)
    }

    #[cold]
    fn wide_shape(&self) -> Shape {
        let lengths = self.wide().lengths;
        let upper = (lengths >> u32::BITS) as u32;
        Shape {
            key_len: lengths as u32,
            value_words: upper >> 1,
            owns: upper & 1 != 0,
            wide: true,
        }
    }

    /// Returns the wide header whose first word this is.
    fn wide(&self) -> &Wide<E> {
        debug_assert!(self.bits() == WIDE);
        // SAFETY: callers have checked that the word is the first one of a wide header, which
        // `write` made.
        unsafe { &*ptr::from_ref(self).cast() }
    }

    /// Returns `true` if there is a stamp of any kind.
    #[inline(always)]
    pub(super) fn is_stamped(&self) -> bool {
        self.word.load(Acquire) >= STAMPED
    }

    /// Returns the address of the version in the stamp, or 0.
    #[inline(always)]
    pub(super) fn version(&self) -> usize {
        let word = self.word.load(Acquire);
        match word & VERSION {
            0 => 0,
            _ => (((word & !VERSION) >> STAMP_SHIFT) * ENTRY_ALIGN) as usize,
        }
    }

    /// Stamps the header with a version, replacing any stamp. The caller has the record alone, or
    /// has set the present stamp.
    pub(super) fn set_version(&self, address: usize) {
        debug_assert!((address as u64) < ADDRESS_LIMIT);
        self.word
            .store(version_stamp(address) | self.bits(), Release);
    }

    /// Clears the stamp if it is this version.
    pub(super) fn clear_version(&self, address: usize) {
        let bits = self.bits();
        let stamped = version_stamp(address) | bits;
        // The exchange fails if the holder of the key has set another stamp, which stays.
        let _ = self.word.compare_exchange(stamped, bits, AcqRel, Relaxed);
    }

    /// Returns the batch entry in the stamp, or null.
    #[inline(always)]
    pub(super) fn stamp(&self) -> *mut E {
        let word = self.word.load(Acquire);
        if word < STAMPED {
            return ptr::null_mut();
        }
        self.stamp_of(word)
    }

    #[cold]
    fn stamp_of(&self, word: u64) -> *mut E {
        if word & VERSION != 0 {
            return ptr::null_mut();
        }
        if word & SHAPE == WIDE {
            // The address was written before the stamp of the first word. If another stamp has been
            // set meanwhile, it is that one, which will do: it is younger, and its entry lives as
            // long.
            return self.wide().stamp.load(Acquire);
        }
        ptr::with_exposed_provenance_mut(((word >> STAMP_SHIFT) * ENTRY_ALIGN) as usize)
    }

    /// Returns `true` if the header has room for the address of this entry.
    pub(super) fn has_room_for(&self, entry: *const E) -> bool {
        if self.word.load(Acquire) & VERSION != 0 {
            return false;
        }
        self.shape().wide || narrow_stamp(entry.addr()).is_some()
    }

    /// Stamps the header, which has no stamp. The caller has the record alone, or holds the lock of
    /// its key.
    pub(super) fn set_stamp(&self, entry: *mut E) {
        let bits = self.bits();
        let stamp = if bits == WIDE {
            self.wide().stamp.store(entry, Release);
            STAMPED
        } else {
            narrow_stamp(entry.expose_provenance()).expect("there is room for the stamp")
        };
        self.word.store(stamp | bits, Release);
    }

    /// Clears the stamp. Only the code that set it may call this.
    pub(super) fn clear_stamp(&self) {
        // The address in a wide header stays: readers may just have seen the stamp.
        self.word.store(self.bits(), Release);
    }
}

/// Returns the stamp of a version, shifted to its position in the first word.
fn version_stamp(address: usize) -> u64 {
    VERSION | (address as u64 / ENTRY_ALIGN) << STAMP_SHIFT
}

/// Returns the stamp of an entry, shifted to its position in the first word, if the address fits.
fn narrow_stamp(address: usize) -> Option<u64> {
    let address = address as u64;
    // Tests must meet both kinds, so every second entry of a batch counts as too far away.
    let far = cfg!(any(test, shuttle)) && (address / ENTRY_ALIGN).is_multiple_of(2);
    let fits = address < ADDRESS_LIMIT && address.is_multiple_of(ENTRY_ALIGN) && !far;
    fits.then_some((address / ENTRY_ALIGN) << STAMP_SHIFT)
}
