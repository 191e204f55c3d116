//! Errors of the decoder.

use std::fmt;

use crate::atom::AtomError;

/// The reason why bytes are not a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Position in the input of the wrong field or tag.
    pub offset: usize,
    /// The kind of fault.
    pub kind: DecodeErrorKind,
}

/// Kinds of faults in encoded terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The first byte is not the version, 131.
    BadVersion,
    /// A field extends beyond the end of the input.
    Truncated,
    /// Bytes follow the term.
    TrailingBytes,
    /// The tag is unknown.
    UnknownTag(u8),
    /// A compressed term, which is not supported.
    Compressed,
    /// A term that only the VM that wrote it can read.
    Local,
    /// The text of an atom is too long, or there is no room for another atom.
    Atom(AtomError),
    /// The text of an atom is not UTF-8.
    AtomText,
    /// An atom that does not exist, when only existing ones may be read.
    UnknownAtom,
    /// More new atoms than allowed.
    TooManyAtoms,
    /// A float that is not finite, or not a number at all.
    BadFloat,
    /// The number of used bits of the last byte is impossible.
    BadBits,
    /// A key occurs twice in a map.
    DuplicateKey,
    /// A reference without numbers or with too many.
    BadReference,
    /// A field of a fun has a wrong value.
    BadFun,
    /// The flags of a native record have a value that is reserved.
    BadRecord,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use DecodeErrorKind as Kind;
        match self.kind {
            Kind::BadVersion => f.write_str("version is not 131"),
            Kind::Truncated => f.write_str("input ends within a term"),
            Kind::TrailingBytes => f.write_str("bytes after the term"),
            Kind::UnknownTag(tag) => write!(f, "unknown tag {tag}"),
            Kind::Compressed => f.write_str("compressed terms are not supported"),
            Kind::Local => f.write_str("term is local to the machine that wrote it"),
            Kind::Atom(error) => error.fmt(f),
            Kind::AtomText => f.write_str("atom is not UTF-8"),
            Kind::UnknownAtom => f.write_str("atom does not exist"),
            Kind::TooManyAtoms => f.write_str("too many new atoms"),
            Kind::BadFloat => f.write_str("not a finite float"),
            Kind::BadBits => f.write_str("bad number of bits in the last byte"),
            Kind::DuplicateKey => f.write_str("duplicate map key"),
            Kind::BadReference => f.write_str("bad number of words in a reference"),
            Kind::BadFun => f.write_str("bad field of a fun"),
            Kind::BadRecord => f.write_str("bad flags of a native record"),
        }?;
        write!(f, " at byte {}", self.offset)
    }
}

impl std::error::Error for DecodeError {}
