//! The VM as the host of images: boxes for the terms that only the VM understands.
//!
//! | kind | words of the box | owns |
//! |---|---|---|
//! | ordinary reference of this node | its two data words | |
//! | pid, port or reference of another node; `fun M:F/A` | external term format, padded | |
//! | native record of terms that are no identifiers or closures | external term format, padded | |
//! | binary above 64 bytes, part of one above 1 KiB | a [`Counted`] binary | yes |
//! | the same above 1 KiB, on a VM with an unknown layout | pointer to a [`SharedBinary`] | yes |
//! | magic reference, alias, closure; identifier without creation | pointer to a [`SharedEnv`], the term in it | yes |
//! | other native record; term of an unknown kind | the same | yes |
//!
//! The `Arc` in a box counts its resource, so copying and freeing a box need neither an environment
//! nor a certain thread: any thread may free records when their epoch ends.
//!
//! # Limits of the external term format
//! An identifier of this node, encoded before the node gets a name, decodes to one of another node
//! afterwards. A magic reference (an `atomics` or `counters` array, a resource of a NIF, an `ets`
//! table) does not keep its target alive once encoded. Both must come back `=:=` and working.
//!
//! # Invariant
//! - VM_HOST-1. The first word of an owning box came from `Arc::into_raw` of the type that its tag
//!   says, and stands for one of the counts of that `Arc`; the words of a box with the tag
//!   `COUNTED_BINARY` came from [`counted_binary::count`], and own that count.

use crate::atoms;
use crate::counted_binary::{self, Counted};
use crate::env::{Env, OwnEnv, VmWord};
use crate::etf::Etf;
use crate::heap;
use crate::ident;
use crate::opaque::{record, with_etf_fun, with_etf_opaque};
use crate::reference::{self, RefKind};
use crate::shared_binary::SharedBinary;
use crate::shared_env::{self, SharedEnv};
use crate::vm_term::VmTerm;
use ats_term::Term;
use ats_term::image::{Host, HostBox, HostKind, HostTag, HostTerm};
use ats_term::term_ref::{FunIdent, Ident, Kind, Opaque, has_part};
use std::sync::Arc;

const LOCAL_REF: HostTag = HostTag::plain(0);
const EXTERNAL_PID: HostTag = HostTag::plain(1);
const EXTERNAL_PORT: HostTag = HostTag::plain(2);
const EXTERNAL_REF: HostTag = HostTag::plain(3);
const EXTERNAL_FUN: HostTag = HostTag::plain(4);
const RECORD: HostTag = HostTag::plain(5);
const SHARED_BINARY: HostTag = HostTag::owning(0);
const ENV_REF: HostTag = HostTag::owning(1);
const ENV_FUN: HostTag = HostTag::owning(2);
const ENV_PID: HostTag = HostTag::owning(3);
const ENV_PORT: HostTag = HostTag::owning(4);
const ENV_OPAQUE: HostTag = HostTag::owning(5);
const COUNTED_BINARY: HostTag = HostTag::owning(6);

/// Number of bits above which a part of a binary keeps the whole alive.
const LONG_BITS: usize = 8 * 1024;
/// Bytes that an identifier takes in an environment.
const ENV_TERM_BYTES: usize = 64;
/// Bytes charged for a resource of unknown size: so many that the epoch advances after a few dozen.
const UNKNOWN_BYTES: usize = 16 << 10;

/// The VM as the host of images.
#[derive(Clone, Copy, Debug)]
pub struct VmHost;

// SAFETY: the words written are those that `VmHost` reads, and an owning tag comes with one count;
// immediates are words of the VM, which `VmHost` knows.
unsafe impl HostTerm for VmTerm<'_> {
    type Host = VmHost;

    /// The VM counts binaries that are longer than these.
    const LARGE_BITS: usize = 8 * 64;

    fn write_identity(self, kind: HostKind, out: &mut Vec<u64>) -> HostTag {
        write_identity(self.word(), kind, out)
    }

    fn write_large_bits(self, bits: usize, out: &mut Vec<u64>) -> Option<HostTag> {
        if bits.is_multiple_of(8) {
            write_binary(self.env(), (self.word(), bits), out)
        } else {
            None
        }
    }
}

/// Appends the words of an identifier or fun that is not immediate; returns the tag of its box.
fn write_identity(term: VmWord<'_>, kind: HostKind, out: &mut Vec<u64>) -> HostTag {
    match kind {
        HostKind::Pid => write_external(term, EXTERNAL_PID, ENV_PID, out),
        HostKind::Port => write_external(term, EXTERNAL_PORT, ENV_PORT, out),
        HostKind::ExternalFun => write_etf(&Etf::of(term), EXTERNAL_FUN, out),
        HostKind::LocalFun => write_env_term(shared_env::hold_alone(term), ENV_FUN, out),
        HostKind::Ref => match reference::classify(term) {
            RefKind::Local(data) => {
                out.extend(data);
                LOCAL_REF
            }
            RefKind::Alias => write_env_term(shared_env::hold_in_chunk(term), ENV_REF, out),
            RefKind::Magic => write_env_term(shared_env::hold_alone(term), ENV_REF, out),
            RefKind::External => write_external(term, EXTERNAL_REF, ENV_REF, out),
        },
        HostKind::Opaque => write_opaque(term, out),
        HostKind::Bits(_) => unreachable!("bitstrings are no identities"),
    }
}

/// Writes a native record, or a term of an unknown kind. A term that may have identity is kept in
/// an environment.
fn write_opaque(term: VmWord<'_>, out: &mut Vec<u64>) -> HostTag {
    let etf = Etf::of(term);
    let has_identity = |part: &Term| {
        has_part(part, |_, kind| {
            matches!(kind, Kind::Pid | Kind::Port | Kind::Ref | Kind::LocalFun)
        })
    };
    match record(etf.bytes()) {
        Some(record) if !record.values().iter().any(has_identity) => write_etf(&etf, RECORD, out),
        _ => write_env_term(shared_env::hold_alone(term), ENV_OPAQUE, out),
    }
}

/// Appends the words of a binary of this number of bits above 64 bytes. Returns `None` if the bytes
/// should be copied: a part of a binary keeps the whole alive, so a short part is not shared.
fn write_binary(
    env: Env<'_>,
    (binary, bits): (VmWord<'_>, usize),
    out: &mut Vec<u64>,
) -> Option<HostTag> {
    if bits <= LONG_BITS && !heap::is_counted_binary(binary) {
        return None;
    }
    if let Some(words) = counted_binary::count(binary) {
        out.extend(words);
        return Some(COUNTED_BINARY);
    }
    let shared = Arc::new(SharedBinary::hold(env, binary)?);
    out.push(Arc::into_raw(shared) as u64);
    Some(SHARED_BINARY)
}

/// Writes an identifier of another node. An identifier without creation would decode to one of this
/// node whenever this node has that name, so it is kept in an environment.
fn write_external(
    term: VmWord<'_>,
    plain: HostTag,
    in_env: HostTag,
    out: &mut Vec<u64>,
) -> HostTag {
    let etf = Etf::of(term);
    if ident::with_etf_ident(etf.bytes(), false, |ident| ident.creation == 0) {
        // The term gets an environment of its own, because it keeps an entry of the VM's node table
        // alive.
        write_env_term(shared_env::hold_alone(term), in_env, out)
    } else {
        write_etf(&etf, plain, out)
    }
}

fn write_etf(etf: &Etf, tag: HostTag, out: &mut Vec<u64>) -> HostTag {
    for chunk in etf.bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        out.push(u64::from_ne_bytes(word));
    }
    tag
}

fn write_env_term((env, word): (Arc<SharedEnv>, u64), tag: HostTag, out: &mut Vec<u64>) -> HostTag {
    out.push(Arc::into_raw(env) as u64);
    out.push(word);
    tag
}

/// Returns the external term format in a box, with the zeros after it.
fn etf_bytes(words: &[u64]) -> &[u8] {
    // SAFETY: the bytes are those of initialized words, from which they are borrowed.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// Returns the binary of a box; it lives as long as the box.
fn shared_binary(host_box: HostBox<'_, VmHost>) -> &SharedBinary {
    debug_assert_eq!(host_box.tag(), SHARED_BINARY);
    // SAFETY: the first word of the box came from `Arc::into_raw` of a `SharedBinary`, as the tag
    // says (VM_HOST-1), and the count of the box keeps it as long as the borrow of the box.
    unsafe { &*(host_box.words()[0] as *const SharedBinary) }
}

/// Returns the binary of a box that counts it.
fn counted(host_box: HostBox<'_, VmHost>) -> Counted<'_> {
    debug_assert_eq!(host_box.tag(), COUNTED_BINARY);
    // SAFETY: the words of the box came from `count`, as the tag says (VM_HOST-1), and the box owns
    // the count as long as it is borrowed.
    unsafe { Counted::new(host_box.words()) }
}

/// Returns the bytes of a box of a binary.
fn binary_bytes(host_box: HostBox<'_, VmHost>) -> &[u8] {
    match host_box.tag() {
        COUNTED_BINARY => counted(host_box).bytes(),
        _ => shared_binary(host_box).bytes(),
    }
}

/// Returns the term of a box with an environment; it lives as long as the box.
fn env_term(host_box: HostBox<'_, VmHost>) -> VmWord<'_> {
    debug_assert!(host_box.tag().owns());
    debug_assert!(!matches!(host_box.tag(), SHARED_BINARY | COUNTED_BINARY));
    // SAFETY: the environment is alive as long as the borrow of the box, and its terms do not move.
    unsafe { VmWord::new(host_box.words()[1]) }
}

/// Builds the term of a host box. O(1) except for terms in the external term format and closures,
/// which are copied.
pub fn make<'e>(env: Env<'e>, host_box: HostBox<'_, VmHost>) -> VmWord<'e> {
    match (host_box.tag(), host_box.words()) {
        (LOCAL_REF, &[first, second]) => reference::make(env, [first, second]),
        (COUNTED_BINARY, _) => counted(host_box).make(env),
        (SHARED_BINARY, _) => shared_binary(host_box).make(env),
        (ENV_REF | ENV_FUN | ENV_PID | ENV_PORT | ENV_OPAQUE, _) => env.copy(env_term(host_box)),
        (_, words) => {
            let term = env.from_etf(etf_bytes(words));
            term.expect("the VM reads what it wrote")
        }
    }
}

impl Host for VmHost {
    type Term<'a> = VmTerm<'a>;

    fn kind(host_box: HostBox<'_, Self>) -> HostKind {
        match host_box.tag() {
            LOCAL_REF | EXTERNAL_REF | ENV_REF => HostKind::Ref,
            EXTERNAL_PID | ENV_PID => HostKind::Pid,
            EXTERNAL_PORT | ENV_PORT => HostKind::Port,
            EXTERNAL_FUN => HostKind::ExternalFun,
            ENV_FUN => HostKind::LocalFun,
            RECORD | ENV_OPAQUE => HostKind::Opaque,
            SHARED_BINARY | COUNTED_BINARY => HostKind::Bits(binary_bytes(host_box).len() * 8),
            other => unreachable!("a host box with {other:?}"),
        }
    }

    fn with_bits<R>(host_box: HostBox<'_, Self>, f: impl FnOnce(&[u8]) -> R) -> R {
        f(binary_bytes(host_box))
    }

    fn with_ident<R>(host_box: HostBox<'_, Self>, f: impl FnOnce(Ident<'_>) -> R) -> R {
        match (host_box.tag(), host_box.words()) {
            (LOCAL_REF, &[first, second]) => {
                ident::with_local(&reference::numbers([first, second]), f)
            }
            (ENV_REF, _) => reference::with_ident(env_term(host_box), f),
            (ENV_PID | ENV_PORT, _) => ident::with_vm_ident(env_term(host_box), false, f),
            (_, words) => ident::with_etf_ident(etf_bytes(words), false, f),
        }
    }

    fn with_fun<R>(host_box: HostBox<'_, Self>, f: impl FnOnce(FunIdent<'_>) -> R) -> R {
        match host_box.tag() {
            ENV_FUN => with_etf_fun(Etf::of(env_term(host_box)).bytes(), f),
            _ => with_etf_fun(etf_bytes(host_box.words()), f),
        }
    }

    fn with_opaque<R>(host_box: HostBox<'_, Self>, f: impl FnOnce(Opaque<'_>) -> R) -> R {
        match host_box.tag() {
            ENV_OPAQUE => with_etf_opaque(Etf::of(env_term(host_box)).bytes(), f),
            _ => with_etf_opaque(etf_bytes(host_box.words()), f),
        }
    }

    fn with_atom<R>(slot: u64, f: impl FnOnce(&str) -> R) -> R {
        // SAFETY: the slot of an atom is its word, and atoms are never freed.
        f(atoms::text(unsafe { VmWord::new(slot) }))
    }

    fn with_local<R>(slot: u64, f: impl FnOnce(Ident<'_>) -> R) -> R {
        // SAFETY: the slot of a local pid or port is its word, an immediate.
        ident::with_local_immediate(unsafe { VmWord::new(slot) }, f)
    }

    fn same(a: HostBox<'_, Self>, b: HostBox<'_, Self>) -> bool {
        if a.tag() != b.tag() {
            return false;
        }
        match a.tag() {
            SHARED_BINARY | COUNTED_BINARY => binary_bytes(a) == binary_bytes(b),
            ENV_REF | ENV_FUN | ENV_PID | ENV_PORT | ENV_OPAQUE => {
                env_term(a).is_identical(env_term(b))
            }
            // The VM does not promise the order in which it writes a map.
            RECORD if a.words() != b.words() => {
                let mut env = OwnEnv::new();
                let env = env.env();
                make(env, a).is_identical(make(env, b))
            }
            // The same VM encodes equal terms to equal bytes.
            _ => a.words() == b.words(),
        }
    }

    fn retain(host_box: HostBox<'_, Self>) {
        if host_box.tag() == COUNTED_BINARY {
            return counted(host_box).retain();
        }
        let pointer = host_box.words()[0];
        // SAFETY: the first word came from `Arc::into_raw` of the type that the tag says
        // (VM_HOST-1); the count of the box keeps the object alive meanwhile.
        unsafe {
            match host_box.tag() {
                SHARED_BINARY => Arc::increment_strong_count(pointer as *const SharedBinary),
                _ => Arc::increment_strong_count(pointer as *const SharedEnv),
            }
        }
    }

    fn kept_bytes(host_box: HostBox<'_, Self>) -> usize {
        match host_box.tag() {
            COUNTED_BINARY => binary_bytes(host_box).len(),
            SHARED_BINARY => size_of::<SharedBinary>() + binary_bytes(host_box).len(),
            ENV_REF if reference::classify(env_term(host_box)) != RefKind::Magic => ENV_TERM_BYTES,
            ENV_PID | ENV_PORT => ENV_TERM_BYTES,
            // A resource of a library, an array of counters, or a closure's environment: the VM
            // does not tell the size.
            _ => UNKNOWN_BYTES,
        }
    }

    fn resource(host_box: HostBox<'_, Self>) -> u64 {
        match host_box.tag() {
            // Each write of a binary holds it again, so the binary is identified by its bytes'
            // address.
            SHARED_BINARY | COUNTED_BINARY => binary_bytes(host_box).as_ptr().addr() as u64,
            _ => host_box.words()[0],
        }
    }

    unsafe fn release(host_box: HostBox<'_, Self>) {
        if host_box.tag() == COUNTED_BINARY {
            // SAFETY: the caller gives up the count of the box.
            return unsafe { counted(host_box).release() };
        }
        let pointer = host_box.words()[0];
        // SAFETY: the first word came from `Arc::into_raw` of the type that the tag says
        // (VM_HOST-1); the caller gives up the count of the box.
        unsafe {
            match host_box.tag() {
                SHARED_BINARY => drop(Arc::from_raw(pointer as *const SharedBinary)),
                _ => drop(Arc::from_raw(pointer as *const SharedEnv)),
            }
        }
    }
}
