//! Which merges there are, and what they do with two values.

use crate::merged::Merged;
use crate::refused::Refused;
use crate::sets;
use ats_term::image::{Host, ImageRef};
use ats_term::{Integer, Kind, TermRef, Zeros};

/// How an earlier and a later value become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Of one value.
    Simple(Simple),
    /// Of a tuple of this many values, each by itself.
    Vector(Vec<Simple>),
}

/// A merge of values that are taken as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simple {
    /// Adds numbers.
    Sum,
    /// Keeps the lesser.
    Min,
    /// Keeps the greater.
    Max,
    /// Keeps the earlier.
    First,
    /// Keeps the later.
    Last,
    /// Puts lists or binaries one behind the other.
    Append,
    /// Unites ordered sets, or maps.
    Union,
}

impl Simple {
    fn from_term<T: TermRef>(term: T) -> Option<Self> {
        match term.kind() {
            Kind::Atom => term.with_atom(|text| {
                Some(match text {
                    "sum" => Simple::Sum,
                    "min" => Simple::Min,
                    "max" => Simple::Max,
                    "first" => Simple::First,
                    "last" => Simple::Last,
                    "append" => Simple::Append,
                    "union" => Simple::Union,
                    _ => return None,
                })
            }),
            _ => None,
        }
    }

    /// Whether a term is a value of the kind. O(1), but for lists and sets O(their size).
    fn takes<H: Host>(self, value: ImageRef<'_, H>, zeros: Zeros) -> bool {
        match self {
            Simple::Min | Simple::Max | Simple::First | Simple::Last => true,
            Simple::Sum => Number::of(value).is_some(),
            Simple::Append => match value.kind() {
                Kind::Bits(bits) => bits.is_multiple_of(8),
                _ => sets::is_list(value),
            },
            Simple::Union => match value.kind() {
                Kind::Map(_) => true,
                _ => sets::is_ordered(value, zeros),
            },
        }
    }

    fn merge<'m, H: Host>(
        self,
        earlier: ImageRef<'m, H>,
        later: ImageRef<'m, H>,
        zeros: Zeros,
    ) -> Result<Merged<'m, H>, Refused> {
        match self {
            Simple::First => Ok(Merged::Earlier(earlier)),
            Simple::Last => Ok(Merged::Later(later)),
            Simple::Min if sets::order(later, earlier, zeros).is_lt() => Ok(Merged::Later(later)),
            Simple::Max if sets::order(later, earlier, zeros).is_gt() => Ok(Merged::Later(later)),
            Simple::Min | Simple::Max => Ok(Merged::Earlier(earlier)),
            Simple::Sum => sum(earlier, later),
            Simple::Append => append(earlier, later),
            Simple::Union => sets::union(earlier, later, zeros),
        }
    }
}

impl Merge {
    /// The merge that a term names, as in the table of the [crate]; `None` if it names none.
    pub fn from_term<T: TermRef>(term: T) -> Option<Self> {
        if !matches!(term.kind(), Kind::Tuple(2)) {
            return Simple::from_term(term).map(Merge::Simple);
        }
        let is_vector = match term.element(0).kind() {
            Kind::Atom => term.element(0).with_atom(|text| text == "vector"),
            _ => false,
        };
        if !is_vector {
            return None;
        }
        let mut merges = Vec::new();
        let mut list = term.element(1);
        loop {
            match list.kind() {
                Kind::Nil => return Some(Merge::Vector(merges)),
                Kind::Cons(head, tail) => {
                    merges.push(Simple::from_term(head)?);
                    list = tail;
                }
                _ => return None,
            }
        }
    }

    /// Whether small integers are merged to small integers mostly.
    #[must_use]
    pub fn is_of_numbers(&self) -> bool {
        matches!(self, Merge::Simple(Simple::Sum | Simple::Min | Simple::Max))
    }

    /// Whether merging takes time that grows with the size of the values.
    #[must_use]
    pub fn is_of_collections(&self) -> bool {
        let grows = |merge: &Simple| matches!(merge, Simple::Append | Simple::Union);
        match self {
            Merge::Simple(merge) => grows(merge),
            Merge::Vector(merges) => merges.iter().any(grows),
        }
    }

    /// Whether values are compared, which takes time that grows with their size if both are tuples, lists,
    /// maps or bitstrings.
    #[must_use]
    pub fn compares(&self) -> bool {
        let compares = |merge: &Simple| matches!(merge, Simple::Min | Simple::Max);
        match self {
            Merge::Simple(merge) => compares(merge),
            Merge::Vector(merges) => merges.iter().any(compares),
        }
    }

    /// Whether a term is a value of the kind, and so can be the first one. O(its size) at most.
    pub fn takes<H: Host>(&self, value: ImageRef<'_, H>, zeros: Zeros) -> bool {
        match self {
            Merge::Simple(merge) => merge.takes(value, zeros),
            Merge::Vector(merges) => value.tuple().is_some_and(|elements| {
                let mut pairs = merges.iter().zip(elements);
                elements.len() == merges.len()
                    && pairs.all(|(merge, element)| merge.takes(element, zeros))
            }),
        }
    }

    /// Merges two values. `zeros` tells which keys of maps are the same. O(size of both) at most; O(1) for
    /// numbers.
    pub fn merge<'m, H: Host>(
        &self,
        earlier: ImageRef<'m, H>,
        later: ImageRef<'m, H>,
        zeros: Zeros,
    ) -> Result<Merged<'m, H>, Refused> {
        let merges = match self {
            Merge::Simple(merge) => return merge.merge(earlier, later, zeros),
            Merge::Vector(merges) => merges,
        };
        let of_size = |value: ImageRef<'m, H>, refused| {
            let elements = value.tuple().filter(|them| them.len() == merges.len());
            elements.ok_or(refused)
        };
        let elements = of_size(earlier, Refused::Earlier)?
            .iter()
            .zip(of_size(later, Refused::Later)?);
        let merged = merges
            .iter()
            .zip(elements)
            .map(|(merge, (earlier, later))| merge.merge(earlier, later, zeros));
        Ok(Merged::Tuple(merged.collect::<Result<_, _>>()?))
    }
}

/// A number to calculate with.
enum Number {
    Integer(Integer),
    Float(f64),
}

impl Number {
    fn of<T: TermRef>(term: T) -> Option<Self> {
        match term.kind() {
            Kind::Float(value) => Some(Number::Float(value)),
            _ => Integer::from_term(term).map(Number::Integer),
        }
    }

    fn to_float(&self) -> Option<f64> {
        match self {
            Number::Integer(value) => value.to_float(),
            Number::Float(value) => Some(*value),
        }
    }
}

fn sum<'m, H: Host>(
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
) -> Result<Merged<'m, H>, Refused> {
    let a = Number::of(earlier).ok_or(Refused::Earlier)?;
    let b = Number::of(later).ok_or(Refused::Later)?;
    if let (Number::Integer(a), Number::Integer(b)) = (&a, &b) {
        let sum = a.checked_add(b).ok_or(Refused::SystemLimit)?;
        return Ok(Merged::Integer(sum));
    }
    match (a.to_float(), b.to_float()) {
        (Some(a), Some(b)) if (a + b).is_finite() => Ok(Merged::Float(a + b)),
        _ => Err(Refused::SystemLimit),
    }
}

fn append<'m, H: Host>(
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
) -> Result<Merged<'m, H>, Refused> {
    if let Kind::Bits(bits) = earlier.kind() {
        let mut bytes = Vec::new();
        copy_bytes(earlier, bits, &mut bytes).ok_or(Refused::Earlier)?;
        let Kind::Bits(bits) = later.kind() else {
            return Err(Refused::Later);
        };
        copy_bytes(later, bits, &mut bytes).ok_or(Refused::Later)?;
        return Ok(Merged::Bytes(bytes));
    }
    let mut elements = sets::elements(earlier).ok_or(Refused::Earlier)?;
    elements.extend(sets::elements(later).ok_or(Refused::Later)?);
    Ok(Merged::List(elements))
}

/// Appends the bytes of a binary; `None` if it has bits besides.
fn copy_bytes<T: TermRef>(term: T, bits: usize, out: &mut Vec<u8>) -> Option<()> {
    if !bits.is_multiple_of(8) {
        return None;
    }
    term.with_bits(|bytes| out.extend_from_slice(&bytes[..bits / 8]));
    Some(())
}
