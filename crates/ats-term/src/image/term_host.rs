//! The host of owned [`Term`]s.
//!
//! Identifiers and external funs become a few plain words. Closures, native records and large
//! binaries are shared, not copied: their box owns a pointer to them.
//!
//! ```text
//!  PID, PORT, REF   node atom | creation, local << 32 | numbers, one a word
//!  EXTERNAL_FUN     module atom | function atom | arity
//!  SHARED           pointer from Arc<Term>::into_raw
//! ```
//!
//! # Invariants
//! - TERM_HOST-1. The pointer in a SHARED box came from `Arc::into_raw`, and the box holds one
//!   strong count of it. A `HostBox` exists only while the count does (IMAGE-5).

use super::host::{Host, HostBox, HostKind, HostSink, HostTag, HostTerm};
use crate::atom::Atom;
use crate::term::{ExternalFun, Identifier, Term, TermBuilder};
use crate::term_ref::{FunIdent, Ident, Opaque, TermRef};
use std::sync::Arc;

const PID: HostTag = HostTag::plain(0);
const PORT: HostTag = HostTag::plain(1);
const REF: HostTag = HostTag::plain(2);
const EXTERNAL_FUN: HostTag = HostTag::plain(3);
const SHARED: HostTag = HostTag::owning(0);

/// The host of owned [`Term`]s, for images made by Rust programs.
///
/// Floats inside closures are compared like [`Term`]s: `0.0` and `-0.0` differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermHost {}

type TermBox<'a> = HostBox<'a, TermHost>;

/// Number of bytes charged for a closure.
const CLOSURE_BYTES: usize = 4 << 10;

/// Returns the shared term of a SHARED box.
fn shared_term(host_box: TermBox<'_>) -> &Term {
    assert_eq!(host_box.tag(), SHARED, "image: this box shares no term");
    // SAFETY: TERM_HOST-1: the pointer is that of an `Arc<Term>` whose count the box holds as long
    // as the borrow of the `HostBox` lasts, and shared terms are never written.
    unsafe { &*pointer(host_box) }
}

fn pointer(host_box: TermBox<'_>) -> *const Term {
    std::ptr::with_exposed_provenance(host_box.words()[0] as usize)
}

fn share(term: &Term, out: &mut Vec<u64>) -> HostTag {
    out.push(Arc::into_raw(Arc::new(term.clone())).expose_provenance() as u64);
    SHARED
}

fn atom(id: u64) -> Atom {
    Atom::from_id(id).expect("image: an atom that was never made")
}

/// Returns the numbers of an identifier box at the front of an array, and their count.
fn numbers(host_box: TermBox<'_>) -> ([u32; Identifier::MAX_NUMBERS], usize) {
    let words = &host_box.words()[2..];
    let mut numbers = [0; Identifier::MAX_NUMBERS];
    for (number, &word) in numbers.iter_mut().zip(words) {
        *number = word as u32;
    }
    (numbers, words.len())
}

fn external_fun(host_box: TermBox<'_>) -> ExternalFun {
    match *host_box.words() {
        [module, function, arity] => ExternalFun {
            module: atom(module),
            function: atom(function),
            arity: arity as u8,
        },
        _ => panic!("image: not an external fun: {host_box:?}"),
    }
}

impl Host for TermHost {
    type Term<'a> = &'a Term;

    fn kind(host_box: TermBox<'_>) -> HostKind {
        match host_box.tag() {
            PID => HostKind::Pid,
            PORT => HostKind::Port,
            REF => HostKind::Ref,
            EXTERNAL_FUN => HostKind::ExternalFun,
            _ => match shared_term(host_box) {
                Term::Bits(bits) => HostKind::Bits(bits.bit_len()),
                Term::NativeRecord(_) => HostKind::Opaque,
                _ => HostKind::LocalFun,
            },
        }
    }

    fn with_bits<R>(host_box: TermBox<'_>, f: impl FnOnce(&[u8]) -> R) -> R {
        shared_term(host_box).with_bits(f)
    }

    fn with_ident<R>(host_box: TermBox<'_>, f: impl FnOnce(Ident<'_>) -> R) -> R {
        let (numbers, len) = numbers(host_box);
        let words = host_box.words();
        f(Ident {
            local: words[1] >> 32 != 0,
            node: atom(words[0]).as_str(),
            creation: words[1] as u32,
            numbers: &numbers[..len],
        })
    }

    fn with_fun<R>(host_box: TermBox<'_>, f: impl FnOnce(FunIdent<'_>) -> R) -> R {
        if host_box.tag() == EXTERNAL_FUN {
            return f(external_fun(host_box).as_ident());
        }
        shared_term(host_box).with_fun(f)
    }

    fn with_opaque<R>(host_box: TermBox<'_>, f: impl FnOnce(Opaque<'_>) -> R) -> R {
        shared_term(host_box).with_opaque(f)
    }

    fn with_atom<R>(slot: u64, f: impl FnOnce(&str) -> R) -> R {
        f(atom(slot >> 6).as_str())
    }

    fn with_local<R>(slot: u64, _: impl FnOnce(Ident<'_>) -> R) -> R {
        panic!("image: owned terms have no immediate identifiers, yet here is {slot:#x}")
    }

    fn same(a: TermBox<'_>, b: TermBox<'_>) -> bool {
        Self::kind(a) == Self::kind(b) && (a.words() == b.words() || term(a) == term(b))
    }

    fn retain(host_box: TermBox<'_>) {
        debug_assert_eq!(host_box.tag(), SHARED);
        // SAFETY: TERM_HOST-1: the pointer came from `Arc::into_raw` and the box holds a count of
        // it.
        unsafe { Arc::increment_strong_count(pointer(host_box)) };
    }

    fn kept_bytes(host_box: TermBox<'_>) -> usize {
        match shared_term(host_box) {
            Term::Bits(bits) => bits.bit_len().div_ceil(8),
            // The contents of closures and native records are not inspected.
            _ => CLOSURE_BYTES,
        }
    }

    unsafe fn release(host_box: TermBox<'_>) {
        debug_assert_eq!(host_box.tag(), SHARED);
        // SAFETY: TERM_HOST-1: the pointer came from `Arc::into_raw`; our caller gives us the count
        // that the box held and does not use the box again.
        unsafe { Arc::decrement_strong_count(pointer(host_box)) };
    }
}

/// Returns the owned term in a host box.
fn term(host_box: TermBox<'_>) -> Term {
    let identifier = || {
        let (numbers, len) = numbers(host_box);
        let (node, rest) = (atom(host_box.words()[0]), host_box.words()[1]);
        Identifier::with_locality(rest >> 32 != 0, node, rest as u32, &numbers[..len])
            .expect("image: an identifier without numbers")
    };
    match host_box.tag() {
        PID => Term::Pid(identifier()),
        PORT => Term::Port(identifier()),
        REF => Term::Ref(identifier()),
        EXTERNAL_FUN => Term::ExternalFun(external_fun(host_box)),
        _ => shared_term(host_box).clone(),
    }
}

// SAFETY: the words of each tag are those that the functions above read: `write_identifier` writes
// the words that `numbers` and `with_ident` read, external funs are three words, and a SHARED box
// holds the pointer and the one count of an `Arc` that `share` made (TERM_HOST-1). Immediates of
// owned terms are small integers, nil, and atoms by their `Atom::id`.
unsafe impl HostTerm for &Term {
    type Host = TermHost;

    fn write_identity(self, _: HostKind, out: &mut Vec<u64>) -> HostTag {
        match self {
            Term::Pid(identifier) => write_identifier(PID, identifier, out),
            Term::Port(identifier) => write_identifier(PORT, identifier, out),
            Term::Ref(identifier) => write_identifier(REF, identifier, out),
            Term::ExternalFun(ExternalFun {
                module,
                function,
                arity,
            }) => {
                out.extend([module.id(), function.id(), u64::from(*arity)]);
                EXTERNAL_FUN
            }
            _ => share(self, out),
        }
    }

    fn write_large_bits(self, _: usize, out: &mut Vec<u64>) -> Option<HostTag> {
        Some(share(self, out))
    }
}

fn write_identifier(tag: HostTag, identifier: &Identifier, out: &mut Vec<u64>) -> HostTag {
    let Ident {
        local,
        creation,
        numbers,
        ..
    } = identifier.as_ident();
    out.extend([
        identifier.node().id(),
        u64::from(local) << 32 | u64::from(creation),
    ]);
    out.extend(numbers.iter().map(|&number| u64::from(number)));
    tag
}

impl HostSink<TermHost> for TermBuilder {
    fn host_box(&mut self, host_box: TermBox<'_>) -> Self::Term {
        self.add(term(host_box))
    }
}
