//! Numbers and byte strings of the file formats, and reading them without trust.
//!
//! A *varint* is a number of up to 64 bits in groups of seven bits, the lowest group first; the top bit of a
//! byte says that another byte follows. A *byte string* is its length as a varint, and then its bytes.

use std::cmp::Ordering;
use std::fmt;

/// Bytes that are not what a writer makes, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged(pub(crate) &'static str);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

const ENDS_EARLY: Damaged = Damaged("ends early");

/// Appends a varint.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a byte string.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// How many bytes a varint takes.
pub(crate) fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Reads the varint at `at`, and moves `at` behind it.
#[inline(always)]
pub(crate) fn varint_at(bytes: &[u8], at: &mut usize) -> Result<u64, Damaged> {
    // Nearly all numbers of a block are below 2^14.
    match bytes.get(*at) {
        Some(&first) if first < 0x80 => {
            *at += 1;
            return Ok(u64::from(first));
        }
        Some(&first) => {
            if let Some(&second) = bytes.get(*at + 1)
                && second < 0x80
            {
                *at += 2;
                return Ok(u64::from(first & 0x7f) | u64::from(second) << 7);
            }
        }
        None => return Err(ENDS_EARLY),
    }
    long_varint_at(bytes, at)
}

#[cold]
fn long_varint_at(bytes: &[u8], at: &mut usize) -> Result<u64, Damaged> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(ENDS_EARLY)?;
        *at += 1;
        let group = u64::from(byte & 0x7f);
        if group << shift >> shift != group {
            break;
        }
        value |= group << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Damaged("a number has more than 64 bits"))
}

/// Reads fields from the front of some bytes.
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Decoder { rest: bytes }
    }

    /// What is not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Damaged> {
        let mut at = 0;
        let value = varint_at(self.rest, &mut at)?;
        self.rest = &self.rest[at..];
        Ok(value)
    }

    /// A varint that counts things of which each takes a byte at least of what follows. So it is safe to make
    /// room for as many, if they are not large.
    pub(crate) fn count(&mut self) -> Result<usize, Damaged> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() => Ok(count),
            _ => Err(ENDS_EARLY),
        }
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(taken)
    }

    /// A byte string.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Damaged> {
        let len = self.count()?;
        self.take(len)
    }

    /// The next bytes, of a number that the type knows.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Nothing is left.
    pub(crate) fn end(&self) -> Result<(), Damaged> {
        match self.rest {
            [] => Ok(()),
            _ => Err(Damaged("has bytes left over")),
        }
    }
}

/// How many bytes two keys have in common at their beginning.
///
/// Keys are short. For them this, in place, is several times as fast as a call of the function of the C
/// library for long memory.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let differ = |at: usize| -> Option<u64> {
        let a = u64::from_le_bytes(*a.get(at..)?.first_chunk()?);
        let b = u64::from_le_bytes(*b.get(at..)?.first_chunk()?);
        Some(a ^ b)
    };
    let mut at = 0;
    while let Some(bits) = differ(at) {
        if bits != 0 {
            return at + (bits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    // Fewer than eight bytes are left. The last eight have them, and before them what is equal.
    if let Some(bits) = len.checked_sub(8).and_then(differ) {
        return len.min(len - 8 + (bits.trailing_zeros() / 8) as usize);
    }
    while at < len && a[at] == b[at] {
        at += 1;
    }
    at
}

/// The order of two keys.
#[inline]
pub(crate) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let common = common_prefix(a, b);
    a.get(common).cmp(&b.get(common))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_of_all_sizes_are_read_as_they_were_written() {
        let powers = (0..64).map(|shift| 1u64 << shift);
        for value in powers.flat_map(|power| [power - 1, power, power + 1]) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(bytes.len(), varint_len(value));
            let mut decoder = Decoder::new(&bytes);
            assert_eq!(decoder.varint(), Ok(value));
            assert_eq!(decoder.end(), Ok(()));
            for len in 0..bytes.len() {
                assert_eq!(Decoder::new(&bytes[..len]).varint(), Err(ENDS_EARLY));
            }
        }
        assert_eq!(varint_len(u64::MAX), 10);
        for last in [2, 0x7f, 0x80] {
            let mut bytes = [0xff; 12];
            bytes[9] = last;
            assert!(Decoder::new(&bytes).varint().is_err());
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_refused_before_room_is_made() {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, u64::MAX);
        assert_eq!(Decoder::new(&bytes).bytes(), Err(ENDS_EARLY));
        assert_eq!(Decoder::new(&bytes).count(), Err(ENDS_EARLY));
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, b"abc");
        assert_eq!(Decoder::new(&bytes).bytes(), Ok(&b"abc"[..]));
        assert_eq!(Decoder::new(&bytes[..3]).bytes(), Err(ENDS_EARLY));
        assert_eq!(Decoder::new(&bytes).array::<5>(), Err(ENDS_EARLY));
    }

    proptest! {
        #[test]
        fn prefixes_are_compared_to_the_byte(
            prefix in prop::collection::vec(any::<u8>(), 0..40),
            a in prop::collection::vec(0..2u8, 0..4),
            b in prop::collection::vec(0..2u8, 0..4),
        ) {
            let plain = prefix.len() + a.iter().zip(&b).take_while(|(a, b)| a == b).count();
            let (a, b) = ([&prefix[..], &a].concat(), [&prefix[..], &b].concat());
            prop_assert_eq!(common_prefix(&a, &b), plain);
            prop_assert_eq!(compare(&a, &b), a.cmp(&b));
        }
    }
}
