//! Merges of terms as merge operators of stores of bytes.
//!
//! Values are terms in the [external term format](etf), each with its version byte. A general
//! [`Merge`] decodes them to images, merges the images, and encodes the result. Frequent simple
//! values are merged without decoding: integers of 64 bits, also in vectors, in statistics, and as
//! timestamps; binaries that are concatenated; and all values if the merge keeps the first or the
//! last one.

use ats_merge::{Merge, Merged, Simple};
use ats_store::{Error, MergeOperator, Merged as MergedBytes};
use ats_term::image::{ImageBuilder, Object, TermHost};
use ats_term::term::Tuple;
use ats_term::{Term, Zeros, etf};
use std::borrow::Cow;

/// A [`Merge`] as an operator on terms in the external term format.
///
/// Its name describes the merge: `ats.sum`, or `ats.vector(sum,last(2))`. The version is 1. It
/// returns [`Error::Merge`] for bytes that are not a term, and for values that are not of the kind
/// of the merge.
///
/// [`value`](PortableMerge::value) checks a value before it is written to a store, and expands it
/// to the form that it must have if no other value is merged with it.
///
/// ```
/// use ats::terms::{Merge, PortableMerge};
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
    /// Maximum length of a value that may count as missing.
    most_of_absent: usize,
}

impl PortableMerge {
    /// Returns the operator of a merge. `zeros` selects which keys of maps are equal. If the merge
    /// depends on it, and it is not [`Zeros::Distinct`], the name includes it.
    #[must_use]
    pub fn new(merge: Merge, zeros: Zeros) -> Self {
        let mut name = format!("ats.{merge}");
        if zeros == Zeros::Same && merge.depends_on_zeros() {
            name.push_str(",zeros=same");
        }
        PortableMerge {
            most_of_absent: most_of_empty(&merge),
            name,
            merge,
            zeros,
        }
    }

    /// Returns `true` if these bytes are a value of the merge, and may be written. O(size).
    #[must_use]
    pub fn takes(&self, value: &[u8]) -> bool {
        self.value(value).is_some()
    }

    /// Returns the bytes to write for a value, so that it is right even if no other value is merged
    /// with it: the value itself, or the [statistics](Merge::expand) of a number. `None` if the
    /// merge does not accept the value. O(size).
    #[must_use]
    pub fn value<'v>(&self, value: &'v [u8]) -> Option<Cow<'v, [u8]>> {
        let object = Term::Tuple(Tuple::new(vec![term(value).ok()?]));
        let mut image = ImageBuilder::<&Term>::new(self.zeros);
        image.encode_object(&object).ok()?;
        let object: Object<'_, TermHost> = image.object();
        if !self.merge.accepts(object.element(0), self.zeros) {
            return None;
        }
        Some(match self.merge.expand(object.element(0)) {
            Merged::Earlier(_) | Merged::Later(_) => Cow::Borrowed(value),
            made => {
                let mut bytes = Vec::with_capacity(value.len());
                etf::encode_into(made.term(), &mut bytes).ok()?;
                Cow::Owned(bytes)
            }
        })
    }

    /// Merges values by decoding them.
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
        let merged = merge_bytes(&self.merge, earlier, later);
        merged.map_or_else(|| self.merge_terms(earlier, later), Ok)
    }

    /// Concatenates binaries with one copy.
    fn merge_all(&self, _key: &[u8], values: &[&[u8]]) -> Result<Option<Vec<u8>>, Error> {
        Ok(match &self.merge {
            Merge::Simple(Simple::Append) | Merge::Pruned(Simple::Append) => append_all(values),
            _ => None,
        })
    }

    /// Returns the result of [`Merge::is_base`], and decodes a value only if necessary.
    fn is_base(&self, _key: &[u8], value: &[u8]) -> bool {
        match &self.merge {
            merge if keeps_later(merge) => true,
            Merge::Simple(_) | Merge::Pruned(_) if value.len() > MOST_OF_EMPTY => false,
            merge => merge.has_base() && term(value).is_ok_and(|value| merge.is_base(&value)),
        }
    }

    /// Returns the result of [`Merge::is_absent`].
    fn is_absent(&self, _key: &[u8], value: &[u8]) -> bool {
        self.merge.has_absent()
            && value.len() <= self.most_of_absent
            && term(value).is_ok_and(|value| self.merge.is_absent(&value))
    }
}

/// Maximum length of an empty value of a merge that is not a vector: `0`, `[]`, `<<>>` or `#{}`. In
/// their usual encoding they take at most six bytes.
const MOST_OF_EMPTY: usize = 16;

/// Returns the maximum length of an empty value.
fn most_of_empty(merge: &Merge) -> usize {
    match merge {
        Merge::Simple(_) | Merge::Pruned(_) => MOST_OF_EMPTY,
        Merge::Vector(merges) => merges.iter().map(most_of_empty).sum::<usize>() + MOST_OF_EMPTY,
    }
}

/// Returns `true` if the merge keeps the later of any two values.
fn keeps_later(merge: &Merge) -> bool {
    match merge {
        Merge::Simple(merge) | Merge::Pruned(merge) => *merge == Simple::Last,
        Merge::Vector(merges) => merges.iter().all(keeps_later),
    }
}

/// Decodes a value.
fn term(value: &[u8]) -> Result<Term, Error> {
    etf::decode(value, etf::Options::TRUSTED).map_err(|_| Error::Merge)
}

/// Merges values without decoding them; `None` if they must be decoded.
fn merge_bytes(merge: &Merge, earlier: &[u8], later: &[u8]) -> Option<MergedBytes> {
    let integers = || Some((integer(earlier)?, integer(later)?));
    let simple = match merge {
        Merge::Simple(simple) | Merge::Pruned(simple) => simple,
        Merge::Vector(_) => return merge_tuples(merge, earlier, later),
    };
    match simple {
        Simple::First => Some(MergedBytes::Earlier),
        Simple::Last => Some(MergedBytes::Later),
        Simple::LastBy(number) => {
            let at = element(earlier, *number)?;
            Some(if element(later, *number)? < at {
                MergedBytes::Earlier
            } else {
                MergedBytes::Later
            })
        }
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
            Some(match simple {
                Simple::Min if later < earlier => MergedBytes::Later,
                Simple::Max if later > earlier => MergedBytes::Later,
                _ => MergedBytes::Earlier,
            })
        }
        Simple::Append => append_all(&[earlier, later]).map(MergedBytes::New),
        Simple::Statistics => merge_tuples(merge, earlier, later),
        Simple::Union | Simple::Intersection => None,
    }
}

/// Concatenates binaries; `None` if one of the values is not a binary, or if the result is too
/// long.
fn append_all(values: &[&[u8]]) -> Option<Vec<u8>> {
    let mut len = 0;
    for value in values {
        len += binary(value)?.len();
    }
    let head = u32::try_from(len).ok()?.to_be_bytes();
    let mut bytes = Vec::with_capacity(BINARY.len() + head.len() + len);
    bytes.extend_from_slice(&BINARY);
    bytes.extend_from_slice(&head);
    for value in values {
        bytes.extend_from_slice(binary(value)?);
    }
    Some(bytes)
}

/// Merges nested tuples of integers without decoding them; `None` if they must be decoded.
fn merge_tuples(merge: &Merge, earlier: &[u8], later: &[u8]) -> Option<MergedBytes> {
    let mut earlier = earlier.strip_prefix(&[VERSION])?;
    let mut later = later.strip_prefix(&[VERSION])?;
    let mut bytes = Vec::with_capacity(earlier.len().max(later.len()) + 16);
    bytes.push(VERSION);
    merge_parts(merge, &mut earlier, &mut later, &mut bytes)?;
    (earlier.is_empty() && later.is_empty()).then_some(MergedBytes::New(bytes))
}

/// Splits a value of the merge off both inputs, and appends the merged value to `out`.
fn merge_parts(
    merge: &Merge,
    earlier: &mut &[u8],
    later: &mut &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    let simple = match merge {
        Merge::Simple(Simple::Statistics) => {
            let (earlier, later) = (take_statistics(earlier)?, take_statistics(later)?);
            out.extend_from_slice(&[SMALL_TUPLE, 4]);
            push_integer(earlier[0].min(later[0]), out);
            push_integer(earlier[1].max(later[1]), out);
            push_integer(earlier[2].checked_add(later[2])?, out);
            push_integer(earlier[3].checked_add(later[3])?, out);
            return Some(());
        }
        Merge::Simple(simple) | Merge::Pruned(simple) => simple,
        Merge::Vector(merges) => {
            let arity = u8::try_from(merges.len()).ok()?;
            let head = [SMALL_TUPLE, arity];
            *earlier = earlier.strip_prefix(&head)?;
            *later = later.strip_prefix(&head)?;
            out.extend_from_slice(&head);
            let mut merges = merges.iter();
            return merges.try_for_each(|merge| merge_parts(merge, earlier, later, out));
        }
    };
    let (a, b) = (take_integer(earlier)?, take_integer(later)?);
    let merged = match simple {
        Simple::Sum => a.checked_add(b)?,
        Simple::Min => a.min(b),
        Simple::Max => a.max(b),
        Simple::First => a,
        Simple::Last => b,
        Simple::LastBy(_)
        | Simple::Append
        | Simple::Union
        | Simple::Intersection
        | Simple::Statistics => return None,
    };
    push_integer(merged, out);
    Some(())
}

/// Splits expanded statistics of integers off `bytes`, if it begins with them.
fn take_statistics(bytes: &mut &[u8]) -> Option<[i64; 4]> {
    let mut rest = bytes.strip_prefix(&[SMALL_TUPLE, 4])?;
    let mut statistics = [0; 4];
    for number in &mut statistics {
        *number = take_integer(&mut rest)?;
    }
    *bytes = rest;
    let [min, max, _, count] = statistics;
    (min <= max && count > 0).then_some(statistics)
}

/// Returns the element of a tuple with this number, from 1, if it and all elements before it are
/// integers of 64 bits.
fn element(value: &[u8], number: usize) -> Option<i64> {
    let (arity, mut rest) = value.strip_prefix(&[VERSION, SMALL_TUPLE])?.split_first()?;
    if usize::from(*arity) < number {
        return None;
    }
    for _ in 1..number {
        take_integer(&mut rest)?;
    }
    take_integer(&mut rest)
}

/// The first byte of a term in the external term format; the tags follow.
const VERSION: u8 = 131;
const SMALL_INTEGER: u8 = 97;
const INTEGER: u8 = 98;
const SMALL_TUPLE: u8 = 104;
const SMALL_BIG: u8 = 110;
const BINARY: [u8; 2] = [VERSION, 109];

/// Returns the integer, if the value is an integer of 64 bits.
fn integer(value: &[u8]) -> Option<i64> {
    let mut rest = value.strip_prefix(&[VERSION])?;
    let integer = take_integer(&mut rest)?;
    rest.is_empty().then_some(integer)
}

/// Splits an integer of 64 bits off `bytes`, if it begins with one.
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

/// Appends an integer in the form of [`etf::encode`] within a term.
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

/// Returns the bytes of a binary, if the value is a binary.
fn binary(value: &[u8]) -> Option<&[u8]> {
    let (len, bytes) = value.strip_prefix(&BINARY)?.split_first_chunk()?;
    let is_whole = u32::from_be_bytes(*len) as usize == bytes.len();
    is_whole.then_some(bytes)
}
