//! Identities of pids, ports and references.
//!
//! Keys of tables must not change when the node is renamed (`net_kernel:start`), so identifiers of
//! this node carry the name and creation that the node had when the library was loaded, together
//! with the mark `local` that keeps them apart from everything else.
//!
//! The numbers of a local pid or port are bits of its word. The VM does not promise which bits:
//! since OTP 26 it depends on the sizes of the tables of processes and ports. [`load`] makes
//! identifiers with known numbers and finds their bits in the words. If no layout fits, every
//! identifier is read through the external term format.

use crate::env::{Env, VmWord};
use crate::etf::{self, ATOM_UTF8_EXT, Etf, VERSION};
use crate::sys::Word;
use crate::tags::{PID_TAG, PORT_TAG};
use ats_term::term_ref::Ident;
use std::sync::OnceLock;

/// Largest number of words of a reference.
const MAX_REF_WORDS: usize = 5;

/// Facts about this node, found by [`load`].
struct Local {
    node: Box<str>,
    creation: u32,
    pids: Option<Layout>,
    ports: Option<Layout>,
    /// A pid of this node, which may have exited.
    pid: Word,
}

/// Positions of the number's bits in the words of local pids, or of local ports.
#[derive(Clone, Copy, Default)]
struct Layout {
    runs: [Run; RUNS],
    /// Mask of all bits that belong to numbers or to the tag.
    known: Word,
}

/// Bits with the same distance between their positions in the word and in the number, which is a
/// word of 64 bits made of two halves.
#[derive(Clone, Copy, Default)]
struct Run {
    bits: Word,
    /// Distance by which the word is rotated left to get the bits of the number.
    left: u32,
}

/// Largest number of runs of a layout: that of the serial, that of the upper bits of a number, and
/// the two parts by which the lower bits of a number are rotated.
const RUNS: usize = 4;

static LOCAL: OnceLock<Local> = OnceLock::new();

fn local() -> &'static Local {
    LOCAL.get().expect("the library was loaded")
}

impl Layout {
    /// Returns the two halves of a word's number, unless the word has bits never seen.
    #[inline]
    fn numbers(self, word: Word) -> Option<[u32; 2]> {
        let gather = |number, run: &Run| number | (word & run.bits).rotate_left(run.left);
        let number = self.runs.iter().fold(0, gather);
        (word & !self.known == 0).then_some([(number >> 32) as u32, number as u32])
    }

    /// Finds the position of each bit of a number in words with this tag. `encode` writes
    /// identifiers of this node in the external term format; they need not exist to have a word.
    /// Some numbers belong to no identifier.
    fn learn(env: Env<'_>, tag: Word, encode: impl Fn([u32; 2]) -> Vec<u8>) -> Option<Layout> {
        let word = |number: u64| immediate(env, &encode([(number >> 32) as u32, number as u32]));
        let mut layout = Layout {
            known: 0xF,
            ..Layout::default()
        };
        let mut all = 0;
        for bit in 0..u64::BITS {
            let Some(word) = word(1 << bit) else {
                continue;
            };
            layout.add(word ^ tag, bit)?;
            all |= 1 << bit;
        }
        // Numbers with several bits set check that the bits combine.
        let several = [0x5555_5555_5555_5555, 0x3333_3333_CCCC_CCCC, !0, !1];
        several
            .into_iter()
            .all(|number| {
                let number = number & all;
                let halves = [(number >> 32) as u32, number as u32];
                word(number).and_then(|word| layout.numbers(word)) == Some(halves)
            })
            .then_some(layout)
    }

    /// Records that these bits of words hold that bit of numbers. Up to OTP 25 there are two such
    /// bits: above the number, a word holds its index in the table.
    fn add(&mut self, bits: Word, bit: u32) -> Option<()> {
        if bits == 0 || self.known & bits != 0 {
            return None;
        }
        let lowest = bits.trailing_zeros();
        let left = bit.wrapping_sub(lowest) % u64::BITS;
        let fits = |run: &&mut Run| run.bits == 0 || run.left == left;
        let run = self.runs.iter_mut().find(fits)?;
        (run.bits, run.left) = (run.bits | 1 << lowest, left);
        self.known |= bits;
        Some(())
    }
}

/// Returns the word of an identifier of this node, given in the external term format.
fn immediate(env: Env<'_>, encoded: &[u8]) -> Option<Word> {
    let word = env.from_etf(encoded)?.raw();
    (word & 3 == 3).then_some(word)
}

/// Learns name and creation of the node and the layout of local identifiers. Runs once per VM: if
/// the module is loaded again, the name stays frozen.
pub fn load(env: Env<'_>) -> Result<(), String> {
    if LOCAL.get().is_some() {
        return Ok(());
    }
    let pid = env.own_pid().ok_or("not loaded by a process")?;
    let etf = Etf::of(pid);
    let own = EtfIdent::parse(etf.bytes()).ok_or("unknown external format of a pid")?;
    let pids = Layout::learn(env, PID_TAG, |[serial, number]| {
        own.encode_pid(number, serial)
    });
    let ports = Layout::learn(env, PORT_TAG, |halves| own.encode_port(halves));
    // Losing a race is impossible (the VM loads one module at a time) and would be harmless.
    let _ = LOCAL.set(Local {
        node: own.node.into(),
        creation: own.creation,
        pids,
        ports,
        pid: pid.raw(),
    });
    Ok(())
}

/// Returns the name and creation that the VM now writes for identifiers of this node in the
/// external term format.
pub fn written_node() -> (String, u32) {
    // SAFETY: a local pid is an immediate, which is a term as long as the VM runs.
    let pid = unsafe { VmWord::new(local().pid) };
    let ident = EtfIdent::parse(Etf::of(pid).bytes()).expect("a pid as this VM writes it");
    (ident.node, ident.creation)
}

/// Returns `true` if the numbers of local pids and ports can be read from their words.
pub fn is_layout_known() -> bool {
    local().pids.is_some() && local().ports.is_some()
}

/// Builds a port of this node, which need not exist.
pub fn some_port(env: Env<'_>) -> Option<VmWord<'_>> {
    let etf = Etf::of(env.own_pid()?);
    env.from_etf(&EtfIdent::parse(etf.bytes())?.encode_port([0, 1]))
}

/// Lends the identity of a local pid or port, which is an immediate.
#[inline]
pub fn with_local_immediate<R>(term: VmWord<'_>, f: impl FnOnce(Ident<'_>) -> R) -> R {
    let local = local();
    let layout = match term.raw() & 0xF {
        PID_TAG => local.pids,
        _ => local.ports,
    };
    match layout.and_then(|layout| layout.numbers(term.raw())) {
        Some(numbers) => with_local(&numbers, f),
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

/// Lends the identity of any identifier, read through the external term format.
#[cold]
pub fn with_vm_ident<R>(ident: VmWord<'_>, is_local: bool, f: impl FnOnce(Ident<'_>) -> R) -> R {
    let etf = Etf::of(ident);
    with_etf_ident(etf.bytes(), is_local, f)
}

/// Lends the identity of the identifier that `etf` encodes. `is_local` is `true` for one of this
/// node, regardless of the node's name at the time of encoding.
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

/// A pid, port or reference in the external term format.
struct EtfIdent {
    node: String,
    creation: u32,
    numbers: [u32; MAX_REF_WORDS],
    len: usize,
}

const NEW_PID_EXT: u8 = 88;
const NEW_PORT_EXT: u8 = 89;
const NEWER_REFERENCE_EXT: u8 = 90;
const V4_PORT_EXT: u8 = 120;

impl EtfIdent {
    fn numbers(&self) -> &[u32] {
        &self.numbers[..self.len]
    }

    /// Parses an identifier in the formats of OTP 24 and later; this VM wrote it.
    fn parse(bytes: &[u8]) -> Option<EtfIdent> {
        let (&[VERSION, tag], rest) = bytes.split_first_chunk::<2>()? else {
            return None;
        };
        match tag {
            NEW_PID_EXT => {
                let (node, rest) = etf::atom(rest)?;
                let [number, serial, creation] = be_words(rest)?;
                Some(Self::new(node, creation, &[serial, number]))
            }
            NEW_PORT_EXT => {
                let (node, rest) = etf::atom(rest)?;
                let [number, creation] = be_words(rest)?;
                Some(Self::new(node, creation, &[0, number]))
            }
            V4_PORT_EXT => {
                let (node, rest) = etf::atom(rest)?;
                let [high, low, creation] = be_words(rest)?;
                Some(Self::new(node, creation, &[high, low]))
            }
            NEWER_REFERENCE_EXT => Self::parse_ref(rest),
            _ => None,
        }
    }

    /// Parses a reference. Its words are written least significant first, and compared in the
    /// reverse order.
    fn parse_ref(bytes: &[u8]) -> Option<EtfIdent> {
        let (count, rest) = bytes.split_first_chunk::<2>()?;
        let count = u16::from_be_bytes(*count) as usize;
        let (node, rest) = etf::atom(rest)?;
        let [creation] = be_words(rest)?;
        let words = rest.get(4..4 + 4 * count)?;
        if count > MAX_REF_WORDS {
            return None;
        }
        let mut numbers = [0; MAX_REF_WORDS];
        for (number, word) in numbers.iter_mut().zip(words.chunks_exact(4).rev()) {
            [*number] = be_words(word)?;
        }
        Some(Self::new(node, creation, &numbers[..count]))
    }

    fn new(node: String, creation: u32, given: &[u32]) -> EtfIdent {
        let mut numbers = [0; MAX_REF_WORDS];
        numbers[..given.len()].copy_from_slice(given);
        EtfIdent {
            node,
            creation,
            numbers,
            len: given.len(),
        }
    }

    /// Encodes a pid of the same node.
    fn encode_pid(&self, number: u32, serial: u32) -> Vec<u8> {
        let mut out = self.start(NEW_PID_EXT);
        out.extend(number.to_be_bytes());
        out.extend(serial.to_be_bytes());
        out.extend(self.creation.to_be_bytes());
        out
    }

    /// Encodes a port of the same node.
    fn encode_port(&self, [high, low]: [u32; 2]) -> Vec<u8> {
        let mut out = self.start(V4_PORT_EXT);
        out.extend(high.to_be_bytes());
        out.extend(low.to_be_bytes());
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

/// Returns the first N big-endian words of 32 bits.
fn be_words<const N: usize>(bytes: &[u8]) -> Option<[u32; N]> {
    let bytes = bytes.get(..4 * N)?;
    let mut words = [0; N];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_be_bytes(chunk.try_into().ok()?);
    }
    Some(words)
}
