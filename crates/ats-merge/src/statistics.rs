//! The least, the greatest, the sum and the number of samples.
//!
//! A value is `{Min, Max, Sum, Count}`. A number is a value, too: that of one sample.

use crate::merge_error::MergeError;
use crate::merged::Merged;
use crate::number::{self, Number};
use crate::order::order;
use ats_term::image::{Host, ImageRef};
use ats_term::{Integer, Zeros};

/// A value, taken apart.
struct Statistics<'m, H> {
    min: ImageRef<'m, H>,
    max: ImageRef<'m, H>,
    sum: ImageRef<'m, H>,
    /// The number of samples, at least 1.
    count: Integer,
}

impl<'m, H: Host> Statistics<'m, H> {
    /// `None` if the term is no value. O(1), but for very large integers.
    fn of(term: ImageRef<'m, H>, zeros: Zeros) -> Option<Self> {
        if Number::of(term).is_some() {
            return Some(Statistics {
                min: term,
                max: term,
                sum: term,
                count: Integer::Small(1),
            });
        }
        let elements = term.tuple().filter(|elements| elements.len() == 4)?;
        let number = |at| {
            let element = elements.get(at)?;
            Number::of(element).map(|_| element)
        };
        let (min, max, sum) = (number(0)?, number(1)?, number(2)?);
        let count = Integer::from_term(elements.get(3)?)?;
        let is_positive = !count.is_negative() && count.as_small() != Some(0);
        (is_positive && order(min, max, zeros).is_le()).then_some(Statistics {
            min,
            max,
            sum,
            count,
        })
    }
}

/// Returns `true` if a term is a value.
pub(crate) fn accepts<H: Host>(term: ImageRef<'_, H>, zeros: Zeros) -> bool {
    Statistics::of(term, zeros).is_some()
}

/// Returns a value as a tuple.
pub(crate) fn expand<H: Host>(term: ImageRef<'_, H>) -> Merged<'_, H> {
    match Number::of(term) {
        None => Merged::Later(term),
        Some(_) => Merged::Tuple(vec![
            Merged::Later(term),
            Merged::Later(term),
            Merged::Later(term),
            Merged::Integer(Integer::Small(1)),
        ]),
    }
}

/// Returns the statistics of the samples of both. The earlier one of two numbers that are `==` is
/// the least and the greatest.
pub(crate) fn merge<'m, H: Host>(
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
    zeros: Zeros,
) -> Result<Merged<'m, H>, MergeError> {
    let earlier = Statistics::of(earlier, zeros).ok_or(MergeError::Earlier)?;
    let later = Statistics::of(later, zeros).ok_or(MergeError::Later)?;
    let min = if order(later.min, earlier.min, zeros).is_lt() {
        Merged::Later(later.min)
    } else {
        Merged::Earlier(earlier.min)
    };
    let max = if order(later.max, earlier.max, zeros).is_gt() {
        Merged::Later(later.max)
    } else {
        Merged::Earlier(earlier.max)
    };
    let sum = number::sum(earlier.sum, later.sum)?;
    let count = earlier.count.checked_add(&later.count);
    let count = Merged::Integer(count.ok_or(MergeError::SystemLimit)?);
    Ok(Merged::Tuple(vec![min, max, sum, count]))
}
