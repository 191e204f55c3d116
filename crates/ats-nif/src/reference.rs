//! References: their kinds, and the numbers of ordinary ones.
//!
//! An ordinary reference consists of its numbers, so a table can keep those and have the VM rebuild
//! the reference: the words of a process monitor are the words of a reference, and
//! `enif_make_monitor_term` turns them into a term. The VM does not promise this layout, so
//! [`load`] checks it on fresh references; if the check fails, references are kept in environments
//! instead.

use crate::env::{Env, OwnEnv, VmWord};
use crate::etf::Etf;
use crate::sys::{self, Word};
use crate::{heap, ident};
use ats_term::term_ref::Ident;
use std::sync::OnceLock;

/// Header word of ordinary references, if [`load`] found their layout to be the known one:
///
/// ```text
/// word 0  header                     word 1  number 0 | 0xFFFFFFFF      word 2  number 2 | number 1
/// ```
///
/// Magic references have the same header but an aligned pointer in word 1, so the ones in its lower
/// half tell them apart. Aliases have a longer header. Both share the low six bits, which external
/// references do not.
static REF_HEADER: OnceLock<Option<Word>> = OnceLock::new();

const REF_MARKER: u32 = u32::MAX;
const HEADER_TAG: Word = 0x3F;
const POINTER_TAG: Word = 0x07;

/// Kinds of references in this VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefKind {
    /// An ordinary reference of this node, with its two data words.
    Local([u64; 2]),
    /// A reference of this node with more data than its numbers, but no resource.
    Alias,
    /// A reference of this node that keeps a resource alive.
    Magic,
    /// A reference of another node.
    External,
}

/// Returns the header and the next two words. Every reference has at least three words: a header
/// and 96 bits.
fn ref_words(reference: VmWord<'_>) -> [u64; 3] {
    let words = (reference.raw() & !POINTER_TAG) as *const [u64; 3];
    // SAFETY: a reference is boxed: its word is a pointer to its words, with a tag in the low bits.
    unsafe { words.read() }
}

/// Rebuilds an ordinary reference from the data words of [`RefKind::Local`].
pub fn make(env: Env<'_>, data: [u64; 2]) -> VmWord<'_> {
    let header = REF_HEADER.get().copied().flatten();
    with_header(env, header.expect("the layout is known"), data)
}

fn with_header(env: Env<'_>, header: Word, data: [u64; 2]) -> VmWord<'_> {
    let monitor = sys::ErlNifMonitor {
        words: [header, data[0], data[1], 0],
    };
    // SAFETY: the VM copies the words of a monitor to the heap as a reference; these are the words
    // of one, and `load` made sure that nothing else is needed.
    unsafe { VmWord::new(sys::enif_make_monitor_term(env.raw(), &raw const monitor)) }
}

/// Returns the numbers of an ordinary reference, most significant first.
pub fn numbers(data: [u64; 2]) -> [u32; 3] {
    [
        (data[1] >> 32) as u32,
        data[1] as u32,
        (data[0] >> 32) as u32,
    ]
}

/// Returns the kind of a reference.
pub fn classify(reference: VmWord<'_>) -> RefKind {
    let Some(ref_header) = REF_HEADER.get().copied().flatten() else {
        return classify_unknown(reference);
    };
    let [header, data @ ..] = ref_words(reference);
    let marked = data[0] as u32 == REF_MARKER;
    if header & HEADER_TAG != ref_header & HEADER_TAG {
        RefKind::External
    } else if header == ref_header && marked {
        RefKind::Local(data)
    } else if marked {
        RefKind::Alias
    } else {
        RefKind::Magic
    }
}

/// Classifies references of an unknown layout: only their node is visible. Treating one of this
/// node as magic is safe but expensive.
#[cold]
fn classify_unknown(reference: VmWord<'_>) -> RefKind {
    let node_of = |term| {
        let etf = Etf::of(term);
        ident::with_etf_ident(etf.bytes(), false, |ident| {
            (ident.node.to_owned(), ident.creation)
        })
    };
    let mut env = OwnEnv::new();
    if node_of(reference) == node_of(env.env().make_ref()) {
        RefKind::Magic
    } else {
        RefKind::External
    }
}

/// Checks whether the layout of references is the known one, once per VM.
pub fn load(env: Env<'_>) {
    REF_HEADER.get_or_init(|| {
        let first = env.make_ref();
        let header = ref_words(first)[0];
        let known = (0..16).all(|_| {
            let fresh = env.make_ref();
            let [its_header, data @ ..] = ref_words(fresh);
            let etf = Etf::of(fresh);
            its_header == header
                && data[0] as u32 == REF_MARKER
                && with_header(env, header, data).is_identical(fresh)
                && !with_header(env, header, data).is_identical(first)
                && ident::with_etf_ident(etf.bytes(), true, |ident| ident.numbers == numbers(data))
        });
        known.then_some(header)
    });
}

/// Returns `true` if a term is an ordinary reference of this node, or one that keeps a resource.
/// Other references may not be told.
#[inline]
pub fn has_known_header(word: VmWord<'_>) -> bool {
    let known = REF_HEADER.get().copied().flatten();
    known.is_some() && heap::header(word) == known
}

/// Returns `true` if ordinary references can be kept as their numbers.
pub fn is_layout_known() -> bool {
    REF_HEADER.get().copied().flatten().is_some()
}

/// Lends the identity of a reference.
pub fn with_ident<R>(reference: VmWord<'_>, f: impl FnOnce(Ident<'_>) -> R) -> R {
    match classify(reference) {
        RefKind::Local(data) => ident::with_local(&numbers(data), f),
        RefKind::Alias | RefKind::Magic => ident::with_vm_ident(reference, true, f),
        RefKind::External => ident::with_vm_ident(reference, false, f),
    }
}
