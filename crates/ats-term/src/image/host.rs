//! The host: the system that owns terms which an image only refers to.
//!
//! Pids, ports and references of other nodes, funs, references, and binaries too large to copy are
//! meaningful only in the system they come from. The image keeps them as words of that host, and
//! asks the host about them. The Erlang VM is one host; [`TermHost`](super::TermHost) is the host
//! of [`Term`](crate::Term)s in a Rust program. A host is a type without values: its state is
//! global to the process, as the VM is.

use super::layout::{HOST, HOST_OWNING};
use crate::term_ref::{FunIdent, Ident, Opaque, TermRef, TermSink};
use std::fmt;
use std::marker::PhantomData;

/// The tag of a host box, chosen by the host out of 64 plain and 64 owning ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTag(u8);

impl HostTag {
    /// Returns the tag of boxes without resources. `number` is below 64 (else it panics, at compile
    /// time in a constant).
    pub const fn plain(number: u8) -> Self {
        assert!(number < HOST_OWNING - HOST);
        Self(HOST + number)
    }

    /// Returns the tag of boxes that each own a resource, which [`Host::release`] gives up.
    /// `number` is below 64 (else it panics, at compile time in a constant).
    pub const fn owning(number: u8) -> Self {
        assert!(number < HOST_OWNING - HOST);
        Self(HOST_OWNING + number)
    }

    /// Returns `true` if boxes with this tag own a resource.
    pub const fn owns(self) -> bool {
        self.0 >= HOST_OWNING
    }

    /// Returns the tag as in the header.
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// Returns the tag of a header, if it belongs to a host box.
    pub(super) const fn from_byte(byte: u8) -> Option<Self> {
        if byte >= HOST { Some(Self(byte)) } else { None }
    }
}

/// A box that only the host `H` understands, inside an image.
///
/// Only this module makes one, from an image that contains it. So code with a `HostBox` can rely on
/// two facts: the words are those that the [`HostTerm`] of this host wrote, and the resource is
/// alive as long as the borrow.
pub struct HostBox<'a, H> {
    tag: HostTag,
    words: &'a [u64],
    host: PhantomData<H>,
}

impl<'a, H> HostBox<'a, H> {
    pub(super) fn new(tag: HostTag, words: &'a [u64]) -> Self {
        Self {
            tag,
            words,
            host: PhantomData,
        }
    }

    /// Returns the tag that the host gave the box.
    pub fn tag(self) -> HostTag {
        self.tag
    }

    /// Returns the words that the host wrote.
    pub fn words(self) -> &'a [u64] {
        self.words
    }
}

// Written out because a derive would ask for `H: Clone`.
impl<H> Clone for HostBox<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for HostBox<'_, H> {}

impl<H> fmt::Debug for HostBox<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBox({:#04x}, {:x?})", self.tag.0, self.words)
    }
}

/// Kinds of host boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// A bitstring of this many bits.
    Bits(usize),
    /// A process identifier.
    Pid,
    /// A port identifier.
    Port,
    /// A reference.
    Ref,
    /// A closure.
    LocalFun,
    /// `fun M:F/A`.
    ExternalFun,
    /// A term visible only through the external term format.
    Opaque,
}

/// The operations that images need from their host.
///
/// All functions may be called from any thread. The `with_*` functions lend data that may exist
/// only during the call; calling one on a box of another kind is a bug of the caller and may panic.
pub trait Host: Copy + 'static {
    /// Terms of the host outside of images.
    type Term<'a>: HostTerm<Host = Self>;

    /// Returns the kind of a box.
    fn kind(host_box: HostBox<'_, Self>) -> HostKind;

    /// Lends the bytes of a bitstring; the unused low bits of the last byte are zero.
    fn with_bits<R>(host_box: HostBox<'_, Self>, f: impl FnOnce(&[u8]) -> R) -> R;

    /// Lends the identity of a pid, port or reference.
    fn with_ident<R>(host_box: HostBox<'_, Self>, f: impl FnOnce(Ident<'_>) -> R) -> R;

    /// Lends the identity of a fun.
    fn with_fun<R>(host_box: HostBox<'_, Self>, f: impl FnOnce(FunIdent<'_>) -> R) -> R;

    /// Lends the known facts about an opaque term.
    fn with_opaque<R>(host_box: HostBox<'_, Self>, f: impl FnOnce(Opaque<'_>) -> R) -> R;

    /// Lends the text of the atom with this slot.
    fn with_atom<R>(slot: u64, f: impl FnOnce(&str) -> R) -> R;

    /// Lends the identity of the local pid or port with this slot.
    fn with_local<R>(slot: u64, f: impl FnOnce(Ident<'_>) -> R) -> R;

    /// Returns `true` if two boxes are the same term (`=:=`). Boxes with equal words always are the
    /// same.
    fn same(a: HostBox<'_, Self>, b: HostBox<'_, Self>) -> bool;

    /// Adds one unit of ownership to the resource of an owning box, for a copy of its words.
    fn retain(host_box: HostBox<'_, Self>);

    /// Returns the approximate number of bytes that the resource of an owning box keeps allocated,
    /// and that the last unit of ownership frees. A host that cannot know returns an estimate.
    fn kept_bytes(host_box: HostBox<'_, Self>) -> usize;

    /// Returns the address of the resource of an owning box: boxes with the same address keep the
    /// same memory allocated.
    fn resource(host_box: HostBox<'_, Self>) -> u64 {
        host_box.words()[0]
    }

    /// Gives up one unit of ownership of an owning box.
    ///
    /// # Safety
    /// The caller must own a unit, and no code may use these words after the call (IMAGE-5 of the
    /// [module](super)).
    unsafe fn release(host_box: HostBox<'_, Self>);
}

/// A term that can be written to an image: it knows how its host stores terms which an image only
/// refers to.
///
/// # Safety
/// The words that the `write_*` functions append under a tag must be those that [`Host`] expects
/// under that tag: the host may follow pointers in them. An owning tag transfers exactly one unit
/// of ownership to the image. `Host` must understand all slots that [`TermRef::immediate`] returns.
pub unsafe trait HostTerm: TermRef {
    /// The host of the term.
    type Host: Host;

    /// Number of bits above which a bitstring is offered to the host.
    const LARGE_BITS: usize = 8 * 1024;

    /// Appends the words of a pid, port, reference or fun that is not immediate, or of an opaque
    /// term, and returns the tag of its box. `kind` is never [`HostKind::Bits`].
    fn write_identity(self, kind: HostKind, out: &mut Vec<u64>) -> HostTag;

    /// Appends the words of a large bitstring and returns the tag of its box. Returns `None`, and
    /// appends nothing, if the image should copy the bytes.
    fn write_large_bits(self, bits: usize, out: &mut Vec<u64>) -> Option<HostTag>;
}

/// A [`TermSink`] that can build terms from the boxes of host `H`.
pub trait HostSink<H: Host>: TermSink {
    /// Builds the term in a host box.
    fn host_box(&mut self, host_box: HostBox<'_, H>) -> Self::Term;

    /// Builds a tuple of immediates, given by their words. A sink whose terms are words may copy
    /// them.
    fn tuple_of_immediates(&mut self, words: &[u64]) -> Self::Term {
        let elements: Vec<_> = words.iter().map(|word| self.immediate(*word)).collect();
        self.tuple(&elements)
    }
}
