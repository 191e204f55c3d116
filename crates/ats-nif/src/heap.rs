//! Tuples and list cells, read in place: a tuple is a header with the number of elements, followed
//! by the elements; a cell is a head and a tail.
//!
//! The functions of the VM give the same, at the price of a call for each term. So [`load`]
//! compares some terms with the layout that is expected here. If a VM has another layout, nothing
//! is read here, and the VM is asked.

use crate::env::{Env, VmWord};
use crate::sys::Word;
use crate::tags::{BOXED_TAG, CONS_TAG};
use std::sync::atomic::{AtomicBool, Ordering};

/// Low six bits of the header of a tuple.
const TUPLE: Word = 0;
/// Number of low bits of a header, below the number of elements.
const HEADER_BITS: u32 = 6;

/// `true` if this VM has tuples and cells as expected, which [`load`] finds out.
static IS_LAYOUT_KNOWN: AtomicBool = AtomicBool::new(false);

/// Compares terms of this VM with the expected layout. Runs when the library is loaded, after the
/// tags were checked.
pub fn load(env: Env<'_>) {
    let parts: Vec<_> = (1..=70).map(|value| env.int(value)).collect();
    let are = |found: &[VmWord<'_>], expected: &[VmWord<'_>]| {
        let words = |words: &[VmWord<'_>]| words.iter().map(|word| word.raw()).collect::<Vec<_>>();
        words(found) == words(expected)
    };
    let tuples = [0, 1, 2, 3, 63, 64, 70].map(|arity| &parts[..arity]);
    let are_tuples = tuples.iter().all(|&elements| {
        let tuple = env.tuple(elements);
        // The empty tuple may be a literal, which is not read.
        elements.is_empty() || read_tuple(tuple).is_some_and(|found| are(found, elements))
    });
    let cell = env.cons(parts[0], parts[1]);
    let is_cell = read_cell(cell).is_some_and(|(head, tail)| are(&[head, tail], &parts[..2]));
    let others = [
        Some(env.int(i64::MAX)),
        Some(env.float(1.5)),
        Some(env.binary(b"x")),
        Some(env.binary(&[0; 100])),
        env.map(&[], &[]),
        env.map(&parts[..2], &parts[..2]),
        env.map(&parts, &parts),
        Some(env.make_ref()),
        Some(cell),
        Some(parts[0]),
    ];
    let are_none = others
        .into_iter()
        .flatten()
        .all(|other| read_tuple(other).is_none());
    let is_known = are_tuples && is_cell && are_none && read_cell(env.tuple(&parts)).is_none();
    IS_LAYOUT_KNOWN.store(is_known, Ordering::Relaxed);
}

/// Returns the elements of a tuple. `None` for another term, for a literal, and on a VM with
/// another layout.
#[inline]
pub fn tuple(word: VmWord<'_>) -> Option<&[VmWord<'_>]> {
    if !IS_LAYOUT_KNOWN.load(Ordering::Relaxed) {
        return None;
    }
    read_tuple(word)
}

/// Returns head and tail of a list cell. `None` for another term, for a literal, and on a VM with
/// another layout.
#[inline]
pub fn cell(word: VmWord<'_>) -> Option<(VmWord<'_>, VmWord<'_>)> {
    if !IS_LAYOUT_KNOWN.load(Ordering::Relaxed) {
        return None;
    }
    read_cell(word)
}

/// Returns the address of a term that has this tag. A third bit tells literals from other terms
/// where the VM cannot tell by their address: these are not read here.
#[inline]
fn address(word: VmWord<'_>, tag: Word) -> Option<*const Word> {
    let has_tag = word.raw() % align_of::<Word>() as Word == tag;
    has_tag.then(|| std::ptr::with_exposed_provenance((word.raw() - tag) as usize))
}

#[inline]
fn read_tuple(word: VmWord<'_>) -> Option<&[VmWord<'_>]> {
    let header = address(word, BOXED_TAG)?;
    // SAFETY: without its tag, the word of a term on the heap is the address of the term's header,
    // and the term is valid (ENV-2).
    let first = unsafe { header.read() };
    if first & ((1 << HEADER_BITS) - 1) != TUPLE {
        return None;
    }
    let arity = (first >> HEADER_BITS) as usize;
    // SAFETY: the header of a tuple says how many elements follow it, each a valid term that lives
    // as long as the tuple (ENV-2); `VmWord` is transparent.
    Some(unsafe { std::slice::from_raw_parts(header.add(1).cast(), arity) })
}

#[inline]
fn read_cell(word: VmWord<'_>) -> Option<(VmWord<'_>, VmWord<'_>)> {
    let head = address(word, CONS_TAG)?;
    // SAFETY: without its tag, the word of a list cell is the address of its head, which the tail
    // follows; both are valid terms as long as the cell (ENV-2).
    unsafe { Some((VmWord::new(head.read()), VmWord::new(head.add(1).read()))) }
}
