//! Decoder of the external term format, for untrusted bytes.

use super::error::{DecodeError, DecodeErrorKind};
use super::reader::{Atoms, Decoded, FunHead, Reader, RecordHead};
use super::tag::{self, VERSION};
use crate::term::{Map, NativeRecord, Term, Tuple};

/// Options of the decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The policy for atoms.
    pub atoms: Atoms,
}

impl Options {
    /// Options for bytes written by this library or a virtual machine: their atoms exist, so any
    /// number of them may be read.
    pub const TRUSTED: Self = Options {
        atoms: Atoms::New { limit: usize::MAX },
    };
}

/// Decodes a term. O(size) plus the sorting of map keys, not recursive.
///
/// # Errors
/// Returns a [`DecodeError`] if the bytes are no term, if further bytes follow, or if `options`
/// forbid the term.
pub fn decode(bytes: &[u8], options: Options) -> Result<Term, DecodeError> {
    let (term, length) = decode_first(bytes, options)?;
    if length < bytes.len() {
        return Err(DecodeError {
            offset: length,
            kind: DecodeErrorKind::TrailingBytes,
        });
    }
    Ok(term)
}

/// Decodes the term at the beginning of the bytes and returns it with its length in bytes.
///
/// # Errors
/// Like [`decode`], but further bytes may follow.
pub fn decode_first(bytes: &[u8], options: Options) -> Result<(Term, usize), DecodeError> {
    let mut reader = Reader::new(bytes, options.atoms);
    if reader.byte()? != VERSION {
        return Err(DecodeError {
            offset: 0,
            kind: DecodeErrorKind::BadVersion,
        });
    }
    let term = Decoder {
        reader: &mut reader,
        done: Vec::new(),
        frames: Vec::new(),
    }
    .run()?;
    Ok((term, reader.position))
}

/// Decodes the closure at the beginning of the bytes even if its captured values cannot be decoded:
/// they become one captured value, the binary of their bytes.
///
/// # Errors
/// Returns a [`DecodeError`] if the bytes do not begin with a complete closure.
pub fn decode_sealed_fun(bytes: &[u8], options: Options) -> Result<Term, DecodeError> {
    let mut reader = Reader::new(bytes, options.atoms);
    let version = reader.byte()?;
    if (version, reader.byte()?) != (VERSION, tag::NEW_FUN) {
        return Err(reader.error(DecodeErrorKind::BadFun));
    }
    let (head, _) = reader.fun_head()?;
    let captured = bytes.get(reader.position..head.end);
    let captured = captured.ok_or(reader.error(DecodeErrorKind::Truncated))?;
    Ok(Term::LocalFun(head.fun(vec![Term::binary(captured)])))
}

/// A compound term with parts still to be read.
struct Frame {
    /// Number of missing parts.
    missing: usize,
    /// Number of parts in all.
    parts: usize,
    /// Position of the tag, for errors.
    offset: usize,
    compound: Compound,
}

/// The meaning of the parts.
enum Compound {
    Tuple,
    /// The elements, then the tail.
    List,
    /// Keys and values alternately.
    Map,
    Fun(Box<FunHead>),
    Record(Box<RecordHead>),
}

struct Decoder<'r, 'b> {
    reader: &'r mut Reader<'b>,
    /// Parts of unfinished compound terms.
    done: Vec<Term>,
    frames: Vec<Frame>,
}

impl Decoder<'_, '_> {
    fn run(mut self) -> Decoded<Term> {
        loop {
            if let Some(term) = self.term()? {
                self.done.push(term);
                if let Some(top) = self.frames.last_mut() {
                    top.missing -= 1;
                }
            }
            while self.frames.last().is_some_and(|frame| frame.missing == 0) {
                self.finish_frame()?;
            }
            if self.frames.is_empty()
                && let Some(term) = self.done.pop()
            {
                return Ok(term);
            }
        }
    }

    /// Builds the innermost compound term from its parts.
    fn finish_frame(&mut self) -> Decoded<()> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        let mut parts = self.done.split_off(self.done.len() - frame.parts);
        let term = match frame.compound {
            Compound::Tuple => Term::Tuple(Tuple::new(parts)),
            Compound::List => {
                let tail = parts.pop().unwrap_or(Term::Nil);
                Term::list_with_tail(parts, tail)
            }
            Compound::Map => {
                let mut parts = parts.into_iter();
                let pairs = std::iter::from_fn(|| Some((parts.next()?, parts.next()?))).collect();
                let duplicate = DecodeError {
                    offset: frame.offset,
                    kind: DecodeErrorKind::DuplicateKey,
                };
                Term::Map(Map::new(pairs).map_err(|_| duplicate)?)
            }
            Compound::Fun(head) => self.fun(*head, frame.offset, parts)?,
            Compound::Record(head) => Term::NativeRecord(NativeRecord::new(
                head.module,
                head.name,
                head.exported,
                head.fields.into_iter().zip(parts),
            )),
        };
        self.done.push(term);
        if let Some(top) = self.frames.last_mut() {
            top.missing -= 1;
        }
        Ok(())
    }

    fn fun(&self, head: FunHead, offset: usize, free: Vec<Term>) -> Decoded<Term> {
        if self.reader.position != head.end {
            return Err(DecodeError {
                offset,
                kind: DecodeErrorKind::BadFun,
            });
        }
        Ok(Term::LocalFun(head.fun(free)))
    }

    /// Reads a term without parts and returns it, or begins one with parts and returns `None`.
    fn term(&mut self) -> Decoded<Option<Term>> {
        let offset = self.reader.position;
        let reader = &mut *self.reader;
        let (compound, parts) = match reader.byte()? {
            tag::SMALL_TUPLE => (Compound::Tuple, usize::from(reader.byte()?)),
            tag::LARGE_TUPLE => (Compound::Tuple, reader.length()?),
            tag::LIST => (Compound::List, reader.length()?.saturating_add(1)),
            tag::MAP => (Compound::Map, reader.length()?.saturating_mul(2)),
            tag::NEW_FUN => {
                let (head, free) = reader.fun_head()?;
                (Compound::Fun(Box::new(head)), free)
            }
            tag::RECORD => {
                let head = reader.record_head()?;
                let fields = head.fields.len();
                (Compound::Record(Box::new(head)), fields)
            }
            tag => return reader.simple(tag, offset).map(Some),
        };
        // Every part takes at least a byte, so a false count is rejected before memory is
        // allocated.
        if parts > reader.remaining() {
            return Err(reader.error(DecodeErrorKind::Truncated));
        }
        self.frames.push(Frame {
            missing: parts,
            parts,
            offset,
            compound,
        });
        Ok(None)
    }
}
