//! Integers that are no immediates, read in place from the heap of the VM: a header with sign and
//! number of digits, followed by digits of 64 bits, least significant first.
//!
//! The NIF interface shows integers beyond 64 bits only in the external term format, which the VM
//! allocates: 0.17 µs for each. So [`load`] compares some integers with the expected layout. On a
//! VM with another layout, [`digits`] returns `None`, and the caller reads the external term
//! format.

use crate::env::{Env, VmWord};
use crate::etf;
use crate::sys::Word;
use crate::tags::BOXED_TAG;
use std::sync::atomic::{AtomicBool, Ordering};

/// Low six bits of the header of a positive integer.
const POSITIVE: Word = 0b00_1000;
/// Low six bits of the header of a negative integer.
const NEGATIVE: Word = 0b00_1100;
/// Number of header bits below the number of digits.
const HEADER_BITS: u32 = 6;

/// `true` once [`load`] has found that this VM has the expected layout.
static IS_LAYOUT_KNOWN: AtomicBool = AtomicBool::new(false);

/// Checks the layout of this VM's integers when the library is loaded, after the tags were checked.
pub fn load(env: Env<'_>) {
    let is_known = SAMPLES.iter().all(|&(negative, magnitude)| {
        let word = env.from_etf(&etf::encode_integer(negative, magnitude));
        word.and_then(read) == Some((negative, magnitude))
    });
    IS_LAYOUT_KNOWN.store(is_known, Ordering::Relaxed);
}

/// Integers with one to four digits. In some, the upper half of the last digit is empty.
const SAMPLES: [(bool, &[u8]); 6] = [
    (false, &[0, 0, 0, 0, 0, 0, 0, 128]),
    (false, &[255; 8]),
    (true, &[0, 0, 0, 0, 0, 0, 0, 0, 1]),
    (
        false,
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    ),
    (true, &[254; 25]),
    (false, &[127; 32]),
];

/// Returns `true` if big integers are read in place.
#[inline]
pub fn is_layout_known() -> bool {
    IS_LAYOUT_KNOWN.load(Ordering::Relaxed)
}

/// Returns sign and magnitude of an integer that is no immediate, least significant byte first;
/// `None` for other terms, and if the VM has another layout.
#[inline]
pub fn digits(word: VmWord<'_>) -> Option<(bool, &[u8])> {
    if is_layout_known() { read(word) } else { None }
}

#[inline]
fn read(word: VmWord<'_>) -> Option<(bool, &[u8])> {
    // Some VMs mark literals by a third tag bit, because they cannot be told from other terms by
    // their address. Such literals are rare, and not read here.
    let is_boxed = word.raw() % align_of::<Word>() as Word == BOXED_TAG;
    if !is_boxed || cfg!(target_endian = "big") {
        return None;
    }
    let header = std::ptr::with_exposed_provenance::<Word>((word.raw() - BOXED_TAG) as usize);
    // SAFETY: without its tag, the word of a term on the heap is the address of the term's header,
    // and the term is valid (ENV-2).
    let first = unsafe { header.read() };
    let negative = match first & ((1 << HEADER_BITS) - 1) {
        POSITIVE => false,
        NEGATIVE => true,
        _ => return None,
    };
    let len = (first >> HEADER_BITS) as usize * size_of::<Word>();
    // SAFETY: the header of an integer says how many digits follow it, which never change and keep
    // their address as long as the term is valid (ENV-2).
    let magnitude = unsafe { std::slice::from_raw_parts(header.add(1).cast::<u8>(), len) };
    Some((negative, etf::trim(magnitude)))
}
