//! Merges of objects: of the element that follows the key.
//!
//! A value of a table in a store of bytes is a list of the [objects of a
//! key](crate::terms::store::codec). In a table that merges, a key has one object. Merging two
//! objects of a key merges the elements that follow the key, and takes all other elements from the
//! later object.

use crate::terms::description::Description;
use crate::terms::store::operator::PortableMerge;
use ats_merge::Merge;
use ats_store::{Error, MergeOperator, Merged};
use ats_term::etf;
use std::borrow::Cow;

/// A [`PortableMerge`] of the element that follows the key, as an operator on the values of tables.
///
/// The name consists of the name of the merge and the position of the element: `ats.sum of element
/// 2`. A value that is not a single object with such an element cannot be merged.
#[derive(Clone, Debug)]
pub struct ObjectMerge {
    merge: PortableMerge,
    /// The index of the merged element, from 0.
    index: usize,
    name: String,
    /// `true` if every integer is a value of the merge, in its usual form.
    takes_integers: bool,
}

const LENGTH_BYTES: usize = size_of::<u32>();
const VERSION: u8 = 131;
const SMALL_INTEGER: u8 = 97;
const INTEGER: u8 = 98;
const SMALL_TUPLE: u8 = 104;
const LARGE_TUPLE: u8 = 105;

/// The parts of an encoded object.
struct Parts<'v> {
    /// The tag and the elements before the merged one.
    before: &'v [u8],
    element: &'v [u8],
    after: &'v [u8],
}

impl<'v> Parts<'v> {
    fn of(value: &'v [u8], index: usize) -> Option<Self> {
        let (len, object) = value.split_first_chunk::<LENGTH_BYTES>()?;
        if u32::from_le_bytes(*len) as usize != object.len() {
            return None;
        }
        let tuple = object.strip_prefix(&[VERSION])?;
        let (arity, mut rest) = match tuple.split_first()? {
            (&SMALL_TUPLE, rest) => {
                let (arity, rest) = rest.split_first()?;
                (usize::from(*arity), rest)
            }
            (&LARGE_TUPLE, rest) => {
                let (arity, rest) = rest.split_first_chunk()?;
                (u32::from_be_bytes(*arity) as usize, rest)
            }
            _ => return None,
        };
        if arity <= index {
            return None;
        }
        for _ in 0..index {
            rest = etf::skip(rest)?;
        }
        let after = etf::skip(rest)?;
        let (before, _) = tuple.split_at(tuple.len() - rest.len());
        let (element, after) = rest.split_at(rest.len() - after.len());
        Some(Parts {
            before,
            element,
            after,
        })
    }

    /// Returns the object with another element, which begins with a version byte.
    fn with(&self, element: &[u8]) -> Result<Vec<u8>, Error> {
        let element = element.get(1..).ok_or(Error::Merge)?;
        let len = 1 + self.before.len() + element.len() + self.after.len();
        let head = u32::try_from(len).map_err(|_| Error::Merge)?.to_le_bytes();
        let mut value = Vec::with_capacity(LENGTH_BYTES + len);
        value.extend_from_slice(&head);
        value.push(VERSION);
        value.extend_from_slice(self.before);
        value.extend_from_slice(element);
        value.extend_from_slice(self.after);
        Ok(value)
    }
}

/// Maximum number of bytes of an element that is copied without an allocation.
const SHORT: usize = 64;

/// Passes the element to `lend`, with a version byte in front.
fn lend_with_version<R>(element: &[u8], lend: impl FnOnce(&[u8]) -> R) -> R {
    let mut short = [VERSION; SHORT];
    match short.get_mut(1..=element.len()) {
        Some(room) => {
            room.copy_from_slice(element);
            lend(&short[..=element.len()])
        }
        None => lend(&[&[VERSION], element].concat()),
    }
}

impl ObjectMerge {
    /// Returns the merge of the element that follows a key at `key_position`, from 1.
    #[must_use]
    pub fn new(merge: PortableMerge, key_position: usize) -> Self {
        ObjectMerge {
            name: format!("{} of element {}", merge.name(), key_position + 1),
            index: key_position,
            takes_integers: matches!(merge.name(), "ats.sum" | "ats.min" | "ats.max"),
            merge,
        }
    }

    /// Returns the merge of a table. `None` if the table does not merge, or if this version does
    /// not know its merge.
    #[must_use]
    pub fn of(description: &Description) -> Option<Self> {
        let term = etf::decode(&description.merge, etf::Options::TRUSTED).ok()?;
        let merge = Merge::from_term(&term)?;
        let merge = PortableMerge::new(merge, description.zeros);
        Some(Self::new(merge, description.key_position))
    }

    /// Returns the bytes to write for the value of a record. `None` if its element cannot be
    /// merged. O(size).
    #[must_use]
    pub fn operand<'v>(&self, value: &'v [u8]) -> Option<Cow<'v, [u8]>> {
        let parts = Parts::of(value, self.index)?;
        if self.takes_integers && matches!(parts.element, [SMALL_INTEGER | INTEGER, ..]) {
            return Some(Cow::Borrowed(value));
        }
        lend_with_version(parts.element, |element| {
            match self.merge.value(element)? {
                Cow::Borrowed(_) => Some(Cow::Borrowed(value)),
                Cow::Owned(made) => parts.with(&made).ok().map(Cow::Owned),
            }
        })
    }

    fn parts<'v>(&self, value: &'v [u8]) -> Result<Parts<'v>, Error> {
        Parts::of(value, self.index).ok_or(Error::Merge)
    }

    fn asks(&self, value: &[u8], ask: impl FnOnce(&[u8]) -> bool) -> bool {
        let parts = Parts::of(value, self.index);
        parts.is_some_and(|parts| lend_with_version(parts.element, ask))
    }
}

impl MergeOperator for ObjectMerge {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        self.merge.version()
    }

    fn merge(&self, key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
        let (before, after) = (self.parts(earlier)?, self.parts(later)?);
        let merged = lend_with_version(before.element, |earlier| {
            lend_with_version(after.element, |later| self.merge.merge(key, earlier, later))
        })?;
        Ok(match merged {
            Merged::Later => Merged::Later,
            Merged::Earlier if before.before == after.before && before.after == after.after => {
                Merged::Earlier
            }
            Merged::Earlier => {
                Merged::New(lend_with_version(before.element, |kept| after.with(kept))?)
            }
            Merged::New(element) => Merged::New(after.with(&element)?),
        })
    }

    fn merge_all(&self, key: &[u8], values: &[&[u8]]) -> Result<Option<Vec<u8>>, Error> {
        let Some((last, _)) = values.split_last() else {
            return Ok(None);
        };
        let mut elements = Vec::with_capacity(values.len());
        for value in values {
            elements.push([&[VERSION], self.parts(value)?.element].concat());
        }
        let elements: Vec<&[u8]> = elements.iter().map(Vec::as_slice).collect();
        let merged = self.merge.merge_all(key, &elements)?;
        merged
            .map(|element| self.parts(last)?.with(&element))
            .transpose()
    }

    fn is_base(&self, key: &[u8], value: &[u8]) -> bool {
        self.asks(value, |element| self.merge.is_base(key, element))
    }

    fn is_absent(&self, key: &[u8], value: &[u8]) -> bool {
        self.asks(value, |element| self.merge.is_absent(key, element))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::TableType;
    use ats_term::{Atom, Term, Zeros};

    fn atom(text: &str) -> Term {
        Term::Atom(Atom::new(text).expect("a short text"))
    }

    fn merge(name: &str, key_position: usize) -> ObjectMerge {
        let description = Description {
            table_type: TableType::Set,
            key_position,
            zeros: Zeros::Distinct,
            merge: etf::encode(&atom(name)).expect("an atom"),
            has_shared: false,
            format: Vec::new(),
            lifetime: None,
        };
        ObjectMerge::of(&description).expect("the name of a merge")
    }

    fn value(object: Term) -> Vec<u8> {
        let bytes = etf::encode(&object).expect("a short term");
        [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
    }

    #[test]
    fn the_element_behind_the_key_is_merged() {
        let sum = merge("sum", 1);
        assert_eq!(sum.name(), "ats.sum of element 2");
        let (one, two) = (value((1, 10).into()), value((1, 32).into()));
        assert_eq!(
            sum.merge(b"", &one, &two),
            Ok(Merged::New(value((1, 42).into())))
        );
        let (one, two) = (value((1, 10, 7).into()), value((1, 32, 8).into()));
        assert_eq!(
            sum.merge(b"", &one, &two),
            Ok(Merged::New(value((1, 42, 8).into())))
        );
        let max = merge("max", 2);
        let (one, two) = (value((0, 1, 50).into()), value((0, 1, 32).into()));
        assert_eq!(max.merge(b"", &one, &two), Ok(Merged::Earlier));
        assert_eq!(max.merge(b"", &two, &one), Ok(Merged::Later));
        let other = value((9, 1, 32).into());
        assert_eq!(
            max.merge(b"", &one, &other),
            Ok(Merged::New(value((9, 1, 50).into())))
        );
        let long = |byte| value((1, Term::binary(&[byte; 100])).into());
        let append = merge("append", 1);
        let Ok(Merged::New(both)) = append.merge(b"", &long(1), &long(2)) else {
            panic!("binaries can be put one behind the other");
        };
        let expected = Term::binary(&[[1; 100], [2; 100]].concat());
        assert_eq!(both, value((1, expected).into()));
    }

    #[test]
    fn only_single_objects_can_be_merged() {
        let sum = merge("sum", 1);
        let good = value((1, 10).into());
        for bad in [
            vec![],
            value(Term::from(7)),
            value((1,).into()),
            value((1, atom("a")).into()),
            [&good[..], &good[..]].concat(),
            good[..good.len() - 1].to_vec(),
        ] {
            assert_eq!(sum.merge(b"", &good, &bad), Err(Error::Merge), "{bad:?}");
            assert_eq!(sum.merge(b"", &bad, &good), Err(Error::Merge), "{bad:?}");
            assert_eq!(sum.operand(&bad), None, "{bad:?}");
            assert!(!sum.is_absent(b"", &bad));
        }
        assert_eq!(sum.operand(&good).as_deref(), Some(&good[..]));
    }
}
