//! Integers of any size, for counters.

use ats_term::image::NewValue;
use ats_term::{Kind, TermRef};
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;

/// An integer; of 64 bits as long as it fits, which it nearly always does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Integer {
    /// Fits 64 bits.
    Small(i64),
    /// Does not. Boxed, since it is rare.
    Big(Box<BigInt>),
}

/// An integer of more bits is refused, as the Erlang VM does (`BIG_ARITY_MAX` words of 64 bits).
const MOST_BITS: u64 = 64 * ((1 << 19) - 1);

impl Integer {
    /// The integer a term is, if it is one.
    pub fn from_term<T: TermRef>(term: T) -> Option<Self> {
        match term.kind() {
            Kind::Int(value) => Some(Integer::Small(value)),
            Kind::Big => Some(term.with_big(|negative, magnitude| {
                let sign = if negative { Sign::Minus } else { Sign::Plus };
                BigInt::from_bytes_le(sign, magnitude).into()
            })),
            _ => None,
        }
    }

    /// The value, if it fits 64 bits.
    pub fn as_small(&self) -> Option<i64> {
        match self {
            Integer::Small(value) => Some(*value),
            Integer::Big(_) => None,
        }
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        match self {
            Integer::Small(value) => *value < 0,
            Integer::Big(value) => value.sign() == Sign::Minus,
        }
    }

    /// The sum, unless it is larger than the VM allows.
    pub fn checked_add(&self, other: &Integer) -> Option<Integer> {
        if let (Integer::Small(a), Integer::Small(b)) = (self, other)
            && let Some(sum) = a.checked_add(*b)
        {
            return Some(Integer::Small(sum));
        }
        let sum = self.to_big() + other.to_big();
        (sum.bits() <= MOST_BITS).then(|| sum.into())
    }

    /// Lends sign and magnitude (little endian, without leading zeros) of an integer that does not
    /// fit 64 bits, or the value of one that does.
    pub fn with_parts<R>(&self, f: impl FnOnce(Result<i64, (bool, &[u8])>) -> R) -> R {
        match self {
            Integer::Small(value) => f(Ok(*value)),
            Integer::Big(value) => {
                let (sign, magnitude) = value.to_bytes_le();
                f(Err((sign == Sign::Minus, &magnitude)))
            }
        }
    }

    fn to_big(&self) -> BigInt {
        match self {
            Integer::Small(value) => BigInt::from(*value),
            Integer::Big(value) => (**value).clone(),
        }
    }
}

impl From<BigInt> for Integer {
    fn from(value: BigInt) -> Self {
        match i64::try_from(&value) {
            Ok(small) => Integer::Small(small),
            Err(_) => Integer::Big(Box::new(value)),
        }
    }
}

impl From<i64> for Integer {
    fn from(value: i64) -> Self {
        Integer::Small(value)
    }
}

impl PartialOrd for Integer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Integer {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Integer::Small(a), Integer::Small(b)) => a.cmp(b),
            _ => self.to_big().cmp(&other.to_big()),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_and_reenters_64_bits() {
        let most = Integer::Small(i64::MAX);
        let one = Integer::Small(1);
        let beyond = most.checked_add(&one).expect("far below the limit");
        assert!(matches!(beyond, Integer::Big(_)));
        assert!(beyond > most && !beyond.is_negative());
        let back = beyond.checked_add(&Integer::Small(-1));
        assert_eq!(back, Some(most));
    }

    #[test]
    fn refuses_what_the_vm_refuses() {
        let huge = Integer::from(BigInt::from(1) << (MOST_BITS - 1));
        assert_eq!(huge.checked_add(&huge), None);
        assert!(huge.checked_add(&Integer::Small(1)).is_some());
    }
}
