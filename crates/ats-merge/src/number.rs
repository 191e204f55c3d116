//! Numbers, and their sums.

use crate::merge_error::MergeError;
use crate::merged::Merged;
use ats_term::image::{Host, ImageRef};
use ats_term::{Integer, Kind, TermRef};

/// A number to calculate with.
pub(crate) enum Number {
    Integer(Integer),
    Float(f64),
}

impl Number {
    /// Returns the number that a term is, if it is one.
    pub(crate) fn of<T: TermRef>(term: T) -> Option<Self> {
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

/// Returns the sum of two numbers, as `+` computes it.
pub(crate) fn sum<'m, H: Host>(
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
) -> Result<Merged<'m, H>, MergeError> {
    let a = Number::of(earlier).ok_or(MergeError::Earlier)?;
    let b = Number::of(later).ok_or(MergeError::Later)?;
    if let (Number::Integer(a), Number::Integer(b)) = (&a, &b) {
        let sum = a.checked_add(b).ok_or(MergeError::SystemLimit)?;
        return Ok(Merged::Integer(sum));
    }
    match (a.to_float(), b.to_float()) {
        (Some(a), Some(b)) if (a + b).is_finite() => Ok(Merged::Float(a + b)),
        _ => Err(MergeError::SystemLimit),
    }
}
