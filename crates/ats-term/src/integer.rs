//! Integers of any size, with arithmetic.
//!
//! Results are those of the Erlang VM, including its refusal of results that are too large.

use crate::term_ref::{Kind, TermRef};
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;

/// An integer, kept as 64 bits if it fits, as nearly all do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Integer {
    /// An integer that fits 64 bits.
    Small(i64),
    /// A larger integer. Boxed, because it is rare.
    Big(Box<BigInt>),
}

/// Largest number of bits of an integer, as in the Erlang VM (`BIG_ARITY_MAX` words of 64 bits).
const MOST_BITS: u64 = 64 * ((1 << 19) - 1);

impl Integer {
    /// Returns the integer that a term is, if it is one.
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

    /// Returns the value, if it fits 64 bits.
    pub fn as_small(&self) -> Option<i64> {
        match self {
            Integer::Small(value) => Some(*value),
            Integer::Big(_) => None,
        }
    }

    /// Returns the number of words of 64 bits in the magnitude, at least one. O(1).
    pub fn words(&self) -> usize {
        match self {
            Integer::Small(_) => 1,
            Integer::Big(value) => usize::try_from(value.bits().div_ceil(64)).unwrap_or(usize::MAX),
        }
    }

    /// Returns `true` if the integer is negative.
    pub fn is_negative(&self) -> bool {
        match self {
            Integer::Small(value) => *value < 0,
            Integer::Big(value) => value.sign() == Sign::Minus,
        }
    }

    /// Adds two integers; returns `None` if the sum is too large for the VM.
    pub fn checked_add(&self, other: &Integer) -> Option<Integer> {
        if let (Integer::Small(a), Integer::Small(b)) = (self, other)
            && let Some(sum) = a.checked_add(*b)
        {
            return Some(Integer::Small(sum));
        }
        check_size(self.to_big() + other.to_big())
    }

    /// Subtracts an integer; returns `None` if the difference is too large for the VM.
    pub fn checked_sub(&self, other: &Integer) -> Option<Integer> {
        if let (Integer::Small(a), Integer::Small(b)) = (self, other)
            && let Some(difference) = a.checked_sub(*b)
        {
            return Some(Integer::Small(difference));
        }
        check_size(self.to_big() - other.to_big())
    }

    /// Multiplies two integers; returns `None` if the product is too large for the VM.
    pub fn checked_mul(&self, other: &Integer) -> Option<Integer> {
        if let (Integer::Small(a), Integer::Small(b)) = (self, other)
            && let Some(product) = a.checked_mul(*b)
        {
            return Some(Integer::Small(product));
        }
        let (a, b) = (self.to_big(), other.to_big());
        // The product has as many bits as both factors together, or one less.
        if a.bits() + b.bits() > MOST_BITS + 1 {
            return None;
        }
        check_size(a * b)
    }

    /// Divides by an integer and rounds towards zero (`div`); returns `None` if `other` is zero.
    pub fn checked_div(&self, other: &Integer) -> Option<Integer> {
        match (self, other) {
            (_, Integer::Small(0)) => None,
            (Integer::Small(a), Integer::Small(b)) if *b != -1 => Some(Integer::Small(a / b)),
            _ => Some((self.to_big() / other.to_big()).into()),
        }
    }

    /// Computes the remainder, which has the sign of `self` (`rem`); returns `None` if `other` is
    /// zero.
    pub fn checked_rem(&self, other: &Integer) -> Option<Integer> {
        match (self, other) {
            (_, Integer::Small(0)) => None,
            (Integer::Small(a), Integer::Small(b)) => Some(Integer::Small(a.wrapping_rem(*b))),
            _ => Some((self.to_big() % other.to_big()).into()),
        }
    }

    /// Returns the integer with the opposite sign.
    #[must_use]
    pub fn negate(&self) -> Integer {
        match self {
            Integer::Small(value) if *value != i64::MIN => Integer::Small(-value),
            _ => (-self.to_big()).into(),
        }
    }

    /// Computes the bitwise and of infinite two's complements.
    #[must_use]
    pub fn bit_and(&self, other: &Integer) -> Integer {
        match (self, other) {
            (Integer::Small(a), Integer::Small(b)) => Integer::Small(a & b),
            _ => (self.to_big() & other.to_big()).into(),
        }
    }

    /// Computes the bitwise or of infinite two's complements.
    #[must_use]
    pub fn bit_or(&self, other: &Integer) -> Integer {
        match (self, other) {
            (Integer::Small(a), Integer::Small(b)) => Integer::Small(a | b),
            _ => (self.to_big() | other.to_big()).into(),
        }
    }

    /// Computes the bitwise exclusive or of infinite two's complements.
    #[must_use]
    pub fn bit_xor(&self, other: &Integer) -> Integer {
        match (self, other) {
            (Integer::Small(a), Integer::Small(b)) => Integer::Small(a ^ b),
            _ => (self.to_big() ^ other.to_big()).into(),
        }
    }

    /// Computes the bitwise complement; returns `None` if it is too large for the VM.
    pub fn checked_not(&self) -> Option<Integer> {
        match self {
            Integer::Small(value) => Some(Integer::Small(!value)),
            Integer::Big(value) => check_size(!(**value).clone()),
        }
    }

    /// Shifts the integer to the left by `bits`, or to the right if `bits` is negative; returns
    /// `None` if the result is too large for the VM.
    pub fn checked_shl(&self, bits: &Integer) -> Option<Integer> {
        if *self == Integer::Small(0) {
            return Some(self.clone());
        }
        let sign = Integer::Small(if self.is_negative() { -1 } else { 0 });
        let bits = match bits {
            Integer::Small(bits) => *bits,
            Integer::Big(_) if bits.is_negative() => return Some(sign),
            Integer::Big(_) => return None,
        };
        match self {
            Integer::Small(value) if bits <= 0 => {
                let right = bits.unsigned_abs().min(63);
                Some(Integer::Small(value >> right))
            }
            Integer::Small(value) if bits < 64 && (value << bits) >> bits == *value => {
                Some(Integer::Small(value << bits))
            }
            _ if bits > 0 => {
                let value = self.to_big();
                let fits = value.bits().checked_add(bits as u64)? <= MOST_BITS;
                fits.then(|| (value << bits as u64).into())
            }
            _ if bits.unsigned_abs() > MOST_BITS => Some(sign),
            _ => Some((self.to_big() >> bits.unsigned_abs()).into()),
        }
    }

    /// Converts the integer to a float like the VM; returns `None` if it is too large.
    ///
    /// Integers beyond 64 bits are not always rounded to the nearest float: the VM adds up their
    /// 64-bit digits, and rounds at each.
    pub fn to_float(&self) -> Option<f64> {
        let value = match self {
            Integer::Small(value) => return Some(*value as f64),
            Integer::Big(value) => value,
        };
        let (sign, digits) = value.to_u64_digits();
        let float = digits.iter().rev().fold(0.0, |float, &digit| {
            float * (u64::MAX as f64) + digit as f64
        });
        let float = if sign == Sign::Minus { -float } else { float };
        float.is_finite().then_some(float)
    }

    /// Returns the integer part of a finite float, rounded towards zero.
    pub fn from_float(value: f64) -> Integer {
        const FRACTION_BITS: u32 = 52;
        // The cast is exact below 2^63 and saturates above, which the comparison detects.
        let small = value as i64;
        if small != i64::MAX && small != i64::MIN {
            return Integer::Small(small);
        }
        let bits = value.abs().to_bits();
        let exponent = (bits >> FRACTION_BITS) - u64::from(1023 + FRACTION_BITS);
        let mantissa = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
        let magnitude = BigInt::from(mantissa) << exponent;
        if value < 0.0 { -magnitude } else { magnitude }.into()
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

/// Returns the integer, unless it is too large for the VM.
fn check_size(value: BigInt) -> Option<Integer> {
    (value.bits() <= MOST_BITS).then(|| value.into())
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

    fn power_of_two(exponent: u64) -> Integer {
        Integer::from(BigInt::from(1) << exponent)
    }

    #[test]
    fn divides_towards_zero_with_the_sign_of_the_dividend() {
        let pair = |a: i64, b: i64| {
            let (a, b) = (Integer::Small(a), Integer::Small(b));
            (a.checked_div(&b), a.checked_rem(&b))
        };
        let small = |a, b| (Some(Integer::Small(a)), Some(Integer::Small(b)));
        assert_eq!(pair(7, 2), small(3, 1));
        assert_eq!(pair(-7, 2), small(-3, -1));
        assert_eq!(pair(7, -2), small(-3, 1));
        assert_eq!(pair(7, 0), (None, None));
        let (quotient, remainder) = pair(i64::MIN, -1);
        assert_eq!(quotient, Some(power_of_two(63)));
        assert_eq!(remainder, Some(Integer::Small(0)));
        assert_eq!(
            power_of_two(80).checked_div(&power_of_two(70)),
            Some(Integer::Small(1024))
        );
    }

    #[test]
    fn shifts_both_ways() {
        let shift = |a: &Integer, by: i64| a.checked_shl(&Integer::Small(by));
        let one = Integer::Small(1);
        assert_eq!(shift(&one, 62), Some(Integer::Small(1 << 62)));
        assert_eq!(shift(&one, 63), Some(power_of_two(63)));
        assert_eq!(shift(&power_of_two(63), -63), Some(one.clone()));
        assert_eq!(
            shift(&Integer::Small(-1), 63),
            Some(Integer::Small(i64::MIN))
        );
        assert_eq!(shift(&Integer::Small(-5), -1), Some(Integer::Small(-3)));
        assert_eq!(
            shift(&Integer::Small(-5), i64::MIN),
            Some(Integer::Small(-1))
        );
        assert_eq!(
            shift(&power_of_two(70).negate(), i64::MIN),
            Some(Integer::Small(-1))
        );
        assert_eq!(shift(&one, i64::MAX), None);
        assert_eq!(shift(&Integer::Small(0), i64::MAX), Some(Integer::Small(0)));
        assert_eq!(one.checked_shl(&power_of_two(70)), None);
        assert_eq!(
            one.checked_shl(&power_of_two(70).negate()),
            Some(Integer::Small(0))
        );
    }

    #[test]
    fn converts_floats_exactly() {
        for value in [
            0.0,
            1.9,
            -1.9,
            1e18,
            9_223_372_036_854_775_808.0,
            -1e300,
            2f64.powi(1000),
        ] {
            let integer = Integer::from_float(value);
            assert_eq!(integer.to_float(), Some(value.trunc()), "{value}");
        }
        assert_eq!(
            Integer::from_float(-9_223_372_036_854_775_808.0),
            Integer::Small(i64::MIN)
        );
        assert_eq!(
            Integer::from_float(9_223_372_036_854_775_808.0),
            power_of_two(63)
        );
        assert_eq!(power_of_two(1024).to_float(), None);
        assert_eq!(power_of_two(1024).negate().to_float(), None);
    }

    #[test]
    fn refuses_integers_beyond_the_limit_of_the_vm() {
        let huge = Integer::from(BigInt::from(1) << (MOST_BITS - 1));
        assert_eq!(huge.checked_add(&huge), None);
        assert!(huge.checked_add(&Integer::Small(1)).is_some());
        assert_eq!(huge.checked_mul(&Integer::Small(4)), None);
        assert_eq!(huge.checked_sub(&huge.negate()), None);
        assert_eq!(huge.checked_shl(&Integer::Small(1)), None);
    }
}
