//! Merges of terms as a merge operator of stores of bytes.
//!
//! Values are terms in the [external term format](etf), each with its version byte. They are merged as a
//! [`Merge`] says: read, made images, merged there, and written again. What is frequent and simple is merged as the
//! bytes stand: integers of 64 bits, also in vectors, binaries that are put one behind the other, and merges that keep
//! one of the two whatever they are.

use ats_merge::{Merge, Merged, Simple};
use ats_store::{Error, MergeOperator, Merged as MergedBytes};
use ats_term::image::{ImageBuilder, TermHost};
use ats_term::term::Tuple;
use ats_term::{Term, Zeros, etf};

/// A [`Merge`] as an operator over terms in the external term format.
///
/// Its name says what the merge is: `ats.sum`, or `ats.vector(sum,max)`. The version is 1. What is refused is
/// [`Error::Merge`]: bytes that are no term, and values that are not of the kind of the merge.
///
/// ```
/// use ats::{Merge, PortableMerge};
/// use ats_store::{MergeOperator, Merged};
/// use ats_term::{Atom, Term, Zeros, etf};
///
/// let merge = Merge::from_term(&Term::Atom(Atom::new("sum").unwrap())).unwrap();
/// let sum = PortableMerge::new(merge, Zeros::Distinct);
/// let [two, three, five] = [2, 3, 5].map(|number| etf::encode(&Term::from(number)).unwrap());
/// assert_eq!(sum.name(), "ats.sum");
/// assert_eq!(sum.merge(b"key", &two, &three), Ok(Merged::New(five)));
/// ```
#[derive(Clone, Debug)]
pub struct PortableMerge {
    merge: Merge,
    zeros: Zeros,
    name: String,
}

impl PortableMerge {
    /// The operator of a merge. `zeros` says which keys of maps are the same. Where that matters and it is not
    /// [`Zeros::Distinct`], the name says so.
    #[must_use]
    pub fn new(merge: Merge, zeros: Zeros) -> Self {
        let (merges, mut name) = match &merge {
            Merge::Simple(merge) => (&[*merge][..], format!("ats.{}", simple_name(*merge))),
            Merge::Vector(merges) => {
                let names: Vec<_> = merges.iter().map(|merge| simple_name(*merge)).collect();
                (&merges[..], format!("ats.vector({})", names.join(",")))
            }
        };
        let compares = |merge: &Simple| matches!(merge, Simple::Min | Simple::Max | Simple::Union);
        if zeros == Zeros::Same && merges.iter().any(compares) {
            name.push_str(",zeros=same");
        }
        PortableMerge { name, merge, zeros }
    }

    /// Whether these bytes are a value of the merge, and so may be written. O(size).
    #[must_use]
    pub fn takes(&self, value: &[u8]) -> bool {
        let Ok(term) = term(value) else { return false };
        let object = Term::Tuple(Tuple::new(vec![term]));
        let mut image = ImageBuilder::<&Term>::new(self.zeros);
        let is_image = image.encode_object(&object).is_ok();
        is_image && self.merge.takes(image.object().element(0), self.zeros)
    }

    /// Merges values that have to be read.
    fn merge_terms(&self, earlier: &[u8], later: &[u8]) -> Result<MergedBytes, Error> {
        let pair = Term::Tuple(Tuple::new(vec![term(earlier)?, term(later)?]));
        let mut image = ImageBuilder::<&Term>::new(self.zeros);
        image.encode_object(&pair).map_err(|_| Error::Merge)?;
        let object = image.object();
        let merged: Merged<'_, TermHost> = self
            .merge
            .merge(object.element(0), object.element(1), self.zeros)
            .map_err(|_| Error::Merge)?;
        Ok(match merged {
            Merged::Earlier(_) => MergedBytes::Earlier,
            Merged::Later(_) => MergedBytes::Later,
            made => {
                let mut bytes = Vec::with_capacity(earlier.len() + later.len());
                etf::encode_into(made.term(), &mut bytes).map_err(|_| Error::Merge)?;
                MergedBytes::New(bytes)
            }
        })
    }
}

impl MergeOperator for PortableMerge {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn merge(&self, _key: &[u8], earlier: &[u8], later: &[u8]) -> Result<MergedBytes, Error> {
        let merged = match &self.merge {
            Merge::Simple(merge) => merge_bytes(*merge, earlier, later),
            Merge::Vector(merges) => merge_vectors(merges, earlier, later),
        };
        merged.map_or_else(|| self.merge_terms(earlier, later), Ok)
    }

    /// Whatever is written `last` needs nothing older.
    fn is_base(&self, _key: &[u8], _value: &[u8]) -> bool {
        matches!(self.merge, Merge::Simple(Simple::Last))
    }
}

fn simple_name(merge: Simple) -> &'static str {
    match merge {
        Simple::Sum => "sum",
        Simple::Min => "min",
        Simple::Max => "max",
        Simple::First => "first",
        Simple::Last => "last",
        Simple::Append => "append",
        Simple::Union => "union",
    }
}

/// The term that a value is.
fn term(value: &[u8]) -> Result<Term, Error> {
    let options = etf::Options {
        atoms: etf::Atoms::New { limit: usize::MAX },
    };
    etf::decode(value, options).map_err(|_| Error::Merge)
}

/// Merges values as their bytes stand; `None` if they have to be read.
fn merge_bytes(merge: Simple, earlier: &[u8], later: &[u8]) -> Option<MergedBytes> {
    let integers = || Some((integer(earlier)?, integer(later)?));
    match merge {
        Simple::First => Some(MergedBytes::Earlier),
        Simple::Last => Some(MergedBytes::Later),
        Simple::Sum => {
            let (earlier, later) = integers()?;
            let sum = earlier.checked_add(later)?;
            let mut bytes = Vec::with_capacity(16);
            bytes.push(VERSION);
            push_integer(sum, &mut bytes);
            Some(MergedBytes::New(bytes))
        }
        Simple::Min | Simple::Max => {
            let (earlier, later) = integers()?;
            Some(match merge {
                Simple::Min if later < earlier => MergedBytes::Later,
                Simple::Max if later > earlier => MergedBytes::Later,
                _ => MergedBytes::Earlier,
            })
        }
        Simple::Append => {
            let (earlier, later) = (binary(earlier)?, binary(later)?);
            let len = u32::try_from(earlier.len() + later.len()).ok()?;
            Some(MergedBytes::New(
                [&BINARY[..], &len.to_be_bytes(), earlier, later].concat(),
            ))
        }
        Simple::Union => None,
    }
}

/// Merges tuples of integers as their bytes stand; `None` if they have to be read.
fn merge_vectors(merges: &[Simple], earlier: &[u8], later: &[u8]) -> Option<MergedBytes> {
    let arity = u8::try_from(merges.len()).ok()?;
    let head = [VERSION, SMALL_TUPLE, arity];
    let mut earlier = earlier.strip_prefix(&head)?;
    let mut later = later.strip_prefix(&head)?;
    let mut bytes = Vec::with_capacity(head.len() + earlier.len().max(later.len()) + 8);
    bytes.extend_from_slice(&head);
    for merge in merges {
        let (a, b) = (take_integer(&mut earlier)?, take_integer(&mut later)?);
        let merged = match merge {
            Simple::Sum => a.checked_add(b)?,
            Simple::Min => a.min(b),
            Simple::Max => a.max(b),
            Simple::First => a,
            Simple::Last => b,
            Simple::Append | Simple::Union => return None,
        };
        push_integer(merged, &mut bytes);
    }
    (earlier.is_empty() && later.is_empty()).then_some(MergedBytes::New(bytes))
}

/// What a term begins with in the external term format: the version, and the tags.
const VERSION: u8 = 131;
const SMALL_INTEGER: u8 = 97;
const INTEGER: u8 = 98;
const SMALL_TUPLE: u8 = 104;
const SMALL_BIG: u8 = 110;
const BINARY: [u8; 2] = [VERSION, 109];

/// The integer that a value is, if it is one of 64 bits.
fn integer(value: &[u8]) -> Option<i64> {
    let mut rest = value.strip_prefix(&[VERSION])?;
    let integer = take_integer(&mut rest)?;
    rest.is_empty().then_some(integer)
}

/// Takes an integer of 64 bits off the bytes of terms, if they begin with one.
fn take_integer(bytes: &mut &[u8]) -> Option<i64> {
    let (tag, rest) = bytes.split_first()?;
    let (value, rest) = match *tag {
        SMALL_INTEGER => {
            let (value, rest) = rest.split_first()?;
            (i64::from(*value), rest)
        }
        INTEGER => {
            let (value, rest) = rest.split_first_chunk()?;
            (i64::from(i32::from_be_bytes(*value)), rest)
        }
        SMALL_BIG => {
            let ([len, sign], rest) = rest.split_first_chunk()?;
            let (digits, rest) = rest.split_at_checked(usize::from(*len))?;
            let mut magnitude = [0; 8];
            magnitude.get_mut(..digits.len())?.copy_from_slice(digits);
            let magnitude = i128::from(u64::from_le_bytes(magnitude));
            let value = match sign {
                0 => magnitude,
                1 => -magnitude,
                _ => return None,
            };
            (i64::try_from(value).ok()?, rest)
        }
        _ => return None,
    };
    *bytes = rest;
    Some(value)
}

/// Appends an integer as [`etf::encode`] writes it within a term.
fn push_integer(value: i64, out: &mut Vec<u8>) {
    if let Ok(value) = u8::try_from(value) {
        out.extend_from_slice(&[SMALL_INTEGER, value]);
    } else if let Ok(value) = i32::try_from(value) {
        out.push(INTEGER);
        out.extend_from_slice(&value.to_be_bytes());
    } else {
        let magnitude = value.unsigned_abs().to_le_bytes();
        let len = (u64::BITS - value.unsigned_abs().leading_zeros()).div_ceil(u8::BITS) as u8;
        out.extend_from_slice(&[SMALL_BIG, len, u8::from(value < 0)]);
        out.extend_from_slice(&magnitude[..usize::from(len)]);
    }
}

/// The bytes of the binary that a value is, if it is one.
fn binary(value: &[u8]) -> Option<&[u8]> {
    let (len, bytes) = value.strip_prefix(&BINARY)?.split_first_chunk()?;
    let is_whole = u32::from_be_bytes(*len) as usize == bytes.len();
    is_whole.then_some(bytes)
}
