//! Integers of more than 64 bits, and floats.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// An integer that does not fit an `i64`.
#[derive(Clone, PartialEq, Eq)]
pub struct BigInt {
    negative: bool,
    /// The magnitude: little endian, at least 8 bytes, the last one not zero.
    magnitude: Arc<[u8]>,
}

impl BigInt {
    /// Returns `true` if the integer is negative.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Returns the absolute value, little endian, without zero bytes at the end.
    #[must_use]
    pub fn magnitude(&self) -> &[u8] {
        &self.magnitude
    }

    /// Compares two absolute values given as magnitudes.
    pub(super) fn compare_magnitudes(a: &[u8], b: &[u8]) -> Ordering {
        a.len()
            .cmp(&b.len())
            .then_with(|| a.iter().rev().cmp(b.iter().rev()))
    }
}

impl fmt::Debug for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The number in base 10 up to about 9,000 digits, beyond that in Erlang's base 16 notation,
/// because the conversion to base 10 takes quadratic time.
impl fmt::Display for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DECIMAL_MAX_BYTES: usize = 4096;
        if self.negative {
            f.write_str("-")?;
        }
        if self.magnitude.len() > DECIMAL_MAX_BYTES {
            f.write_str("16#")?;
            return self
                .magnitude
                .iter()
                .rev()
                .try_for_each(|byte| write!(f, "{byte:02X}"));
        }
        let groups = decimal_groups(&self.magnitude);
        let mut groups = groups.iter().rev();
        if let Some(first) = groups.next() {
            write!(f, "{first}")?;
        }
        groups.try_for_each(|group| write!(f, "{group:09}"))
    }
}

/// Returns groups of nine decimal digits, least significant first.
fn decimal_groups(magnitude: &[u8]) -> Vec<u32> {
    const GROUP: u64 = 1_000_000_000;
    let mut groups = Vec::new();
    for &byte in magnitude.iter().rev() {
        let mut carry = u64::from(byte);
        for group in &mut groups {
            let value = u64::from(*group) * 256 + carry;
            *group = (value % GROUP) as u32;
            carry = value / GROUP;
        }
        if carry > 0 {
            groups.push(carry as u32);
        }
    }
    groups
}

/// Creates an integer from sign and little-endian magnitude, as 64 bits if it fits.
pub(super) fn integer(negative: bool, magnitude: &[u8]) -> Result<i64, BigInt> {
    let length = magnitude
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    let magnitude = &magnitude[..length];
    to_i64(negative, magnitude).ok_or_else(|| BigInt {
        negative,
        magnitude: magnitude.into(),
    })
}

fn to_i64(negative: bool, magnitude: &[u8]) -> Option<i64> {
    if magnitude.len() > 8 {
        return None;
    }
    let mut bytes = [0; 8];
    bytes[..magnitude.len()].copy_from_slice(magnitude);
    let absolute = i128::from(u64::from_le_bytes(bytes));
    i64::try_from(if negative { -absolute } else { absolute }).ok()
}

/// A finite float. `==` tells `0.0` and `-0.0` apart, as `=:=` does since OTP 27.
#[derive(Clone, Copy)]
pub struct Float(f64);

/// The error of NaN and the infinities, which are no Erlang terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFinite;

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a float of Erlang is finite")
    }
}

impl std::error::Error for NotFinite {}

impl Float {
    /// Creates a float, if it is finite.
    ///
    /// # Errors
    /// Returns [`NotFinite`] for NaN and the infinities.
    pub fn new(value: f64) -> Result<Float, NotFinite> {
        if value.is_finite() {
            Ok(Float(value))
        } else {
            Err(NotFinite)
        }
    }

    /// Returns the value, which is finite.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Float {
    fn eq(&self, other: &Float) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Float {}

impl fmt::Debug for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The shortest decimal that reads back as the same float, in Erlang syntax.
impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:?}", self.0);
        match text.split_once('e') {
            // Erlang requires a fraction in front of the exponent.
            Some((digits, exponent)) if !digits.contains('.') => write!(f, "{digits}.0e{exponent}"),
            _ => f.write_str(&text),
        }
    }
}
