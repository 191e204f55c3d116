//! New values of counters.

use ats_term::Integer;
use ats_term::image::NewValue;

/// The sign and magnitude of a big integer, kept so that they can be lent.
pub(crate) enum Parts {
    Small(i64),
    Big(bool, Vec<u8>),
}

impl Parts {
    pub(crate) fn of(integer: &Integer) -> Self {
        integer.with_parts(|parts| match parts {
            Ok(value) => Parts::Small(value),
            Err((negative, magnitude)) => Parts::Big(negative, magnitude.to_vec()),
        })
    }

    pub(crate) fn as_value<T>(&self) -> NewValue<'_, T> {
        match self {
            Parts::Small(value) => NewValue::Int(*value),
            Parts::Big(negative, magnitude) => NewValue::Big {
                negative: *negative,
                magnitude,
            },
        }
    }
}
