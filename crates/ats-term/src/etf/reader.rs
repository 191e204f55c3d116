//! Decoder of terms without parts (numbers, atoms, identifiers, bytes) and of the heads of compound
//! terms.

use super::error::{DecodeError, DecodeErrorKind};
use super::tag;
use crate::atom::Atom;
use crate::term::{Bits, ExternalFun, Float, Identifier, LocalFun, Term};

/// The atoms that may be read. Atoms are never freed, so untrusted input must not create them
/// without a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atoms {
    /// Only existing atoms.
    Existing,
    /// Existing atoms, and up to this number of new ones in one term.
    New {
        /// Largest number of new atoms.
        limit: usize,
    },
}

/// Up to 1000 new atoms.
impl Default for Atoms {
    fn default() -> Atoms {
        Atoms::New { limit: 1000 }
    }
}

/// The result of reading a part of a term.
pub(super) type Decoded<T> = Result<T, DecodeError>;

/// The fields of a fun that precede its captured values.
pub(super) struct FunHead {
    pub(super) arity: u8,
    pub(super) uniq: [u8; 16],
    pub(super) index: u32,
    pub(super) module: Atom,
    pub(super) old_index: u32,
    pub(super) old_uniq: u32,
    pub(super) creator: Identifier,
    /// End of the fun according to its size field.
    pub(super) end: usize,
}

impl FunHead {
    pub(super) fn fun(self, free: Vec<Term>) -> LocalFun {
        LocalFun::new(
            self.module,
            self.arity,
            self.index,
            self.uniq,
            self.old_index,
            self.old_uniq,
            self.creator,
            free,
        )
    }
}

/// The fields of a native record that precede its values.
pub(super) struct RecordHead {
    pub(super) module: Atom,
    pub(super) name: Atom,
    pub(super) exported: bool,
    pub(super) fields: Vec<Atom>,
}

/// The input and the position in it.
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    pub(super) position: usize,
    /// Number of atoms that may still be created; `None` if only existing ones may be read.
    new_atoms: Option<usize>,
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8], atoms: Atoms) -> Self {
        let new_atoms = match atoms {
            Atoms::Existing => None,
            Atoms::New { limit } => Some(limit),
        };
        Reader {
            bytes,
            position: 0,
            new_atoms,
        }
    }

    pub(super) fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError {
            offset: self.position,
            kind,
        }
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    fn take(&mut self, count: usize) -> Decoded<&'b [u8]> {
        let rest = &self.bytes[self.position..];
        let Some(taken) = rest.get(..count) else {
            return Err(self.error(DecodeErrorKind::Truncated));
        };
        self.position += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Decoded<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Decoded<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Decoded<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn length(&mut self) -> Decoded<usize> {
        self.u32().map(|length| length as usize)
    }

    /// Reads a term without parts, whose tag was read at `offset`.
    pub(super) fn simple(&mut self, tag: u8, offset: usize) -> Decoded<Term> {
        let error = |kind| Err(DecodeError { offset, kind });
        Ok(match tag {
            tag::SMALL_INTEGER => Term::from(self.byte()?),
            tag::INTEGER => Term::from(i32::from_be_bytes(self.array()?)),
            tag::SMALL_BIG => {
                let length = usize::from(self.byte()?);
                self.big(length)?
            }
            tag::LARGE_BIG => {
                let length = self.length()?;
                self.big(length)?
            }
            tag::NEW_FLOAT => match Float::new(f64::from_be_bytes(self.array()?)) {
                Ok(float) => Term::Float(float),
                Err(_) => return error(DecodeErrorKind::BadFloat),
            },
            tag::FLOAT => match text_float(self.array()?) {
                Some(float) => Term::Float(float),
                None => return error(DecodeErrorKind::BadFloat),
            },
            tag::ATOM | tag::SMALL_ATOM | tag::ATOM_UTF8 | tag::SMALL_ATOM_UTF8 => {
                Term::Atom(self.atom_with_tag(tag, offset)?)
            }
            tag::NIL => Term::Nil,
            tag::STRING => {
                let length = self.u16()?;
                let bytes = self.take(usize::from(length))?;
                Term::list_with_tail(bytes.iter().map(|&byte| Term::from(byte)), Term::Nil)
            }
            tag::BINARY => {
                let length = self.length()?;
                Term::binary(self.take(length)?)
            }
            tag::BIT_BINARY => match self.bits()? {
                Some(bits) => Term::Bits(bits),
                None => return error(DecodeErrorKind::BadBits),
            },
            tag::PID | tag::NEW_PID => Term::Pid(self.pid(tag)?),
            tag::PORT | tag::NEW_PORT | tag::V4_PORT => Term::Port(self.port(tag)?),
            tag::REFERENCE | tag::NEW_REFERENCE | tag::NEWER_REFERENCE => {
                Term::Ref(self.reference(tag, offset)?)
            }
            tag::EXPORT => self.external_fun(offset)?,
            tag::COMPRESSED => return error(DecodeErrorKind::Compressed),
            tag::LOCAL => return error(DecodeErrorKind::Local),
            tag => return error(DecodeErrorKind::UnknownTag(tag)),
        })
    }

    fn big(&mut self, length: usize) -> Decoded<Term> {
        let negative = self.byte()? != 0;
        Ok(Term::integer(negative, self.take(length)?))
    }

    fn bits(&mut self) -> Decoded<Option<Bits>> {
        let length = self.length()?;
        let used = usize::from(self.byte()?);
        let bytes = self.take(length)?;
        if used > 8 || (used == 0) != (length == 0) {
            return Ok(None);
        }
        let bits = if length == 0 {
            0
        } else {
            (length - 1) * 8 + used
        };
        Ok(Bits::new(bytes, bits))
    }

    fn atom(&mut self) -> Decoded<Atom> {
        let offset = self.position;
        let tag = self.byte()?;
        self.atom_with_tag(tag, offset)
    }

    fn atom_with_tag(&mut self, tag: u8, offset: usize) -> Decoded<Atom> {
        let error = |kind| DecodeError { offset, kind };
        let length = match tag {
            tag::ATOM | tag::ATOM_UTF8 => usize::from(self.u16()?),
            tag::SMALL_ATOM | tag::SMALL_ATOM_UTF8 => usize::from(self.byte()?),
            tag => return Err(error(DecodeErrorKind::UnknownTag(tag))),
        };
        let bytes = self.take(length)?;
        match tag {
            tag::ATOM | tag::SMALL_ATOM => {
                // Latin 1 is the first 256 code points.
                let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
                self.intern(&text)
            }
            _ => std::str::from_utf8(bytes)
                .map_err(|_| DecodeErrorKind::AtomText)
                .and_then(|text| self.intern(text)),
        }
        .map_err(error)
    }

    fn intern(&mut self, text: &str) -> Result<Atom, DecodeErrorKind> {
        if let Some(atom) = Atom::existing(text) {
            return Ok(atom);
        }
        let left = self
            .new_atoms
            .as_mut()
            .ok_or(DecodeErrorKind::UnknownAtom)?;
        *left = left.checked_sub(1).ok_or(DecodeErrorKind::TooManyAtoms)?;
        Atom::new(text).map_err(DecodeErrorKind::Atom)
    }

    /// Reads the creation in an identifier with this tag: one byte in older ones.
    fn creation(&mut self, tag: u8) -> Decoded<u32> {
        match tag {
            tag::PID | tag::PORT | tag::REFERENCE | tag::NEW_REFERENCE => {
                self.byte().map(u32::from)
            }
            _ => self.u32(),
        }
    }

    fn pid(&mut self, tag: u8) -> Decoded<Identifier> {
        let node = self.atom()?;
        let (number, serial) = (self.u32()?, self.u32()?);
        let creation = self.creation(tag)?;
        self.identifier(node, creation, &[serial, number])
    }

    fn port(&mut self, tag: u8) -> Decoded<Identifier> {
        let node = self.atom()?;
        let high = if tag == tag::V4_PORT { self.u32()? } else { 0 };
        let low = self.u32()?;
        let creation = self.creation(tag)?;
        self.identifier(node, creation, &[high, low])
    }

    /// Reads a reference. The format has the least significant number first.
    fn reference(&mut self, tag: u8, offset: usize) -> Decoded<Identifier> {
        if tag == tag::REFERENCE {
            let (node, number) = (self.atom()?, self.u32()?);
            let creation = self.creation(tag)?;
            return self.identifier(node, creation, &[number]);
        }
        let count = usize::from(self.u16()?);
        let node = self.atom()?;
        let creation = self.creation(tag)?;
        let mut numbers = [0; Identifier::MAX_NUMBERS];
        let Some(numbers) = numbers.get_mut(..count) else {
            return Err(DecodeError {
                offset,
                kind: DecodeErrorKind::BadReference,
            });
        };
        for number in numbers.iter_mut().rev() {
            *number = self.u32()?;
        }
        self.identifier(node, creation, numbers)
    }

    fn identifier(&self, node: Atom, creation: u32, numbers: &[u32]) -> Decoded<Identifier> {
        Identifier::new(node, creation, numbers)
            .ok_or_else(|| self.error(DecodeErrorKind::BadReference))
    }

    fn external_fun(&mut self, offset: usize) -> Decoded<Term> {
        let (module, function) = (self.atom()?, self.atom()?);
        if self.byte()? != tag::SMALL_INTEGER {
            return Err(DecodeError {
                offset,
                kind: DecodeErrorKind::BadFun,
            });
        }
        let arity = self.byte()?;
        Ok(Term::ExternalFun(ExternalFun {
            module,
            function,
            arity,
        }))
    }

    /// Reads the fields of a fun, and the number of its captured values.
    pub(super) fn fun_head(&mut self) -> Decoded<(FunHead, usize)> {
        let start = self.position;
        let end = start.saturating_add(self.length()?);
        let arity = self.byte()?;
        let uniq = self.array()?;
        let index = self.u32()?;
        let free = self.length()?;
        let module = self.atom()?;
        let old_index = self.fun_number()?;
        let old_uniq = self.fun_number()?;
        let offset = self.position;
        let creator = match self.byte()? {
            tag @ (tag::PID | tag::NEW_PID) => self.pid(tag)?,
            _ => {
                return Err(DecodeError {
                    offset,
                    kind: DecodeErrorKind::BadFun,
                });
            }
        };
        let head = FunHead {
            arity,
            uniq,
            index,
            module,
            old_index,
            old_uniq,
            creator,
            end,
        };
        Ok((head, free))
    }

    /// Reads the fields of a native record that precede its values.
    pub(super) fn record_head(&mut self) -> Decoded<RecordHead> {
        let count = self.length()?;
        let exported = match self.byte()? {
            0 => false,
            1 => true,
            _ => return Err(self.error(DecodeErrorKind::BadRecord)),
        };
        let (module, name) = (self.atom()?, self.atom()?);
        // Every name takes at least a byte, so a false count is rejected before memory is
        // allocated.
        if count > self.remaining() {
            return Err(self.error(DecodeErrorKind::Truncated));
        }
        let fields = (0..count).map(|_| self.atom()).collect::<Decoded<_>>()?;
        Ok(RecordHead {
            module,
            name,
            exported,
            fields,
        })
    }

    /// Reads a number of 32 bits in a fun, which is encoded as a term and may be signed or
    /// unsigned.
    fn fun_number(&mut self) -> Decoded<u32> {
        let offset = self.position;
        let tag = self.byte()?;
        let value = match tag {
            tag::SMALL_INTEGER | tag::INTEGER | tag::SMALL_BIG => self.simple(tag, offset)?,
            _ => Term::Nil,
        };
        value
            .as_int()
            .and_then(|i| {
                u32::try_from(i)
                    .ok()
                    .or_else(|| i32::try_from(i).ok().map(|i| i as u32))
            })
            .ok_or(DecodeError {
                offset,
                kind: DecodeErrorKind::BadFun,
            })
    }
}

/// Parses a float in the older format: decimal text, padded with zero bytes.
fn text_float(bytes: [u8; 31]) -> Option<Float> {
    let text = bytes.split(|&byte| byte == 0).next()?;
    let text = std::str::from_utf8(text).ok()?.trim();
    Float::new(text.parse().ok()?).ok()
}
