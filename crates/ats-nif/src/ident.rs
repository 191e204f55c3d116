//! Identities of pids, ports and references.
//!
//! Keys of tables must not change when the node is renamed (`net_kernel:start`), so identifiers of
//! this node carry the name and creation that the node had when the library was loaded, together
//! with the mark `local` that keeps them apart from everything else.
//!
//! The numbers of a local pid or port are bits of its word. Which bits is no promise of the VM:
//! [`load`] tries the known layouts on identifiers whose numbers the external term format tells, and
//! if none fits, the external term format is asked every time.

use crate::atoms::etf_atom;
use crate::env::{Env, Etf, VmWord};
use crate::sys::Word;
use crate::vm_term::PID_TAG;
use ats_term::walk::Ident;
use std::sync::OnceLock;

/// Most words a reference has.
const MAX_REF_WORDS: usize = 5;

/// What [`load`] found out.
struct Local {
    node: Box<str>,
    creation: u32,
    layout: Option<Layout>,
    /// A pid of this node, maybe of a process that is gone.
    pid: Word,
}

/// Where the numbers of local pids and ports are: `data << 4 | tag`, the lower bits of the data being the number
/// of a pid and the higher ones its serial.
#[derive(Clone, Copy)]
struct Layout {
    data_bits: u32,
    pid_number_bits: u32,
}

/// The layouts there are: that of OTP 25 and older, and that of OTP 26 and newer.
const LAYOUTS: [Layout; 2] = [
    Layout {
        data_bits: 28,
        pid_number_bits: 15,
    },
    Layout {
        data_bits: 60,
        pid_number_bits: 28,
    },
];

static LOCAL: OnceLock<Local> = OnceLock::new();

fn local() -> &'static Local {
    LOCAL.get().expect("the library was loaded")
}

impl Layout {
    /// Serial and number of a local pid.
    fn pid(self, word: Word) -> [u32; 2] {
        let data = (word as u64) >> 4;
        let number = data & ((1 << self.pid_number_bits) - 1);
        [(data >> self.pid_number_bits) as u32, number as u32]
    }

    /// The two halves of the number of a local port.
    fn port(self, word: Word) -> [u32; 2] {
        let data = (word as u64) >> 4;
        [(data >> 32) as u32, data as u32]
    }

    /// Whether it tells the numbers of every pid and port of this node that has one bit of them set. They need
    /// not exist to have a word, and the external term format tells their numbers, too.
    fn explains(self, env: Env<'_>, own: &EtfIdent) -> bool {
        (0..self.data_bits).all(|bit| {
            let (number, serial) = match bit.checked_sub(self.pid_number_bits) {
                None => (1 << bit, 0),
                Some(bit) => (0, 1 << bit),
            };
            self.reads(env, &own.encode_pid(number, serial))
                && self.reads(env, &own.encode_port(1 << bit))
        })
    }

    /// Whether it tells the numbers of an encoded identifier.
    fn reads(self, env: Env<'_>, encoded: &[u8]) -> bool {
        let Some(term) = env.from_etf(encoded).filter(|term| term.raw() & 3 == 3) else {
            return false;
        };
        let etf = Etf::of(term);
        EtfIdent::parse(etf.bytes()).is_some_and(|told| match told.kind {
            IdentKind::Pid => told.numbers() == self.pid(term.raw()),
            IdentKind::Port => told.numbers() == self.port(term.raw()),
            IdentKind::Ref => false,
        })
    }
}

/// Learns name and creation of the node and the layout of local identifiers. Runs once per VM: when
/// the module is loaded again, the frozen name stays.
pub fn load(env: Env<'_>) -> Result<(), String> {
    if LOCAL.get().is_some() {
        return Ok(());
    }
    let pid = env.own_pid().ok_or("not loaded by a process")?;
    let etf = Etf::of(pid);
    let own = EtfIdent::parse(etf.bytes()).ok_or("unknown external format of a pid")?;
    let layout = LAYOUTS
        .into_iter()
        .find(|layout| layout.explains(env, &own));
    // Losing a race is impossible (the VM loads one module at a time) and would be harmless.
    let _ = LOCAL.set(Local {
        node: own.node.into(),
        creation: own.creation,
        layout,
        pid: pid.raw(),
    });
    Ok(())
}

/// Name and creation that identifiers of this node get in the external term format at present.
pub fn written_node() -> (String, u32) {
    // SAFETY: a local pid is an immediate, which is a term as long as the VM runs.
    let pid = unsafe { VmWord::new(local().pid) };
    let ident = EtfIdent::parse(Etf::of(pid).bytes()).expect("a pid as this VM writes it");
    (ident.node, ident.creation)
}

/// Whether the numbers of local pids and ports are read from their words.
pub fn layout_is_known() -> bool {
    local().layout.is_some()
}

/// A port of this node, which need not exist.
pub fn some_port(env: Env<'_>) -> Option<VmWord<'_>> {
    let etf = Etf::of(env.own_pid()?);
    env.from_etf(&EtfIdent::parse(etf.bytes())?.encode_port(1))
}

/// Lends the identity of a local pid or port, which is an immediate.
#[inline]
pub fn with_local_immediate<R>(term: VmWord<'_>, f: impl FnOnce(Ident<'_>) -> R) -> R {
    match local().layout {
        Some(layout) if term.raw() & 0xF == PID_TAG => with_local(&layout.pid(term.raw()), f),
        Some(layout) => with_local(&layout.port(term.raw()), f),
        None => with_vm_ident(term, true, f),
    }
}

/// Lends the identity of this node's identifier with these numbers.
#[inline]
pub fn with_local<R>(numbers: &[u32], f: impl FnOnce(Ident<'_>) -> R) -> R {
    let local = local();
    f(Ident {
        local: true,
        node: &local.node,
        creation: local.creation,
        numbers,
    })
}

/// Lends the identity of any identifier, asking the VM for its external format.
#[cold]
pub fn with_vm_ident<R>(ident: VmWord<'_>, is_local: bool, f: impl FnOnce(Ident<'_>) -> R) -> R {
    let etf = Etf::of(ident);
    with_etf_ident(etf.bytes(), is_local, f)
}

/// Lends the identity of the identifier that `etf` encodes. `is_local` says that it is one of this
/// node, whatever name the node had when it was encoded.
pub fn with_etf_ident<R>(etf: &[u8], is_local: bool, f: impl FnOnce(Ident<'_>) -> R) -> R {
    let ident = EtfIdent::parse(etf).expect("identifier in a format of OTP 24 or later");
    if is_local {
        return with_local(ident.numbers(), f);
    }
    f(Ident {
        local: false,
        node: &ident.node,
        creation: ident.creation,
        numbers: ident.numbers(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdentKind {
    Pid,
    Port,
    Ref,
}

/// A pid, port or reference in the external term format.
struct EtfIdent {
    kind: IdentKind,
    node: String,
    creation: u32,
    numbers: [u32; MAX_REF_WORDS],
    len: usize,
}

const VERSION: u8 = 131;
const NEW_PID_EXT: u8 = 88;
const NEW_PORT_EXT: u8 = 89;
const NEWER_REFERENCE_EXT: u8 = 90;
const ATOM_UTF8_EXT: u8 = 118;
const V4_PORT_EXT: u8 = 120;

impl EtfIdent {
    fn numbers(&self) -> &[u32] {
        &self.numbers[..self.len]
    }

    /// Reads what OTP 24 and later write, which is what this VM wrote.
    fn parse(bytes: &[u8]) -> Option<EtfIdent> {
        let (&[VERSION, tag], rest) = bytes.split_first_chunk::<2>()? else {
            return None;
        };
        match tag {
            NEW_PID_EXT => {
                let (node, rest) = etf_atom(rest)?;
                let [number, serial, creation] = be_words(rest)?;
                Some(Self::new(IdentKind::Pid, node, creation, &[serial, number]))
            }
            NEW_PORT_EXT => {
                let (node, rest) = etf_atom(rest)?;
                let [number, creation] = be_words(rest)?;
                Some(Self::new(IdentKind::Port, node, creation, &[0, number]))
            }
            V4_PORT_EXT => {
                let (node, rest) = etf_atom(rest)?;
                let [high, low, creation] = be_words(rest)?;
                Some(Self::new(IdentKind::Port, node, creation, &[high, low]))
            }
            NEWER_REFERENCE_EXT => Self::parse_ref(rest),
            _ => None,
        }
    }

    /// The words of a reference are written least significant first, and compared the other way.
    fn parse_ref(bytes: &[u8]) -> Option<EtfIdent> {
        let (count, rest) = bytes.split_first_chunk::<2>()?;
        let count = u16::from_be_bytes(*count) as usize;
        let (node, rest) = etf_atom(rest)?;
        let [creation] = be_words(rest)?;
        let words = rest.get(4..4 + 4 * count)?;
        if count > MAX_REF_WORDS {
            return None;
        }
        let mut numbers = [0; MAX_REF_WORDS];
        for (number, word) in numbers.iter_mut().zip(words.chunks_exact(4).rev()) {
            [*number] = be_words(word)?;
        }
        Some(Self::new(IdentKind::Ref, node, creation, &numbers[..count]))
    }

    fn new(kind: IdentKind, node: String, creation: u32, given: &[u32]) -> EtfIdent {
        let mut numbers = [0; MAX_REF_WORDS];
        numbers[..given.len()].copy_from_slice(given);
        EtfIdent {
            kind,
            node,
            creation,
            numbers,
            len: given.len(),
        }
    }

    /// A pid of the same node, encoded.
    fn encode_pid(&self, number: u32, serial: u32) -> Vec<u8> {
        let mut out = self.start(NEW_PID_EXT);
        out.extend(number.to_be_bytes());
        out.extend(serial.to_be_bytes());
        out.extend(self.creation.to_be_bytes());
        out
    }

    /// A port of the same node, encoded.
    fn encode_port(&self, number: u64) -> Vec<u8> {
        let mut out = self.start(V4_PORT_EXT);
        out.extend(number.to_be_bytes());
        out.extend(self.creation.to_be_bytes());
        out
    }

    fn start(&self, tag: u8) -> Vec<u8> {
        let mut out = vec![VERSION, tag, ATOM_UTF8_EXT];
        out.extend((self.node.len() as u16).to_be_bytes());
        out.extend(self.node.as_bytes());
        out
    }
}

/// The first N big-endian words of 32 bits.
fn be_words<const N: usize>(bytes: &[u8]) -> Option<[u32; N]> {
    let bytes = bytes.get(..4 * N)?;
    let mut words = [0; N];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_be_bytes(chunk.try_into().ok()?);
    }
    Some(words)
}
